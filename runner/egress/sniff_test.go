package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// clientHello is what crypto/tls says first to a server by that name.
func clientHello(t testing.TB, name string) []byte {
	t.Helper()
	near, far := net.Pipe()
	defer far.Close()
	go func() {
		c := tls.Client(near, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
		c.Handshake()
		near.Close()
	}()
	far.SetDeadline(time.Now().Add(patience))
	head := make([]byte, 5)
	if _, err := io.ReadFull(far, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(far, body); err != nil {
		t.Fatal(err)
	}
	return append(head, body...)
}

// split puts a hello into records of n bytes.
func split(hello []byte, n int) []byte {
	var out []byte
	for body := hello[5:]; len(body) > 0; {
		part := body[:min(n, len(body))]
		body = body[len(part):]
		out = append(out, 0x16, 3, 1, byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
	}
	return out
}

func TestSniffer(t *testing.T) {
	good, other, none := clientHello(t, "good.example"), clientHello(t, "other.example"), clientHello(t, "")
	get := func(lines ...string) []byte { return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n") }
	for what, c := range map[string]struct {
		bytes []byte
		veto  string // empty: passes
		seen  string
	}{
		"TLS for the name":            {bytes: good, seen: "good.example"},
		"TLS in small records":        {bytes: split(good, 7), seen: "good.example"},
		"TLS for another":             {bytes: other, veto: "other.example", seen: "other.example"},
		"that in small records":       {bytes: split(other, 1), veto: "other.example", seen: "other.example"},
		"TLS without a name":          {bytes: none},
		"a broken hello":              {bytes: append([]byte{0x16, 3, 1, 0, 8, 1, 0, 0, 4}, "abcd"...), veto: "broken TLS hello"},
		"a hello cut by an alert":     {bytes: append([]byte{0x16, 3, 1, 0, 5, 1, 0, 1, 0, 0}, 0x15, 3, 1, 0, 2, 1, 0), veto: "broken TLS record"},
		"a hello of 16 MiB":           {bytes: []byte{0x16, 3, 1, 0, 5, 1, 0xff, 0xff, 0xff, 0}, veto: "64 KiB"},
		"no TLS after all":            {bytes: []byte{0x16, 0, 1, 2, 3}},
		"HTTP for the name":           {bytes: get("GET / HTTP/1.1", "Host: good.example"), seen: "good.example"},
		"with port and case":          {bytes: get("GET / HTTP/1.1", "hOsT:GOOD.example.:8080"), seen: "good.example"},
		"HTTP for another":            {bytes: get("GET / HTTP/1.1", "Host: other.example"), veto: "other.example", seen: "other.example"},
		"with LF alone":               {bytes: []byte("GET / HTTP/1.1\nHost: other.example\n\n"), veto: "other.example", seen: "other.example"},
		"after empty lines":           {bytes: []byte("\r\n\n\r\nGET / HTTP/1.1\r\nHost: other.example\r\n\r\n"), veto: "other.example", seen: "other.example"},
		"lower-case method":           {bytes: get("get / HTTP/1.1", "Host: other.example"), veto: "other.example", seen: "other.example"},
		"a second Host":               {bytes: get("GET / HTTP/1.1", "Host: good.example", "X: y", "Host: other.example"), veto: "other.example"},
		"space before the colon":      {bytes: get("GET / HTTP/1.1", "Host : other.example"), veto: "other.example"},
		"a folded Host":               {bytes: get("GET / HTTP/1.1", "Host:", " other.example"), veto: "folded"},
		"a bare CR":                   {bytes: get("GET / HTTP/1.1", "X: y\rHost: other.example"), veto: "bare CR"},
		"an absolute target":          {bytes: get("GET http://other.example/x HTTP/1.1", "Host: good.example"), veto: "other.example"},
		"with credentials":            {bytes: get("GET http://good.example@other.example/x HTTP/1.1", "Host: good.example"), veto: "other.example"},
		"CONNECT elsewhere":           {bytes: get("CONNECT other.example:443 HTTP/1.1", "Host: good.example"), veto: "other.example"},
		"a URL in the query":          {bytes: get("GET /?u=http://other.example/ HTTP/1.1", "Host: good.example"), seen: "good.example"},
		"an address for Host":         {bytes: get("GET / HTTP/1.1", "Host: 127.0.0.1"), veto: "127.0.0.1"},
		"HTTP/1.0 without Host":       {bytes: get("GET / HTTP/1.0")},
		"an escape for Host":          {bytes: get("GET / HTTP/1.1", "Host: \x1b[2Jx"), veto: `\x1b`},
		"an endless header":           {bytes: append([]byte("GET / HTTP/1.1\r\n"), bytes.Repeat([]byte("X: y\r\n"), 20000)...), veto: "64 KiB"},
		"Redis inline":                {bytes: []byte("GET key\r\n")},
		"SSH":                         {bytes: []byte("SSH-2.0-OpenSSH_9.2\r\n")},
		"SMTP":                        {bytes: []byte("EHLO me\r\n")},
		"Postgres":                    {bytes: []byte{0, 0, 0, 8, 4, 210, 22, 47}},
		"HTTP/2 without TLS":          {bytes: []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
		"words without an end":        {bytes: bytes.Repeat([]byte("word "), 20000)},
		"a body after the header":     {bytes: append(get("POST / HTTP/1.1", "Host: good.example", "Content-Length: 23"), "Host: other.example\r\n\r\n"...), seen: "good.example"},
		"a name that isn't a name":    {bytes: helloFor("a\x00b"), veto: `a\x00b`},
		"two names in one hello":      {bytes: helloFor("good.example", "other.example"), veto: "other.example"},
		"a name of the right letters": {bytes: helloFor("GOOD.example"), seen: "good.example"},
	} {
		t.Run(what, func(t *testing.T) {
			for _, size := range []int{1, 3, 1000, len(c.bytes)} {
				if size == 1 && len(c.bytes) > 10000 {
					continue
				}
				s := newSniffer("good.example")
				passed, err := 0, error(nil)
				for rest := c.bytes; len(rest) > 0 && err == nil; {
					part := rest[:min(size, len(rest))]
					if err = s.feed(part); err == nil {
						passed += len(part)
					}
					rest = rest[len(part):]
				}
				var mismatch *mismatchError
				if errors.As(err, &mismatch) != (c.veto != "") || err != nil && !strings.Contains(err.Error(), c.veto) {
					t.Errorf("in parts of %d: %v, want %q", size, err, c.veto)
				}
				if c.veto != "" && passed >= len(c.bytes) {
					t.Errorf("in parts of %d: all of it passed", size)
				}
				if c.seen != "" && s.seen != c.seen || c.seen == "" && c.veto == "" && s.seen != "" {
					t.Errorf("in parts of %d: saw %q, want %q", size, s.seen, c.seen)
				}
				if len(s.buf) > maxSniff+size {
					t.Errorf("keeps %d bytes", len(s.buf))
				}
				// Without a name there is nothing to check against.
				if err := newSniffer("").feed(c.bytes); err != nil {
					t.Errorf("without a name: %v", err)
				}
			}
		})
	}
}

// helloFor is a hello as small as can be with the given server names.
func helloFor(names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = append(list, 0, byte(len(n)>>8), byte(len(n)))
		list = append(list, n...)
	}
	ext := append([]byte{0, 0, byte((len(list) + 2) >> 8), byte(len(list) + 2), byte(len(list) >> 8), byte(len(list))}, list...)
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0, 0, 2, 0x13, 1, 1, 0, byte(len(ext)>>8), byte(len(ext)))
	body = append(body, ext...)
	msg := append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	return append([]byte{0x16, 3, 1, byte(len(msg) >> 8), byte(len(msg))}, msg...)
}

// The sniffer agrees with the standard library about what a hello asks for.
func FuzzSniffer(f *testing.F) {
	f.Add(clientHello(f, "good.example"), 3)
	f.Add(clientHello(f, "other.example"), 100)
	f.Add(helloFor("good.example"), 1)
	f.Add(helloFor("other.example"), 50)
	f.Add([]byte("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"), 7)
	f.Add([]byte("CONNECT a:1 HTTP/1.1\r\n\r\n"), 7)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if size < 1 || len(b) > 20000 {
			return
		}
		whole, parts := newSniffer("good.example"), newSniffer("good.example")
		var wholeErr, partsErr error
		if len(b) > 0 {
			wholeErr = whole.feed(b)
		}
		for rest := b; len(rest) > 0 && partsErr == nil; {
			part := rest[:min(size, len(rest))]
			partsErr = parts.feed(part)
			rest = rest[len(part):]
		}
		if (wholeErr == nil) != (partsErr == nil) {
			t.Errorf("whole: %v; in parts of %d: %v", wholeErr, size, partsErr)
		}
		if name := stdlibName(b); name != "" && !strings.EqualFold(strings.TrimSuffix(name, "."), "good.example") && wholeErr == nil {
			t.Errorf("a hello for %q passed", name)
		}
	})
}

// stdlibName is the server name that crypto/tls reads in a hello.
func stdlibName(b []byte) (name string) {
	stop := errors.New("stop")
	tls.Server(readOnly{Reader: bytes.NewReader(b)}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, stop
	}}).Handshake()
	return name
}

type readOnly struct {
	io.Reader
	net.Conn
}

func (r readOnly) Read(p []byte) (int, error)     { return r.Reader.Read(p) }
func (readOnly) Write([]byte) (int, error)        { return 0, io.ErrClosedPipe }
func (readOnly) SetWriteDeadline(time.Time) error { return nil }
func (readOnly) SetReadDeadline(time.Time) error  { return nil }
func (readOnly) SetDeadline(time.Time) error      { return nil }
func (readOnly) Close() error                     { return nil }
func (readOnly) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (readOnly) LocalAddr() net.Addr              { return &net.TCPAddr{} }

// A program that was allowed one name can't speak to the same server under
// another.
func TestSniffOverTheLink(t *testing.T) {
	got := make(chan []byte, 10)
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) {
		b, _ := io.ReadAll(c)
		got <- b
	})
	z := newZone(t, map[string][]string{"good.example": {publicAddr}})
	s := newSandbox(t, Options{Judge: allow, resolver: z.resolver()})
	for _, c := range []struct {
		first []byte
		pass  bool
	}{
		{clientHello(t, "good.example"), true},
		{clientHello(t, "other.example"), false},
		{[]byte("GET / HTTP/1.1\r\nHost: good.example\r\n\r\n"), true},
		{[]byte("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"), false},
	} {
		conn, err := s.connect("good.example", at.Port())
		must.OK(t, err)
		conn.Write(c.first)
		conn.(*net.TCPConn).CloseWrite()
		conn.SetDeadline(time.Now().Add(patience))
		_, readErr := io.ReadAll(conn)
		conn.Close()
		b := <-got
		if passed := bytes.Equal(b, c.first) && readErr == nil; passed != c.pass || !c.pass && len(b) > 0 {
			t.Errorf("%.30q: upstream got %d bytes, the program %v", c.first, len(b), readErr)
		}
	}
	a := s.wait("the mismatch", func(a Attempt) bool { return strings.Contains(a.Failure, "other.example") && !a.Open })
	if a.Verdict != "allow" {
		t.Errorf("logged %+v", a)
	}
}
