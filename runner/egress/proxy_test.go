package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// connectProxy is an HTTP proxy on the host's loopback that knows one name.
func connectProxy(t *testing.T, target string, asked chan<- *http.Request) string {
	at := serve(t, nil, "127.0.0.1:0", func(c net.Conn) {
		r := bufio.NewReader(c)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		asked <- req
		host, _, _ := strings.Cut(req.Host, ":")
		if host != "good.example" && host != publicAddr && host != publicAddr2 {
			io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
			return
		}
		up, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		defer up.Close()
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			io.Copy(up, r)
			up.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(c, up)
	})
	return at.String()
}

func TestUpstreamProxy(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) {
		all, _ := io.ReadAll(c)
		fmt.Fprintf(c, "got %s", all)
	})
	asked := make(chan *http.Request, 10)
	proxy := connectProxy(t, at.String(), asked)
	z := newZone(t, map[string][]string{"direct.example": {publicAddr}, "rebind.example": {"127.0.0.1"}})
	var private atomic.Bool
	judge := func(context.Context, Attempt) Verdict { return Verdict{Allow: true, Private: private.Load()} }
	s := newSandbox(t, Options{Judge: judge, resolver: z.resolver(), Environ: []string{
		"HTTPS_PROXY=http://me:secret@" + proxy, "NO_PROXY=direct.example",
	}})
	talk := func(name string) (string, error) {
		addr, err := netip.ParseAddr(name)
		if err != nil {
			addr = s.resolve(name)
		}
		c, err := s.dial("tcp", hostPort(addr, at.Port()), patience)
		if err != nil {
			return "", err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, "words")
		c.(*net.TCPConn).CloseWrite()
		b, err := io.ReadAll(c)
		return string(b), err
	}
	// The name is the proxy's to resolve.
	if got, err := talk("good.example"); err != nil || got != "got words" {
		t.Fatalf("by proxy: %q, %v", got, err)
	}
	req := <-asked
	if req.Method != "CONNECT" || req.Host != fmt.Sprintf("good.example:%d", at.Port()) || req.Header.Get("Proxy-Authorization") != "Basic bWU6c2VjcmV0" {
		t.Errorf("asked the proxy %s %s %v", req.Method, req.Host, req.Header)
	}
	if a := s.waitClosed("good.example"); a.Resolved != "via "+proxy || a.Received != 9 {
		t.Errorf("logged %+v", a)
	}
	if got, err := talk("direct.example"); err != nil || got != "got words" {
		t.Errorf("beside the proxy: %q, %v", got, err)
	}
	if a := s.waitClosed("direct.example"); a.Resolved != at.String() {
		t.Errorf("logged %+v", a)
	}
	if _, err := talk("bad.example"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("what the proxy refuses: %v", err)
	}
	<-asked
	if a := s.waitClosed("bad.example"); !strings.Contains(a.Failure, "403") || strings.Contains(a.Failure, "secret") {
		t.Errorf("logged %+v", a)
	}
	// What the guard knows to be wrong isn't asked of the proxy.
	for _, name := range []string{"rebind.example"} {
		if _, err := talk(name); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.get("tcp", metadataAddr+":80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("metadata by proxy: %v", err)
	}
	// An address is the proxy's like a name, though a rule names it, unless it is special.
	private.Store(true)
	if got, err := talk(publicAddr2); err != nil || got != "got words" {
		t.Fatalf("an address by proxy: %q, %v", got, err)
	}
	if req := <-asked; req.Host != fmt.Sprintf("%s:%d", publicAddr2, at.Port()) {
		t.Errorf("the proxy was asked for %s", req.Host)
	}
	lan := serve(t, internet, lanAddr+":0", hello)
	if got, err := s.get("tcp", lan.String()); err != nil || got != "hello" {
		t.Errorf("an address of the network beside the proxy: %q, %v", got, err)
	}
	select {
	case req := <-asked:
		t.Errorf("the proxy was asked for %s", req.Host)
	default:
	}
}

// A proxy that answers nothing, rubbish or without end costs an attempt, no more.
func TestUpstreamProxyIsOff(t *testing.T) {
	for what, answer := range map[string]string{
		"rubbish":     "SSH-2.0-x\r\n",
		"no end":      "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20000),
		"nothing":     "",
		"an error":    "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
		"a long body": "HTTP/1.1 502 Bad\r\nContent-Length: 99999999\r\n\r\n",
	} {
		t.Run(what, func(t *testing.T) {
			at := serve(t, nil, "127.0.0.1:0", func(c net.Conn) {
				c.Read(make([]byte, 4096))
				io.WriteString(c, answer)
			})
			p, err := newProxies([]string{"all_proxy=http://" + at.String()}, nil)
			must.OK(t, err)
			g, err := newGuard()
			must.OK(t, err)
			defer g.close()
			x := &dialer{guard: g, proxies: p, resolver: newZone(t, nil).resolver()}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			conn, _, err := x.dial(ctx, "tcp", destination{name: "good.example", port: 443})
			if err == nil {
				conn.Close()
				t.Error("it gave a connection")
			} else if errors.Is(err, context.DeadlineExceeded) {
				t.Error("it took until the deadline")
			}
		})
	}
}

// The log says that it was the proxy who couldn't be reached.
func TestProxyThatIsGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	gone := l.Addr().String()
	l.Close()
	for _, scheme := range []string{"http", "https", "socks5h"} {
		p, err := newProxies([]string{"all_proxy=" + scheme + "://" + gone}, nil)
		must.OK(t, err)
		d := destination{name: "good.example", port: 443}
		_, _, err = p.dial(t.Context(), p.forDestination("tcp", d), d)
		if got, want := why(err), "proxy "+gone+": connection refused"; got != want {
			t.Errorf("%s: %q, want %q", scheme, got, want)
		}
	}
}

func TestSOCKSProxy(t *testing.T) {
	var greeted atomic.Bool
	at := serve(t, nil, "127.0.0.1:0", func(c net.Conn) {
		buf := make([]byte, 300)
		if _, err := io.ReadFull(c, buf[:3]); err != nil { // version, one method: none
			return
		}
		c.Write([]byte{5, 0})
		want := append([]byte{5, 1, 0, 3, 12}, "good.example\x01\xbb"...)
		if _, err := io.ReadFull(c, buf[:len(want)]); err != nil || string(buf[:len(want)]) != string(want) {
			return
		}
		greeted.Store(true)
		c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		all, _ := io.ReadAll(c)
		fmt.Fprintf(c, "got %s", all)
	})
	s := newSandbox(t, Options{Judge: allow, resolver: newZone(t, nil).resolver(), Environ: []string{"ALL_PROXY=socks5h://" + at.String()}})
	c, err := s.connect("good.example", 443)
	must.OK(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, "words")
	c.(*net.TCPConn).CloseWrite()
	if b, err := io.ReadAll(c); err != nil || string(b) != "got words" || !greeted.Load() {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestProxyVariables(t *testing.T) {
	for _, env := range [][]string{nil, {"HTTP_PROXY=", "PATH=/bin"}} {
		if p, err := newProxies(env, nil); p != nil || err != nil {
			t.Errorf("%v: %v, %v", env, p, err)
		}
	}
	for _, bad := range []string{"HTTPS_PROXY=ftp://x", "http_proxy=http://me:secret@[::1", "ALL_PROXY=proxy.corp:port"} {
		if _, err := newProxies([]string{bad}, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	p, err := newProxies([]string{"http_proxy=plain.corp", "HTTPS_PROXY=https://safe.corp:8443", "NO_PROXY=.inside.corp,203.0.113.0/24"}, nil)
	must.OK(t, err)
	for _, c := range []struct {
		to   destination
		want string
	}{
		{destination{name: "a.example", port: 80}, "plain.corp"},
		{destination{name: "a.example", port: 443}, "safe.corp:8443"},
		{destination{name: "a.example", port: 22}, "safe.corp:8443"},
		{destination{name: "x.inside.corp", port: 443}, ""},
		{destination{addr: parse(publicAddr), port: 443}, ""},
		{destination{addr: parse("198.51.100.1"), port: 443}, "safe.corp:8443"},
		{destination{name: "a.corp", port: 443, private: true}, ""},
		{destination{addr: parse("2001:db8:1::1"), port: 443}, "safe.corp:8443"},
	} {
		got := ""
		if u := p.forDestination("tcp", c.to); u != nil {
			got = u.Host
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.to, got, c.want)
		}
		if p.forDestination("udp", c.to) != nil {
			t.Errorf("%s: a proxy for UDP", c.to)
		}
	}
}
