package intercept

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const value = "sk-0123456789"

func redacted(t testing.TB, secrets []string, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(&reader{redactor: &redactor{secrets: secrets}, from: r})
	must.OK(t, err)
	return string(b)
}

// A secret is found wherever it stands and however it comes; what looks like its beginning
// is left.
func TestRedact(t *testing.T) {
	stars := strings.Repeat("*", len(value))
	long := strings.Repeat("x", window-6)
	for in, want := range map[string]string{
		"":                          "",
		value:                       stars,
		"a" + value + "b" + value:   "a" + stars + "b" + stars,
		value + value:               stars + stars,
		"sk-sk-" + value:            "sk-sk-" + stars,
		"sk-012345678":              "sk-012345678",
		"sk-01" + "sk-0123456789ab": "sk-01" + stars + "ab",
		long + value + long:         long + stars + long,
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "by bytes": iotest.OneByteReader(strings.NewReader(in)), "by halves": iotest.HalfReader(strings.NewReader(in)), "end with it": iotest.DataErrReader(strings.NewReader(in))} {
			if got := redacted(t, []string{value}, r); got != want {
				t.Errorf("%.40q %s: got %.80q", in, name, got)
			}
		}
	}
}

// A secret that ends as it begins is whole where a read ends with it.
func TestRedactBorder(t *testing.T) {
	for _, secret := range []string{"sk-0123456789s", "abcabcabc", "aaaaaaaaaa"} {
		for name, r := range map[string]io.Reader{
			"by bytes":      iotest.OneByteReader(strings.NewReader("a " + secret + " b")),
			"ends with it":  &pieces{[]byte("xx" + secret), len(secret) + 2},
			"goes on after": &pieces{[]byte("xx" + secret + "yyyyyyyyyyyyyyyyyyyyyyyyy"), len(secret) + 2},
		} {
			if got := redacted(t, []string{secret}, r); strings.Contains(got, secret) || !strings.Contains(got, strings.Repeat("*", len(secret))) {
				t.Errorf("%s %s: got %q", secret, name, got)
			}
		}
	}
}

// What can't be the beginning of a secret isn't held back.
func TestRedactAtOnce(t *testing.T) {
	r, w := io.Pipe()
	out := &reader{redactor: &redactor{secrets: []string{value}}, from: r}
	buf := make([]byte, 100)
	for _, c := range []struct{ in, want string }{{"data: x\n\n", "data: x\n\n"}, {"a sk-", "a "}, {"xyz", "sk-xyz"}} {
		go io.WriteString(w, c.in)
		if n, err := out.Read(buf); err != nil || string(buf[:n]) != c.want {
			t.Errorf("of %q came %q, %v", c.in, buf[:n], err)
		}
	}
	w.Close()
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte("a"+value+"b"), 3)
	f.Add([]byte("sk-sk-0123456789sk-012"), 1)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		size = 1 + max(0, size)%5000
		secrets := []string{value + "abc", value}
		got := redacted(t, secrets, &pieces{b, size})
		if strings.Contains(got, value) || len(got) != len(b) {
			t.Fatalf("%q became %q", b, got)
		}
		if !bytes.Contains(b, []byte(value)) && got != string(b) {
			t.Fatalf("%q became %q", b, got)
		}
	})
}

// pieces comes in pieces of a size.
type pieces struct {
	b    []byte
	size int
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(to, p.b[:min(len(p.b), p.size)])
	p.b = p.b[n:]
	return n, nil
}

// A secret within a text is found in whatever base64 that text comes, as in a token or a
// mail, and where it is escaped.
func TestRedactEncoded(t *testing.T) {
	c := Credential{Value: "sk-01234/56789?x>>", User: "me"}
	core := c.Value[2 : len(c.Value)-2]
	for before := range 7 {
		for after := range 4 {
			text := strings.Repeat("<", before) + c.Value + strings.Repeat(">", after)
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
				got := redacted(t, c.Spellings(), strings.NewReader(e.EncodeToString([]byte(text))))
				if b, _ := e.DecodeString(strings.ReplaceAll(got, "*", "A")); strings.Contains(string(b), core) || !strings.Contains(got, "***") {
					t.Errorf("%q before, %d after: got %s", text, after, got)
				}
			}
		}
	}
	if got := redacted(t, c.Spellings(), strings.NewReader(`{"key":"sk-01234\/56789?x>>"}`)); strings.Contains(got, "56789") {
		t.Errorf("got %s", got)
	}
}

// What a request asks for is a path. net/http takes other addresses too (RFC 3986,
// section 3), and writes them as they came: with one, a server that serves several hosts
// can be told another one than the credential's.
func TestCheckPath(t *testing.T) {
	c := Credential{Name: "api", Host: "api.example", Port: 443, Bearer: true}
	for line, want := range map[string]bool{
		"GET /v1": true, "GET //other.example/v1": true, "OPTIONS *": true, "GET https://api.example/v1": true,
		"GET x:http://other.example/v1": false, "GET x:other": false, "GET *": true,
		"GET /?$httpHeaders=x-goog-api-key:evil%0d%0a": false, "GET /?bearer_token=evil": false,
		"GET /?token=evil": false, "GET /?X-Goog-Signature=evil": false, "GET /?pageToken=next": true, "GET /?tokens=3": true,
	} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(line + " HTTP/1.1\r\nHost: api.example\r\n\r\n")))
		must.OK(t, err)
		if no := c.check(r); (no == nil) != want {
			t.Errorf("%s: %+v", line, no)
		}
	}
}

// A header is known to carry a credential by how its name ends as well.
func TestCarries(t *testing.T) {
	c := Credential{Header: "X-Mine"}
	for name, want := range map[string]bool{
		"X-Mine": true, "x_mine": true, "Authorization": true, "X-Vault-Token": true, "Token": true, "DD-API-KEY": true, "X_Api_Secret": true,
		"X-CSRF-Token": false, "Idempotency-Key": false, "Sec-WebSocket-Key": false, "Tokens": false, "X-GitHub-Api-Version": false, "Anthropic-Version": false,
	} {
		if c.carries(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// Only nothing and the placeholder stand for the credential.
func TestStands(t *testing.T) {
	b64 := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	with, without := &Credential{Placeholder: "ph", User: "me"}, &Credential{}
	for v, want := range map[string][2]bool{
		"": {true, true}, " ": {true, true}, "Bearer": {true, true}, "ph": {true, false}, "Bearer ph": {true, false}, "token  ph ": {true, false}, "sso-key ph": {true, false},
		"Bearer evil": {}, "evil": {}, "ph evil": {}, "Bearer ph evil": {}, b64("me:ph"): {true, false}, b64("ph:"): {true, false}, b64("ph:x-oauth-basic"): {true, false},
		b64("me:"): {true, false}, b64(":"): {true, true}, b64("evil:"): {}, b64("evil:x-oauth-basic"): {}, b64("me:evil"): {}, b64("evil"): {}, "Basic !": {}, "a=b": {},
	} {
		if got := [2]bool{with.stands(v), without.stands(v)}; got != want {
			t.Errorf("%q: got %v, want %v", v, got, want)
		}
	}
}

// The authority is good for its names alone, and its leaves for servers.
func TestAuthority(t *testing.T) {
	a, err := newAuthority([]string{"api.example"})
	must.OK(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.pem())
	for name, good := range map[string]bool{"api.example": true, "other.example": false} {
		leaf, err := a.leaf(name)
		must.OK(t, err)
		cert, err := x509.ParseCertificate(leaf.Certificate[0])
		must.OK(t, err)
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	b, err := newAuthority([]string{"api.example"})
	if err != nil || bytes.Equal(a.pem(), b.pem()) {
		t.Errorf("two are the same, %v", err)
	}
}

// A connection that says nothing, or no TLS, is over by itself and says why.
func TestServeNoTLS(t *testing.T) {
	in, err := New([]Credential{{Name: "api", Host: "api.example", Port: 443, Bearer: true, Value: value}}, Options{})
	must.OK(t, err)
	for said, want := range map[string]string{"": "left while TLS was agreed on", "GET / HTTP/1.1\r\n\r\n": "cannot agree on TLS"} {
		near, far := pair(t)
		go func() {
			io.WriteString(near, said)
			near.Close()
		}()
		err := in.Serve(context.Background(), far, Flow{Name: "api.example", Port: 443})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", said, err)
		}
	}
	near, far := pair(t)
	done := make(chan error)
	go func() { done <- in.Serve(context.Background(), far, Flow{Name: "api.example", Port: 443}) }()
	if err := tls.Client(near, &tls.Config{ServerName: "api.example"}).Handshake(); err == nil {
		t.Error("the certificate passed for one of the system's")
	}
	near.Close()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "doesn't take the session's certificate") {
		t.Errorf("got %v", err)
	}
}

// pair is a connection of this machine with itself.
func pair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err == nil {
		far, err = l.Accept()
	}
	must.OK(t, err)
	return near, far
}

// Values that can't be put in, or looked for, are refused, and not repeated.
func TestCheckValue(t *testing.T) {
	for v, good := range map[string]bool{value: true, "": false, "short": false, "with a space": false, "line\nbreak": false, "ümlaut-key": false, strings.Repeat("x", 2001): false} {
		if err := CheckValue(v); (err == nil) != good || err != nil && v != "" && strings.Contains(err.Error(), v) {
			t.Errorf("%.20q: %v", v, err)
		}
	}
}
