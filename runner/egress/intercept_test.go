package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"stepbox/runner/egress/intercept"
	"stepbox/session/e2e/must"
)

const (
	realKey     = "sk-real-0123456789abcdef"
	placeholder = "sk-stepbox-placeholder-api"
)

// apiHost is a host of the internet that a credential is for, and what came there.
type apiHost struct {
	t     testing.TB
	port  uint16
	roots *x509.CertPool
	in    *intercept.Interceptor
	box   *sandbox
	ca    string // the session's, in a file

	mu   sync.Mutex
	seen []*http.Request
}

// newAPIHost serves api.example, with and without HTTP/2, which other.example is the same address as.
func newAPIHost(t *testing.T, c intercept.Credential, handle http.HandlerFunc) *apiHost {
	t.Helper()
	a := &apiHost{t: t, roots: x509.NewCertPool()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"api.example", "other.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.OK(t, err)
	cert, err := x509.ParseCertificate(der)
	must.OK(t, err)
	a.roots.AddCert(cert)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.seen = append(a.seen, r)
		a.mu.Unlock()
		handle(w, r)
	}))
	srv.Listener.Close()
	internet.do(func() { srv.Listener, err = net.Listen("tcp", publicAddr+":0") })
	must.OK(t, err)
	srv.EnableHTTP2, srv.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	a.port = uint16(srv.Listener.Addr().(*net.TCPAddr).Port)

	c.Name, c.Host, c.Port, c.Value, c.Placeholder = "api", "api.example", a.port, realKey, placeholder
	if a.in, err = intercept.New([]intercept.Credential{c}, intercept.Options{Roots: a.roots}); err != nil {
		t.Fatal(err)
	}
	a.ca = filepath.Join(t.TempDir(), "ca.pem")
	must.OK(t, os.WriteFile(a.ca, a.in.CA(), 0o644))
	z := newZone(t, map[string][]string{"api.example": {publicAddr}, "other.example": {publicAddr}})
	a.box = newSandbox(t, Options{resolver: z.resolver(), Intercept: a.in, Judge: func(context.Context, Attempt) Verdict { return Verdict{Allow: true, Rule: "all"} }})
	return a
}

func (a *apiHost) url(path string) string {
	return fmt.Sprintf("https://api.example:%d%s", a.port, path)
}

func (a *apiHost) requests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen)
}

// client is one of the sandbox's that trusts the session's authority, or what is given.
func (a *apiHost) client(h2 bool, roots *x509.CertPool) *http.Client {
	if roots == nil {
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(a.in.CA())
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: h2, DisableCompression: true,
		DialContext: func(_ context.Context, network, addr string) (net.Conn, error) {
			host, port, _ := net.SplitHostPort(addr)
			return a.box.dial(network, net.JoinHostPort(a.box.resolve(host).String(), port), patience)
		}}
	a.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func hello200(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

// What a request carries is taken off, and the person's own is put on once, however it was
// sent. What had anything but the placeholder doesn't arrive, and is in the log.
func TestInterceptCarriers(t *testing.T) {
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	type edit = func(*http.Request)
	header := func(k, v string) edit { return func(r *http.Request) { r.Header[k] = append(r.Header[k], v) } }
	both := func(all ...edit) edit {
		return func(r *http.Request) {
			for _, e := range all {
				e(r)
			}
		}
	}
	query := func(q string) edit { return func(r *http.Request) { r.URL.RawQuery = q } }
	bearer, xkey := intercept.Credential{Bearer: true}, intercept.Credential{Header: "x-api-key"}
	for _, c := range []struct {
		name string
		cred intercept.Credential
		edit edit
		want int    // its status
		says string // what is said of a refused one
	}{
		{"nothing", xkey, func(*http.Request) {}, 200, ""},
		{"placeholder", xkey, header("X-Api-Key", placeholder), 200, ""},
		{"placeholder elsewhere", xkey, header("Authorization", "Bearer "+placeholder), 200, ""},
		{"placeholder in all", bearer, both(header("Authorization", "token "+placeholder), header("X-Api-Key", placeholder), query("key="+placeholder+"&a=1")), 200, ""},
		{"empty ones", bearer, both(header("Authorization", ""), header("Cookie", ""), query("key=&a=1")), 200, ""},
		{"git's user", intercept.Credential{User: "x-access-token"}, header("Authorization", basic("x-access-token", placeholder)), 200, ""},
		{"in the query", intercept.Credential{Query: "key"}, query("a=1&key=" + placeholder + "&b=%20"), 200, ""},
		{"key", xkey, header("X-Api-Key", "sk-evil"), 403, "X-Api-Key"},
		{"second key", xkey, both(header("X-Api-Key", placeholder), header("X-Api-Key", "sk-evil")), 403, "X-Api-Key"},
		{"the real one", xkey, header("X-Api-Key", realKey), 403, "X-Api-Key"},
		{"underscores", xkey, header("X_api_key", "sk-evil"), 403, "X_api_key"},
		{"bearer", xkey, header("Authorization", "Bearer sk-evil"), 403, "Authorization"},
		{"basic", xkey, header("Authorization", basic("sk-evil", "")), 403, "Authorization"},
		{"negotiate", xkey, header("Authorization", "Negotiate AAAA"), 403, "Authorization"},
		{"proxy", xkey, header("Proxy-Authorization", "Bearer sk-evil"), 403, "Proxy-Authorization"},
		{"cookie", xkey, header("Cookie", "session=evil"), 403, "Cookie"},
		{"google", bearer, header("X-Goog-Api-Key", "evil"), 403, "X-Goog-Api-Key"},
		{"query", bearer, query("a=1&key=evil"), 403, "parameter key"},
		{"query, escaped", bearer, query("%6bey=evil"), 403, "parameter key"},
		{"query, capital", bearer, query("ACCESS_TOKEN=evil"), 403, "parameter ACCESS_TOKEN"},
		{"query, semicolon", bearer, query("a=1;key=evil"), 400, "two ways"},
		{"query, broken", bearer, query("key=%zz"), 400, "can't be read"},
		{"host", xkey, func(r *http.Request) { r.Host = "other.example" }, 421, "another host"},
		{"host's port", xkey, func(r *http.Request) { r.Host = "api.example:1" }, 421, "another host"},
		{"method", xkey, func(r *http.Request) { r.Method = "TRACE" }, 405, "method"},
		{"method named", intercept.Credential{Bearer: true, Methods: []string{"POST"}}, func(*http.Request) {}, 405, "method"},
		{"method hidden", intercept.Credential{Bearer: true, Methods: []string{"GET"}}, header("X-Http-Method-Override", "DELETE"), 405, "method"},
		{"method in the query", intercept.Credential{Bearer: true, Methods: []string{"GET"}}, query("%24httpMethod=DELETE"), 405, "method"},
		{"method in the query, other", intercept.Credential{Bearer: true, Methods: []string{"GET"}}, query("_method=delete"), 405, "method"},
		{"query, Google's", bearer, query("$key=evil"), 403, "parameter $key"},
		{"query, a list", bearer, query("key[]=evil"), 403, "parameter key[]"},
		{"path", intercept.Credential{Bearer: true, Paths: []string{"/v1/**"}}, func(r *http.Request) { r.URL.Path = "/v2/x" }, 403, "path"},
		{"path up", intercept.Credential{Bearer: true, Paths: []string{"/v1/**"}}, func(r *http.Request) { r.URL.Path = "/v1/../v2" }, 403, "path"},
		{"path hidden", intercept.Credential{Bearer: true, Paths: []string{"/v1/**"}}, func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/v1/../v2", "/v1%2f..%2fv2" }, 403, "path"},
		{"path let through", intercept.Credential{Bearer: true, Paths: []string{"/v1/**"}}, func(r *http.Request) { r.URL.Path = "/v1/a/b" }, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPIHost(t, c.cred, hello200)
			for i, h2 := range []bool{false, true} {
				if c.name == "host's port" && h2 {
					continue
				}
				r, err := http.NewRequest("GET", a.url("/v1/x"), nil)
				must.OK(t, err)
				c.edit(r)
				resp, err := a.client(h2, nil).Do(r)
				must.OK(t, err)
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != c.want || !strings.Contains(string(body), c.says) {
					t.Fatalf("h2 %v: got %d %s, want %d with %q", h2, resp.StatusCode, body, c.want, c.says)
				}
				got := a.requests()
				if c.want != 200 {
					if len(got) > 0 {
						t.Fatalf("it arrived: %v %v", got[0].URL, got[0].Header)
					}
					logged := a.box.wait("the refusal", func(at Attempt) bool { return at.Refused > 0 && len(at.Refusals) > 0 && at.ID > int64(i) })
					if why := logged.Refusals[0]; !strings.Contains(why.Why, c.says) || strings.Contains(fmt.Sprint(logged), "evil") && !strings.Contains(c.name, "path") {
						t.Errorf("logged as %+v", logged)
					}
					continue
				}
				a.checkOne(t, got[i], c.cred)
			}
		})
	}
}

// checkOne checks that a request that arrived carries the real one alone.
func (a *apiHost) checkOne(t *testing.T, r *http.Request, c intercept.Credential) {
	t.Helper()
	all := fmt.Sprint(r.Header, r.URL.RawQuery)
	n := strings.Count(all, realKey)
	want := 1
	if c.User != "" {
		want = 0
		if user, pass, _ := r.BasicAuth(); user != c.User || pass != realKey {
			t.Errorf("it came as %q %q", user, pass)
		}
	}
	if n != want || strings.Contains(all, placeholder) || r.Host != fmt.Sprintf("api.example:%d", a.port) {
		t.Errorf("it came to %s with %s", r.Host, all)
	}
}

// What a host answers goes through without the credential, however it is cut, and at once.
func TestInterceptAnswers(t *testing.T) {
	next := make(chan bool)
	a := newAPIHost(t, intercept.Credential{Header: "x-api-key"}, func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-Api-Key")
		flush := func(parts ...string) {
			for _, p := range parts {
				io.WriteString(w, p)
				w.(http.Flusher).Flush()
			}
		}
		switch r.URL.Path {
		case "/echo":
			w.Header().Set("X-Was", "it was "+key)
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("Alt-Svc", `h3=":443"`)
			fmt.Fprintf(w, "you are %s, %s", key, base64.StdEncoding.EncodeToString([]byte(key)))
		case "/split":
			for i := range len(key) {
				flush(key[i : i+1])
			}
			flush("!")
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, "you are "+key)
			z.Close()
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "xxxx")
		case "/trailer":
			w.Header().Set("Trailer", "X-End")
			flush("hello")
			w.Header().Set("X-End", key)
		case "/sse":
			w.Header().Set("Content-Type", "text/event-stream")
			for range 3 {
				flush("data: x\n\n")
				<-next
			}
		case "/name":
			w.Header()["X-"+key] = []string{"x"}
			w.Header()["Trailer"] = []string{"Y-" + key}
			flush("named")
			w.Header()["Y-"+key] = []string{"x"}
		case "/asked":
			fmt.Fprint(w, r.Header.Get("Accept-Encoding"))
		}
	})
	stars := strings.Repeat("*", len(realKey))
	for _, c := range []struct{ path, want string }{
		{"/echo", "you are " + stars + ", " + strings.Repeat("*", len(base64.StdEncoding.EncodeToString([]byte(realKey))))},
		{"/split", stars + "!"}, {"/gzip", "you are " + stars}, {"/trailer", "hello"}, {"/name", "named"}, {"/asked", "identity"},
	} {
		for _, h2 := range []bool{false, true} {
			resp, err := a.client(h2, nil).Get(a.url(c.path))
			must.OK(t, err)
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(body) != c.want {
				t.Errorf("%s: got %q, %v, want %q", c.path, body, err, c.want)
			}
			if all := fmt.Sprint(resp.Header, resp.Trailer); strings.Contains(strings.ToLower(all), realKey) || strings.Contains(all, "Cookie") || strings.Contains(all, "Alt-Svc") {
				t.Errorf("%s: got %s", c.path, all)
			}
			if c.path == "/trailer" && resp.Trailer.Get("X-End") != stars {
				t.Errorf("got trailer %v", resp.Trailer)
			}
		}
	}
	resp, err := a.client(true, nil).Get(a.url("/br"))
	if err != nil || resp.StatusCode != 502 {
		t.Fatalf("got %v, %v", resp, err)
	}
	resp.Body.Close()
	resp, err = a.client(false, nil).Get(a.url("/sse"))
	must.OK(t, err)
	defer resp.Body.Close()
	buf := make([]byte, 100)
	for range 3 { // each before the next is made
		if n, err := resp.Body.Read(buf); err != nil || string(buf[:n]) != "data: x\n\n" {
			t.Fatalf("got %q, %v", buf[:n], err)
		}
		next <- true
	}
}

// What a host says that isn't HTTP isn't repeated with the credential.
func TestInterceptBrokenAnswers(t *testing.T) {
	a := newAPIHost(t, intercept.Credential{Header: "x-api-key"}, func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-Api-Key")
		w.Header().Set("Content-Encoding", key)
		w.Header().Set("Connection", "close")
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			fmt.Fprintf(c, map[string]string{"/status": "HTTP/1.1 %s bad\r\n\r\n", "/line": "HTTP/1.1 200 OK\r\n%s\r\n\r\n", "/coding": "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n\r\n"}[r.URL.Path], key)
			c.Close()
		}
	})
	for _, path := range []string{"/status", "/line", "/coding"} {
		resp, err := a.client(false, nil).Get(a.url(path))
		must.OK(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 502 || strings.Contains(string(body), realKey[:10]) {
			t.Errorf("%s: got %d %q, %v", path, resp.StatusCode, body, err)
		}
	}
}

func portOf(r *http.Request) string { _, port, _ := net.SplitHostPort(r.Host); return port }

// A redirect to another host is followed by the program, which has nothing to give there.
func TestInterceptRedirect(t *testing.T) {
	h := newAPIHost(t, intercept.Credential{Header: "x-api-key"}, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "api.") {
			http.Redirect(w, r, "https://other.example:"+portOf(r)+"/there", http.StatusTemporaryRedirect)
		}
	})
	both := h.roots.Clone()
	both.AppendCertsFromPEM(h.in.CA())
	client := h.client(true, both)
	client.CheckRedirect = nil
	r, err := http.NewRequest("GET", h.url("/"), nil)
	must.OK(t, err)
	r.Header.Set("X-Api-Key", placeholder)
	resp, err := client.Do(r)
	must.OK(t, err)
	resp.Body.Close()
	if got := h.requests(); len(got) != 2 || got[1].Header.Get("X-Api-Key") != placeholder || !strings.HasPrefix(got[1].Host, "other.example:") {
		t.Errorf("it arrived as %v", got)
	}
}

// Another host isn't looked into: its own certificate is seen, and nothing is put on.
func TestInterceptOnlyNamed(t *testing.T) {
	h := newAPIHost(t, intercept.Credential{Header: "x-api-key"}, hello200)
	resp, err := h.client(true, h.roots).Get(fmt.Sprintf("https://other.example:%d/there", h.port))
	must.OK(t, err)
	resp.Body.Close()
	if got := h.requests()[0].Header; got.Get("X-Api-Key") != "" {
		t.Errorf("it got %v", got)
	}
	if at := h.box.wait("other", func(a Attempt) bool { return a.Name == "other.example" }); at.Credential != "" {
		t.Errorf("logged as %+v", at)
	}
	// The session's authority is good for no other name.
	leafless := x509.NewCertPool()
	leafless.AppendCertsFromPEM(h.in.CA())
	if resp, err := h.client(true, leafless).Get(fmt.Sprintf("https://other.example:%d/there", h.port)); err == nil {
		resp.Body.Close()
		t.Error("the real host's certificate passed for one of the session's")
	}
}

// A program that knows the host's certificate fails, and the log says what to do.
func TestInterceptPinnedClient(t *testing.T) {
	h := newAPIHost(t, intercept.Credential{Header: "x-api-key"}, hello200)
	if resp, err := h.client(true, h.roots).Get(h.url("/")); err == nil {
		resp.Body.Close()
		t.Fatal("it got an answer")
	}
	at := h.box.wait("the failure", func(a Attempt) bool { return !a.Open && a.Failure != "" })
	if !strings.Contains(at.Failure, "doesn't take the session's certificate") || at.Credential != "api" {
		t.Errorf("logged as %+v", at)
	}
}

// A host whose certificate isn't good gets nothing.
func TestInterceptVerifies(t *testing.T) {
	h := newAPIHost(t, intercept.Credential{Header: "x-api-key"}, hello200)
	other, err := intercept.New([]intercept.Credential{{Name: "api", Host: "api.example", Port: h.port, Header: "x-api-key", Value: realKey}}, intercept.Options{Roots: x509.NewCertPool()})
	must.OK(t, err)
	h.box.gw.o.Intercept, h.in = other, other
	resp, err := h.client(true, nil).Get(h.url("/"))
	must.OK(t, err)
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 502 || !strings.Contains(string(body), "can't be verified") || len(h.requests()) > 0 {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

// A WebSocket is refused unless it is named, and then has the credential and no secrets.
func TestInterceptWebSocket(t *testing.T) {
	for _, named := range []bool{false, true} {
		h := newAPIHost(t, intercept.Credential{Bearer: true, WebSocket: named}, func(w http.ResponseWriter, r *http.Request) {
			websocket.Server{Handler: func(c *websocket.Conn) {
				websocket.Message.Send(c, r.Header.Get("Authorization"))
				var m string
				websocket.Message.Receive(c, &m)
				websocket.Message.Send(c, m)
			}}.ServeHTTP(w, r)
		})
		config, err := websocket.NewConfig(strings.Replace(h.url("/ws"), "https", "wss", 1), "https://api.example")
		must.OK(t, err)
		config.Header.Set("Authorization", "Bearer "+placeholder)
		conn, err := h.box.dial("tcp", fmt.Sprintf("%s:%d", h.box.resolve("api.example"), h.port), patience)
		must.OK(t, err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(h.in.CA())
		secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "api.example"})
		ws, err := websocket.NewClient(config, secure)
		if !named {
			if err == nil || len(h.requests()) > 0 {
				t.Errorf("it was let through: %v", err)
			}
			conn.Close()
			continue
		}
		must.OK(t, err)
		var m string
		if err := websocket.Message.Receive(ws, &m); err != nil || m != "Bearer "+strings.Repeat("*", len(realKey)) {
			t.Errorf("got %q, %v", m, err)
		}
		websocket.Message.Send(ws, "hello")
		if err := websocket.Message.Receive(ws, &m); err != nil || m != "hello" {
			t.Errorf("got %q, %v", m, err)
		}
		ws.Close()
	}
}

// QUIC to the host is refused, so that programs fall back.
func TestInterceptQUIC(t *testing.T) {
	h := newAPIHost(t, intercept.Credential{Bearer: true}, hello200)
	conn, err := h.box.dial("udp", fmt.Sprintf("%s:%d", h.box.resolve("api.example"), h.port), patience)
	must.OK(t, err)
	defer conn.Close()
	conn.Write([]byte("hello"))
	if at := h.box.wait("the datagram", func(a Attempt) bool { return a.Protocol == "udp" && !a.Open }); at.Rule != ruleQUIC || at.Verdict != verdictDeny {
		t.Errorf("logged as %+v", at)
	}
}

// Programs as people have them take the session's certificate by their variables.
func TestInterceptTools(t *testing.T) {
	h := newAPIHost(t, intercept.Credential{Bearer: true}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/info/refs"):
			fmt.Fprint(w, "0123456789012345678901234567890123456789\trefs/heads/main\n")
		case r.Header.Get("Authorization") == "Bearer "+realKey:
			fmt.Fprint(w, "hello")
		}
	})
	h.box.resolvConf()
	url := h.url("/")
	fetch := `fetch(process.argv[1],{headers:{authorization:"Bearer "+process.env.KEY}}).then(r=>r.text()).then(t=>console.log(t),e=>{console.log(e.cause&&e.cause.code);process.exit(1)})`
	urlopen := "import os,sys,urllib.request as u\nprint(u.urlopen(u.Request(sys.argv[1],headers={'Authorization':'Bearer '+os.environ['KEY']})).read().decode())"
	env := []string{"KEY=" + placeholder, "SSL_CERT_FILE=" + h.ca, "CURL_CA_BUNDLE=" + h.ca, "NODE_EXTRA_CA_CERTS=" + h.ca, "GIT_SSL_CAINFO=" + h.ca}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"curl", []string{"-sS", "--http1.1", "-H", "Authorization: Bearer " + placeholder, url}, "hello"},
		{"curl", []string{"-sS", "--http2", "-H", "Authorization: Bearer " + placeholder, url}, "hello"},
		{"python3", []string{"-c", urlopen, url}, "hello"},
		{"node", []string{"-e", fetch, url}, "hello"},
		{"git", []string{"ls-remote", url + "a.git", "main"}, "0123456789012345678901234567890123456789\trefs/heads/main"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.box.t = t
			if out, err := h.box.runIn(env, c.name, c.args...); err != nil || out != c.want {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
	h.box.t = t
}

// Bytes of two framings are one request of one framing by the time that they arrive.
func TestInterceptFraming(t *testing.T) {
	bodies := make(chan string, 10)
	h := newAPIHost(t, intercept.Credential{Bearer: true}, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- fmt.Sprint(r.Method, r.ContentLength, r.TransferEncoding, string(b))
	})
	send := func(raw string) string {
		conn, err := h.box.dial("tcp", fmt.Sprintf("%s:%d", h.box.resolve("api.example"), h.port), patience)
		must.OK(t, err)
		defer conn.Close()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(h.in.CA())
		secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "api.example"})
		io.WriteString(secure, strings.ReplaceAll(raw, "HOST", fmt.Sprintf("api.example:%d", h.port)))
		secure.SetReadDeadline(time.Now().Add(patience))
		var out bytes.Buffer
		io.Copy(&out, secure)
		return out.String()
	}
	for _, raw := range []string{
		"POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: HOST\r\nX : y\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: HOST\r\nHost: other.example\r\n\r\n",
		"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\nConnection: close\r\n\r\n",
		"GET https://other.example/ HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n",
		"GET x:http://other.example/ HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n",
		"GET x:other HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n",
		"GET https://u:p@HOST/ HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n",
	} {
		if got := send(raw); !strings.HasPrefix(got, "HTTP/1.1 4") && !strings.HasPrefix(got, "HTTP/1.1 501") {
			t.Errorf("%q got %q", raw, got)
		}
	}
	if len(bodies) > 0 {
		t.Errorf("it arrived: %q", <-bodies)
	}
	if got := send("POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n"); strings.HasPrefix(got, "HTTP/1.1 200") {
		if b := <-bodies; !strings.HasSuffix(b, "hello") {
			t.Errorf("it arrived as %q", b)
		}
	}
}

// A host that agrees to a WebSocket says nothing of the credential either: not in its status,
// its header, nor in what follows.
func TestInterceptSwitches(t *testing.T) {
	a := newAPIHost(t, intercept.Credential{Bearer: true, WebSocket: true}, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		fmt.Fprintf(conn, "HTTP/1.1 101 %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Was: %s\r\nSet-Cookie: a=b\r\n\r\nkey %s\n", key, key, key)
	})
	req, err := http.NewRequest("GET", a.url("/"), nil)
	must.OK(t, err)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	resp, err := a.client(false, nil).Do(req)
	must.OK(t, err)
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // it ends as the connection does
	said := fmt.Sprintln(resp.Status, resp.Header, string(body))
	if resp.StatusCode != http.StatusSwitchingProtocols || strings.Contains(said, realKey) || !strings.Contains(said, "X-Was:[***") || !strings.Contains(said, "key ***") || resp.Header.Get("Set-Cookie") != "" {
		t.Errorf("the sandbox is told %s", said)
	}
}
