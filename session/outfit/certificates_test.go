package outfit

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// certificate makes one, and its key, as PEM.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, &k.PublicKey, k)
	must.OK(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	must.OK(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// Certificates of a file are shown, and nothing else that is in it: one with a key isn't.
func TestCertificates(t *testing.T) {
	cert, key := certificate(t)
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	filled(t, map[string]string{
		dir + "/good": "# token: hunter2\n" + cert + "\nhunter2\n" + cert, dir + "/key": cert + key, dir + "/text": "hunter2", dir + "/torn": strings.Replace(cert, "\nMI", "\nAA", 1),
		dir + "/huge": cert + strings.Repeat("x", maxBundle), home + "/.ssh/ca": cert, dir + "/project/ca": cert, dir + "/project/torn": strings.Replace(cert, "\nMI", "\nAA", 1), dir + "/data/x": "",
	})
	must.OK(t, unix.Mkfifo(dir+"/pipe", 0o600))
	must.OK(t, os.Symlink("good", dir+"/link"))
	n := Needs{Home: home, Workspace: dir + "/project", DataDir: dir + "/data", StateDir: dir + "/data/s"}
	for file, want := range map[string]struct {
		binds  int
		why    string
		passes bool
	}{
		dir + "/good": {binds: 1}, dir + "/link": {binds: 1}, dir + "/project/ca": {}, dir + "/project/torn": {why: "SSL_CERT_FILE passes, and Stepbox itself doesn't trust", passes: true}, "/etc/ssl/certs/ca-certificates.crt": {},
		dir + "/key": {why: "more than certificates (PRIVATE KEY)"}, dir + "/text": {why: "no certificates"}, dir + "/torn": {why: "isn't valid"}, dir + "/huge": {why: "at most 2 MiB"},
		dir + "/pipe": {why: "neither a folder nor a file"}, dir: {why: "holds it"}, dir + "/gone": {why: "isn't there"}, home + "/.ssh/ca": {why: "never shown"}, "ca.pem": {why: "in full"}, dir + "/data/x": {why: "never shown"},
	} {
		n.Env = []string{"SSL_CERT_FILE=" + file}
		got, err := certificates(n, nil)
		binds, vars, unshown := got.binds, got.vars, got.unshown
		if err != nil || len(binds) != want.binds || len(vars) == 1 != (want.why == "" || want.passes) || len(unshown) == 1 != (want.why != "") || want.why != "" && !strings.Contains(unshown[0], want.why) {
			t.Errorf("%s: %+v, %q, %q, %v", file, binds, vars, unshown, err)
		}
		for _, b := range binds {
			text, err := os.ReadFile(b.Source)
			if err != nil || bytes.Contains(text, []byte("hunter2")) || strings.Count(string(text), "BEGIN") != 2 || b.Target != file {
				t.Errorf("%s shows %q at %s, %v", file, text, b.Target, err)
			}
		}
	}
	n.Env = []string{"SSL_CERT_FILE=" + dir + "/good", "NODE_EXTRA_CA_CERTS=" + dir + "/good", "GIT_SSL_CAINFO="}
	if got, err := certificates(n, nil); err != nil || len(got.binds) != 1 || len(got.authorities) != 1 || !slices.Equal(got.vars, n.Env[:2]) {
		t.Errorf("the same twice: %+v, %v", got, err)
	}
	n.Env = []string{"SSL_CERT_DIR=/etc/company"}
	if got, err := certificates(n, nil); err != nil || len(got.unshown) != 1 || !strings.Contains(got.unshown[0], "SSL_CERT_FILE") {
		t.Errorf("a folder: %+v, %v", got, err)
	}
}

func FuzzCertificates(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	file := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, text []byte) {
		must.OK(t, os.WriteFile(file, text, 0o600))
		if out, err := Certificates(file); err == nil && bytes.Contains(out, []byte("PRIVATE")) {
			t.Errorf("%q", out)
		}
	})
}
