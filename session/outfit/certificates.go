package outfit

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
)

// certificateVariables name files with certificates that programs trust, in a person's
// environment: Go's, OpenSSL's and Python's, Node's, curl's, git's, pip's, Cargo's.
var certificateVariables = []string{
	"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "CARGO_HTTP_CAINFO",
}

// maxBundle is how large such a file is at most; those of whole systems have 250 KiB.
const maxBundle = 2 << 20

// Certificates reads the certificates, and nothing else, of a file that is to have
// nothing else: as PEM again.
func Certificates(file string) (out []byte, err error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.New("it can't be read")
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxBundle {
		return nil, errors.New("it isn't a file of at most 2 MiB")
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxBundle))
	if err != nil {
		return nil, errors.New("it can't be read")
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

// certificates has programs trust whom the person's do: the variables that name files,
// and what is shown at their paths, where nothing is anyway: copies of the certificates
// alone. Unshown says which aren't, and why.
func certificates(n Needs, have []runner.Bind) (binds []runner.Bind, vars, unshown []string, err error) {
	for _, name := range certificateVariables {
		file := filepath.Clean(Variable(n.Env, name))
		if file == "." {
			continue
		}
		refuse := func(why string) {
			unshown = append(unshown, fmt.Sprintf("%s isn't passed: its file %q isn't shown: %s", name, file, why))
		}
		shown := func(dir string) bool { return manifest.Within(file, dir) }
		there := slices.ContainsFunc(append([]string{n.Workspace}, systemFolders...), shown) ||
			slices.ContainsFunc(slices.Concat(have, binds), func(b runner.Bind) bool { return shown(b.Target) })
		if !there {
			if !filepath.IsAbs(file) {
				refuse("name it in full")
				continue
			}
			if why := Refused(file, n.Home, n.DataDir); why != "" {
				refuse(why)
				continue
			}
			text, err := Certificates(file)
			if err != nil {
				refuse(err.Error())
				continue
			}
			sum := sha256.Sum256([]byte(file))
			b := runner.Bind{Source: filepath.Join(n.StateDir, "certificates", hex.EncodeToString(sum[:8])), Target: file}
			if err = os.MkdirAll(filepath.Dir(b.Source), 0o700); err == nil {
				err = os.WriteFile(b.Source, text, 0o644)
			}
			if err != nil {
				return nil, nil, nil, fmt.Errorf("cannot show certificates: %w", err)
			}
			binds = append(binds, b)
		}
		vars = append(vars, name+"="+file)
	}
	return binds, vars, unshown, nil
}
