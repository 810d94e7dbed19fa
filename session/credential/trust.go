package credential

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"stepbox/policy"
	"stepbox/runner"
)

// stores are files in which systems keep the certificates that programs trust: Debian and
// Alpine; Fedora; openSUSE; and what others read.
var stores = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem",
}

// Where the sandbox has all certificates, and the session's own.
const (
	bundlePath = "/run/stepbox/certificates.pem"
	ownPath    = "/run/stepbox/session-ca.pem"
)

// bundled are variables by which programs are told of all certificates, added of more.
var (
	bundled = []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE"}
	added   = []string{"NODE_EXTRA_CA_CERTS", "DENO_CERT"}
)

// Trust writes a session's certificates into a folder, has a sandbox show them in the place
// of the host's, and has its variables name them and the placeholders.
func Trust(dir string, ca []byte, all []policy.Credential, spec *runner.Spec) error {
	var host []byte
	var shown []string
	for _, path := range stores {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || slices.Contains(shown, real) {
			continue
		}
		if host == nil {
			if host, err = os.ReadFile(real); err != nil {
				return fmt.Errorf("cannot read the certificates that this host trusts: %w", err)
			}
		}
		shown = append(shown, real)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the session's folder: %w", err)
	}
	bundle, own := filepath.Join(dir, "certificates.pem"), filepath.Join(dir, "session-ca.pem")
	for path, content := range map[string][]byte{bundle: bytes.Join([][]byte{host, ca}, []byte("\n")), own: ca} {
		_ = os.Remove(path) // an earlier start's, which can't be written
		if err := os.WriteFile(path, content, 0o444); err != nil {
			return fmt.Errorf("cannot write the session's certificates: %w", err)
		}
	}
	spec.Binds = append(spec.Binds, runner.Bind{Source: bundle, Target: bundlePath}, runner.Bind{Source: own, Target: ownPath})
	for _, real := range shown {
		spec.Binds = append(spec.Binds, runner.Bind{Source: bundle, Target: real})
	}
	set := func(name, value string) {
		spec.Env = slices.DeleteFunc(spec.Env, func(e string) bool { return len(e) > len(name) && e[:len(name)+1] == name+"=" })
		if value != "" {
			spec.Env = append(spec.Env, name+"="+value)
		}
	}
	for _, name := range bundled {
		set(name, bundlePath)
	}
	for _, name := range added {
		set(name, ownPath)
	}
	for _, c := range all {
		for _, name := range c.From.Env {
			set(name, "") // a policy may let it pass
		}
	}
	for _, c := range all {
		for _, name := range c.Variables {
			set(name, c.Placeholder())
		}
	}
	return nil
}
