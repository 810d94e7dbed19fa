package credential

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"software.sslmate.com/src/go-pkcs12"

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

// javaStores are files in which systems keep those that Java trusts.
var javaStores = []string{"/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts"}

// Trust writes a session's certificates into a folder, has a sandbox show them in the place
// of the host's, and has its variables name them and the placeholders.
func Trust(dir string, ca []byte, all []policy.Credential, spec *runner.Spec) error {
	shown, java := real(stores), real(javaStores)
	var host []byte
	if len(shown) > 0 {
		var err error
		if host, err = os.ReadFile(shown[0]); err != nil {
			return fmt.Errorf("cannot read the certificates that this host trusts: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the session's folder: %w", err)
	}
	bundle := bytes.Join([][]byte{host, ca}, []byte("\n"))
	write := func(name string, content []byte, targets ...string) error {
		path := filepath.Join(dir, name)
		_ = os.Remove(path) // an earlier start's, which can't be written
		if err := os.WriteFile(path, content, 0o444); err != nil {
			return fmt.Errorf("cannot write the session's certificates: %w", err)
		}
		for _, t := range targets {
			spec.Binds = append(spec.Binds, runner.Bind{Source: path, Target: t})
		}
		return nil
	}
	if err := errors.Join(write("certificates.pem", bundle, append(shown, bundlePath)...), write("session-ca.pem", ca, ownPath)); err != nil {
		return err
	}
	if len(java) > 0 {
		store, err := pkcs12.Passwordless.EncodeTrustStore(certificates(bundle), "")
		if err != nil {
			return fmt.Errorf("cannot make a store of certificates for Java: %w", err)
		}
		if err := write("cacerts", store, java...); err != nil {
			return err
		}
	}
	spec.Env = environment(spec.Env, all)
	return nil
}

// real are the files that some paths lead to, each once.
func real(paths []string) (out []string) {
	for _, p := range paths {
		if to, err := filepath.EvalSymlinks(p); err == nil && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// certificates are those in a bundle that can be read.
func certificates(bundle []byte) (out []*x509.Certificate) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// environment names the certificates, and has placeholders where credentials would be.
func environment(env []string, all []policy.Credential) []string {
	set := make(map[string]string)
	for _, name := range bundled {
		set[name] = bundlePath
	}
	for _, name := range added {
		set[name] = ownPath
	}
	for _, c := range all {
		for _, name := range c.From.Env {
			set[name] = cmp.Or(set[name], "") // a policy may let it pass
		}
		for _, name := range c.Variables {
			set[name] = c.Placeholder()
		}
	}
	env = slices.DeleteFunc(env, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		_, own := set[name]
		return own
	})
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] != "" {
			env = append(env, name+"="+set[name])
		}
	}
	return env
}
