package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stepbox/runner"
	"stepbox/session/e2e/must"
	"stepbox/session/outfit"
)

// authority makes a certificate that signs others.
func authority(t *testing.T, serial int64) (*x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.OK(t, err)
	cert, err := x509.ParseCertificate(der)
	must.OK(t, err)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// A sandbox trusts the system's authorities, the person's and the session's, by whatever
// variable; programs with authorities of their own are told of the latter two.
func TestTrust(t *testing.T) {
	own, ownPEM := authority(t, 1)
	corporate, corporatePEM := authority(t, 2)
	person := []outfit.Authority{{File: "/home/me/corporate.pem", PEM: corporatePEM}}
	var system []*x509.Certificate
	if shown := real(outfit.Stores); len(shown) > 0 {
		text, err := os.ReadFile(shown[0])
		must.OK(t, err)
		system = certificates(text)
		person = append(person, outfit.Authority{File: shown[0], PEM: text})
	}
	spec := runner.Spec{Env: []string{"A=b", "SSL_CERT_FILE=/home/me/corporate.pem", "NODE_EXTRA_CA_CERTS=/home/me/corporate.pem"}}
	must.OK(t, Trust(t.TempDir(), ownPEM, person, nil, &spec))
	for target, want := range map[string][]*x509.Certificate{bundlePath: append(system, own, corporate), furtherPath: {own, corporate}} {
		i := slices.IndexFunc(spec.Binds, func(b runner.Bind) bool { return b.Target == target })
		if i < 0 {
			t.Fatalf("%s isn't shown: %+v", target, spec.Binds)
		}
		text, err := os.ReadFile(spec.Binds[i].Source)
		if got := certificates(text); err != nil || !slices.EqualFunc(got, want, (*x509.Certificate).Equal) {
			t.Errorf("%s has %d certificates, want %d; %v", target, len(got), len(want), err)
		}
	}
	if len(spec.Env) != 1+len(outfit.BundleVariables)+len(outfit.FurtherVariables) || !slices.Contains(spec.Env, "SSL_CERT_FILE="+bundlePath) || !slices.Contains(spec.Env, "NODE_EXTRA_CA_CERTS="+furtherPath) {
		t.Errorf("the variables are %q", spec.Env)
	}
}

// The hosts of credentials are verified by the person's authorities too, but not by those of
// a file that an agent may have written.
func TestRoots(t *testing.T) {
	corporate, corporatePEM := authority(t, 1)
	forged, forgedPEM := authority(t, 2)
	project, outside := t.TempDir(), t.TempDir()
	link := filepath.Join(outside, "link")
	must.OK(t, os.WriteFile(filepath.Join(project, "ca"), forgedPEM, 0o600))
	must.OK(t, os.Symlink(filepath.Join(project, "ca"), link))
	pool, err := Source{Project: project}.Roots([]outfit.Authority{
		{File: filepath.Join(outside, "corporate"), PEM: corporatePEM}, {File: filepath.Join(project, "ca"), PEM: forgedPEM}, {File: link, PEM: forgedPEM},
	})
	must.OK(t, err)
	for c, want := range map[*x509.Certificate]bool{corporate: true, forged: false} {
		if _, err := c.Verify(x509.VerifyOptions{Roots: pool}); (err == nil) != want {
			t.Errorf("serial %s: %v", c.SerialNumber, err)
		}
	}
}
