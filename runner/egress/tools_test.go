package egress

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// run starts a program of the distribution inside, with a resolv.conf of the sandbox's,
// and gives what it prints.
func (s *sandbox) run(name string, args ...string) (string, error) {
	s.t.Helper()
	return s.runIn(nil, name, args...)
}

// runIn is run with more in its environment, in an empty folder that is its HOME.
func (s *sandbox) runIn(env []string, name string, args ...string) (string, error) {
	s.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		s.t.Skipf("%s isn't installed", name)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = s.t.TempDir()
	cmd.Env = append(append(os.Environ(), "HOME="+cmd.Dir, "NO_PROXY=*", "http_proxy=", "https_proxy="), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.do(func() { err = cmd.Start() })
	must.OK(s.t, err)
	err = cmd.Wait()
	return strings.TrimSpace(out.String()), err
}

// resolvConf has programs of the sandbox's thread use its name server: the file is put
// over the host's in a mount namespace of the thread.
func (s *sandbox) resolvConf() {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "resolv.conf")
	must.OK(s.t, os.WriteFile(file, []byte("nameserver "+Nameserver+"\n"), 0o644))
	var err error
	s.do(func() {
		if err = unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return
		}
		if err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err == nil {
			err = unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, "")
		}
	})
	if err != nil {
		s.t.Skipf("cannot give programs a resolv.conf: %v", err)
	}
}

// Programs as people have them resolve a name, reach it when it is allowed and are
// refused when it isn't; what they ask for is what is logged.
func TestTools(t *testing.T) {
	const hash = "0123456789012345678901234567890123456789"
	pkg := npmPackage(t, "a", "1.2.3")
	served := make(chan string, 100)
	at := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		served <- r.Host
		switch r.URL.Path {
		case "/a.git/info/refs":
			fmt.Fprint(w, hash+"\trefs/heads/main\n")
		case "/a":
			fmt.Fprintf(w, `{"name": "a", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {"name": "a", "version": "1.2.3",
				"dist": {"tarball": "http://%s/a.tgz", "shasum": "%x"}}}}`, r.Host, sha1.Sum(pkg))
		case "/a.tgz":
			w.Write(pkg)
		case "/mod.example/a/@v/list":
			fmt.Fprintln(w, "v1.2.3")
		case "/mod.example/a/@v/v1.2.3.info":
			fmt.Fprint(w, `{"Version": "v1.2.3"}`)
		case "/mod.example/a/@v/v1.2.3.mod":
			fmt.Fprintln(w, "module mod.example/a")
		case "/ws":
			websocket.Server{Handler: func(c *websocket.Conn) { // no browser, it says no Origin
				for m := "welcome"; websocket.Message.Send(c, m) == nil && websocket.Message.Receive(c, &m) == nil; {
				}
			}}.ServeHTTP(w, r)
		default:
			fmt.Fprint(w, "hello")
		}
	})
	z := newZone(t, map[string][]string{"good.example": {publicAddr}, "bad.example": {publicAddr}})
	port := fmt.Sprint(at)
	url := func(name string) string { return "http://" + name + ".example:" + port + "/" }
	fetch := `fetch(process.argv[1]).then(r=>r.text()).then(t=>console.log(t),e=>{console.log(e.cause&&e.cause.code);process.exit(1)})`
	// The server speaks first, and what it gets comes back, in messages of every length.
	chat := `let lengths=[5,70000,200],said=[],w=new WebSocket(process.argv[1].replace("http","ws")+"ws");
w.onmessage=e=>{said.push(e.data=="welcome"?e.data:e.data.length);lengths.length?w.send("x".repeat(lengths.shift())):w.close()};
w.onclose=e=>console.log(said.join(" "));w.onerror=e=>{console.log("cannot connect: "+e.message);process.exit(1)}`
	install := `npm install a --registry "$1" --cache cache --fetch-retries 0 --no-audit --no-fund --no-update-notifier --loglevel error >"$HOME/said" 2>&1 || { cat "$HOME/said"; exit 1; }
node -p 'require("a")'`
	urlopen := "import sys,urllib.request as u\nprint(u.urlopen(sys.argv[1]).read().decode())"
	for _, c := range []struct {
		tool, does string
		args       func(name string) []string
		want       string
		lacks      string // what a version says that can't do this
	}{
		{"curl", "", func(n string) []string { return []string{"-sS", url(n)} }, "hello", ""},
		{"python3", "", func(n string) []string { return []string{"-c", urlopen, url(n)} }, "hello", ""},
		{"node", "", func(n string) []string { return []string{"-e", fetch, url(n)} }, "hello", ""},
		{"node", "WebSocket", func(n string) []string { return []string{"--experimental-websocket", "-e", chat, url(n)} }, "welcome 5 70000 200", "bad option"},
		{"git", "", func(n string) []string { return []string{"ls-remote", url(n) + "a.git", "main"} }, hash + "\trefs/heads/main", ""},
		{"sh", "npm install", func(n string) []string { return []string{"-c", install, "sh", url(n)} }, "a of 1.2.3", "npm: not found"},
		{"go", "list", func(n string) []string {
			return []string{"list", "-m", "-f", "{{.Version}}", "mod.example/a@latest"}
		}, "v1.2.3", ""},
	} {
		t.Run(strings.TrimSuffix(c.tool+" "+c.does, " "), func(t *testing.T) {
			s := newSandbox(t, Options{resolver: z.resolver(), Judge: func(_ context.Context, a Attempt) Verdict {
				return Verdict{Allow: a.Name == "good.example" && a.Protocol == "tcp", Rule: "only good"}
			}})
			s.resolvConf()
			run := func(name string) (string, error) {
				// Without a folder for its configuration Go starts no telemetry of its own, which would outlive it.
				env := []string{"GOPROXY=" + url(name), "GOSUMDB=off", "GOTOOLCHAIN=local", "GOFLAGS=", "GOPATH=", "GOMODCACHE=", "GOCACHE=", "XDG_CONFIG_HOME=none"}
				return s.runIn(env, c.tool, c.args(name)...)
			}
			out, err := run("good")
			if c.lacks != "" && strings.Contains(out, c.lacks) {
				t.Skipf("this machine's %s cannot: %s", c.tool, out)
			}
			if err != nil || out != c.want {
				t.Fatalf("%s, %v", out, err)
			}
			if host := <-served; host != "good.example:"+port {
				t.Errorf("it asked for %s", host)
			}
			s.waitClosed("good.example")
			out, err = run("bad")
			if err == nil || !strings.Contains(strings.ToLower(out), "refused") && !strings.Contains(out, "ECONNREFUSED") && !strings.Contains(out, "onnect") {
				t.Errorf("denied: %s, %v", out, err)
			}
			if a := s.waitClosed("bad.example"); a.Verdict != "deny" {
				t.Errorf("logged %+v", a)
			}
		})
	}
	for _, name := range z.questions() {
		if name == "bad.example" {
			t.Error("a denied name was asked for upstream")
		}
	}
}

// npmPackage is a package whose value says what it is, as a registry has it.
func npmPackage(t *testing.T, name, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for file, text := range map[string]string{
		"package.json": fmt.Sprintf(`{"name": %q, "version": %q}`, name, version),
		"index.js":     fmt.Sprintf("module.exports = %q", name+" of "+version),
	} {
		err := w.WriteHeader(&tar.Header{Name: "package/" + file, Mode: 0o644, Size: int64(len(text))})
		if _, err2 := io.WriteString(w, text); err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
	}
	must.OK(t, errors.Join(w.Close(), z.Close()))
	return b.Bytes()
}

// A WebSocket for another host than was allowed doesn't come about; the server doesn't
// hear of it.
func TestWebSocketForAnotherHost(t *testing.T) {
	served := make(chan string, 10)
	at := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		served <- r.Host
		websocket.Handler(func(c *websocket.Conn) { io.Copy(c, c) }).ServeHTTP(w, r)
	})
	z := newZone(t, map[string][]string{"good.example": {publicAddr}})
	s := newSandbox(t, Options{resolver: z.resolver(), Judge: allow})
	open := func(host string) error {
		conn, err := s.connect("good.example", uint16(at))
		must.OK(t, err)
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		config, err := websocket.NewConfig("ws://"+host+"/", "http://"+host+"/")
		must.OK(t, err)
		ws, err := websocket.NewClient(config, conn)
		if err != nil {
			return err
		}
		// Once it is one, what is said in it is nobody's business.
		const message = "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"
		got := make([]byte, len(message))
		io.WriteString(ws, message)
		if _, err := io.ReadFull(ws, got); err != nil || string(got) != message {
			t.Errorf("%q came back, %v", got, err)
		}
		return nil
	}
	must.OK(t, open("good.example"))
	if err := open("other.example"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the other one: %v", err)
	}
	s.wait("a mismatch", func(a Attempt) bool {
		return a.Name == "good.example" && strings.Contains(a.Failure, `asked for "other.example"`)
	})
	if host := <-served; host != "good.example" || len(served) > 0 {
		t.Errorf("%s and %d more arrived", host, len(served))
	}
}

// What curl begins a connection with is looked at, by HTTP/1 and HTTP/2.
func TestCurlAsksForAnotherHost(t *testing.T) {
	at := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	z := newZone(t, map[string][]string{"good.example": {publicAddr}})
	s := newSandbox(t, Options{resolver: z.resolver(), Judge: allow})
	s.resolvConf()
	url := fmt.Sprintf("http://good.example:%d/", at)
	other := []string{"-sS", "-H", "Host: other.example", url}
	for _, c := range []struct {
		args []string
		want string // what is printed; with "..." it fails after that
	}{
		{[]string{"--http1.1", "-sS", url, url}, "hellohello"},
		{append([]string{"--http1.1"}, other...), "..."},
		{[]string{"--http2", "-sS", url, url}, "hellohello"},
		{[]string{"--http2-prior-knowledge", "-sS", url}, "hello"},
		{append([]string{"--http2-prior-knowledge"}, other...), "..."},
	} {
		out, err := s.run("curl", c.args...)
		want, fails := strings.CutSuffix(c.want, "...")
		if (err != nil) != fails || !strings.HasPrefix(out, want) || !fails && out != want {
			t.Errorf("%q: %s, %v", c.args, out, err)
		}
	}
	if a := s.wait("a mismatch", func(a Attempt) bool { return strings.Contains(a.Failure, "other.example") }); a.Name != "good.example" {
		t.Errorf("logged %+v", a)
	}
}

// dig gets the same from whatever server it asks, by both transports and families.
func TestDig(t *testing.T) {
	s := newSandbox(t, Options{})
	want := s.resolve("www.example.org").String()
	for _, server := range []string{"192.0.2.53", "2001:db8::53"} {
		for _, transport := range []string{"+notcp", "+tcp"} {
			if out, err := s.run("dig", "+short", transport, "@"+server, "www.example.org", "A"); err != nil || out != want {
				t.Errorf("%s %s: %s, %v", server, transport, out, err)
			}
			for _, kind := range []string{"AAAA", "HTTPS", "SVCB", "TXT", "MX"} {
				out, err := s.run("dig", transport, "@"+server, "www.example.org", kind)
				if err != nil || !strings.Contains(out, "status: NOERROR") || !strings.Contains(out, "ANSWER: 0, AUTHORITY: 1") || strings.Contains(out, "WARNING") {
					t.Errorf("%s %s %s: %s, %v", server, transport, kind, out, err)
				}
			}
			out, err := s.run("dig", transport, "@"+server, "-x", want, "+short")
			if err != nil || out != "www.example.org." {
				t.Errorf("%s %s reverse: %s, %v", server, transport, out, err)
			}
		}
	}
}

// serveHTTP is a web server of the internet, which also speaks HTTP/2 without TLS. It
// gives its port.
func serveHTTP(t *testing.T, handle http.HandlerFunc) (port int) {
	t.Helper()
	var l net.Listener
	var err error
	internet.do(func() { l, err = net.Listen("tcp", publicAddr+":0") })
	must.OK(t, err)
	srv := &http.Server{Handler: handle, Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return l.Addr().(*net.TCPAddr).Port
}
