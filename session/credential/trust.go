package credential

import (
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
	"stepbox/session/outfit"
)

// Where the sandbox has all certificates, and those that the system's store lacks: the
// person's and the session's own.
const (
	bundlePath  = "/run/stepbox/certificates.pem"
	furtherPath = "/run/stepbox/further-certificates.pem"
)

// javaStores are files in which systems keep those that Java trusts.
var javaStores = []string{"/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts"}

// Trust writes whom a sandbox trusts into a folder: the system's authorities, the person's
// and the session's own one (ca). It has the sandbox show that in the place of the host's
// store, and has its variables name it and the placeholders.
func Trust(dir string, ca []byte, person []outfit.Authority, all []policy.Credential, spec *runner.Spec) error {
	shown, java := real(outfit.Stores), real(javaStores)
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
	further := ca
	for _, a := range person {
		if to, err := filepath.EvalSymlinks(a.File); err != nil || !slices.Contains(shown, to) {
			further = slices.Concat(further, []byte("\n"), a.PEM)
		}
	}
	bundle := slices.Concat(host, []byte("\n"), further)
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
	if err := errors.Join(write("certificates.pem", bundle, append(shown, bundlePath)...), write("further-certificates.pem", further, furtherPath)); err != nil {
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

// certificates are those in a bundle that can be read, each once.
func certificates(bundle []byte) (out []*x509.Certificate) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && !slices.ContainsFunc(out, c.Equal) {
			out = append(out, c)
		}
	}
	return out
}

// environment names the certificates, and has placeholders where credentials would be.
func environment(env []string, all []policy.Credential) []string {
	set := make(map[string]string)
	for _, name := range outfit.BundleVariables {
		set[name] = bundlePath
	}
	for _, name := range outfit.FurtherVariables {
		set[name] = furtherPath
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

// Roots are those by which the hosts of credentials, and a proxy, are verified: the system's,
// and the person's but for files in the project, which an agent writes.
func (s Source) Roots(person []outfit.Authority) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates that this host trusts: %w", err)
	}
	for _, a := range person {
		if !s.within(a.File) {
			pool.AppendCertsFromPEM(a.PEM)
		}
	}
	return pool, nil
}
