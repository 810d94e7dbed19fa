package outfit

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"stepbox/policy/git"
	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
)

// BundleVariables name a file with all certificates that programs trust, in a person's
// environment: Go's, OpenSSL's and Python's; requests', curl's, git's, AWS's, pip's,
// Cargo's and Nix's.
var BundleVariables = []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE"}

// FurtherVariables name a file with certificates that programs trust besides their own
// ones: Node's and Deno's.
var FurtherVariables = []string{"NODE_EXTRA_CA_CERTS", "DENO_CERT"}

// Stores are files in which systems keep the certificates that programs trust: Debian and
// Alpine; Fedora; openSUSE; and what others read.
var Stores = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem",
}

// Authority is a file with certificates that a person's variable has programs trust.
type Authority struct {
	File string // on the host, absolute
	PEM  []byte // its certificates
}

// maxBundle is how large such a file is at most; those of whole systems have 250 KiB.
const maxBundle = 2 << 20

// Certificates reads the certificates, and nothing else, of a file that is to have
// nothing else: as PEM again.
func Certificates(file string) (out []byte, err error) {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, errors.New("it isn't there")
	}
	rest, err := git.ReadFile(real, maxBundle)
	if err != nil {
		return nil, errors.New("it can't be read as a file of at most 2 MiB")
	}
	for block := (*pem.Block)(nil); ; {
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it has more than certificates (%s)", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, errors.New("it has a certificate that isn't valid")
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	if len(out) == 0 {
		return nil, errors.New("it has no certificates, as PEM")
	}
	return out, nil
}

// trust is what has programs trust whom the person's do.
type trust struct {
	binds       []runner.Bind // copies of the certificates, at their files' paths where nothing is shown anyway
	vars        []string      // NAME=FILE
	unshown     []string      // what isn't passed, and why
	authorities []Authority
}

// system says whether a file is this system's own store: who is in it is trusted anyway.
func system(file string) bool {
	own := slices.IndexFunc(Stores, func(f string) bool { return unix.Access(f, unix.R_OK) == nil })
	return own >= 0 && file == Stores[own]
}

// certificates reads what the person's variables name. Have is what is shown besides.
func certificates(n Needs, have []runner.Bind) (t trust, err error) {
	for _, name := range slices.Concat(BundleVariables, FurtherVariables) {
		file := filepath.Clean(Variable(n.Env, name))
		if file == "." {
			continue
		}
		shown := func(dir string) bool { return manifest.Within(file, dir) }
		there := slices.ContainsFunc(append([]string{n.Workspace}, systemFolders...), shown) ||
			slices.ContainsFunc(slices.Concat(have, t.binds), func(b runner.Bind) bool { return shown(b.Target) })
		why := ""
		switch {
		case !there:
			why, err = t.show(file, n)
		case !system(file):
			if bad := t.read(file); bad != nil {
				t.unshown = append(t.unshown, fmt.Sprintf("%s passes, and Stepbox itself doesn't trust what its file %q has: %v", name, file, bad))
			}
		}
		switch {
		case err != nil:
			return trust{}, fmt.Errorf("cannot show certificates: %w", err)
		case why != "":
			t.unshown = append(t.unshown, fmt.Sprintf("%s isn't passed: its file %q isn't shown: %s", name, file, why))
		default:
			t.vars = append(t.vars, name+"="+file)
		}
	}
	if dir := Variable(n.Env, "SSL_CERT_DIR"); dir != "" {
		t.unshown = append(t.unshown, fmt.Sprintf("SSL_CERT_DIR isn't passed: folders of certificates aren't shown; name one file that has those of %q in SSL_CERT_FILE", dir))
	}
	return t, nil
}

// show has a copy of a file's certificates shown at its path, or says why not.
func (t *trust) show(file string, n Needs) (why string, err error) {
	if !filepath.IsAbs(file) {
		return "name it in full", nil
	}
	if why := Refused(file, n.Home, n.DataDir); why != "" {
		return why, nil
	}
	if err := t.read(file); err != nil {
		return err.Error(), nil
	}
	sum := sha256.Sum256([]byte(file))
	b := runner.Bind{Source: filepath.Join(n.StateDir, "certificates", hex.EncodeToString(sum[:8])), Target: file}
	if err := os.MkdirAll(filepath.Dir(b.Source), 0o700); err != nil {
		return "", err
	}
	t.binds = append(t.binds, b)
	return "", os.WriteFile(b.Source, t.authorities[len(t.authorities)-1].PEM, 0o644)
}

// read adds a file's certificates, once.
func (t *trust) read(file string) error {
	if slices.ContainsFunc(t.authorities, func(a Authority) bool { return a.File == file }) {
		return nil
	}
	text, err := Certificates(file)
	if err == nil {
		t.authorities = append(t.authorities, Authority{file, text})
	}
	return err
}
