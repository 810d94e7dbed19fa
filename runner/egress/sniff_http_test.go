package egress

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

func get(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

// h2Client makes the frames that a client sends.
type h2Client struct {
	bytes.Buffer
	block bytes.Buffer
	enc   *hpack.Encoder
}

func newH2Client() *h2Client {
	c := &h2Client{}
	c.enc = hpack.NewEncoder(&c.block)
	c.WriteString(h2Preface)
	c.frame(4, 0, nil) // SETTINGS
	return c
}

func (c *h2Client) frame(kind, flags byte, payload []byte) *h2Client {
	n := len(payload)
	c.Write([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, 1})
	c.Write(payload)
	return c
}

// fields encodes a header, as NAME VALUE NAME VALUE...
func (c *h2Client) fields(f ...string) []byte {
	c.block.Reset()
	for i := 0; i < len(f); i += 2 {
		c.enc.WriteField(hpack.HeaderField{Name: f[i], Value: f[i+1]})
	}
	return bytes.Clone(c.block.Bytes())
}

func (c *h2Client) request(host string) *h2Client {
	return c.frame(h2Headers, h2EndHeaders, c.fields(":method", "GET", ":scheme", "http", ":path", "/", ":authority", host))
}

// The request that a connection begins with is looked at, however it is written.
func TestSnifferSeesTheFirstRequest(t *testing.T) {
	const good, other = "Host: good.example", "Host: other.example"
	first := get("GET / HTTP/1.1", good)
	padded := newH2Client()
	padded.frame(h2Headers, h2EndHeaders|h2Padded|h2Priority,
		append(append([]byte{3, 0, 0, 0, 0, 1}, padded.fields(":method", "GET", ":authority", "other.example")...), 0, 0, 0))
	cut := newH2Client()
	block := cut.fields(":method", "GET", ":authority", "other.example")
	cut.frame(h2Headers, 0, block[:2]).frame(h2Continuation, 0, block[2:5]).frame(h2Continuation, h2EndHeaders, block[5:])
	mixed := newH2Client()
	mixed.frame(h2Headers, 0, block[:2]).frame(0, 0, []byte("data"))
	bomb := newH2Client()
	big := bomb.fields("x", strings.Repeat("y", 3000))
	bomb.frame(h2Headers, h2EndHeaders, append(big, bytes.Repeat([]byte{0xbe}, 1000)...))
	for what, c := range map[string]struct {
		bytes string
		veto  string // empty: passes
	}{
		"after empty lines":              {"\r\n\r\n" + get("GET / HTTP/1.1", other), "other.example"},
		"a target with one slash":        {get("GET http:/other.example/ HTTP/1.1", good), "different ways"},
		"a target with backslashes":      {get(`GET http:\\other.example/ HTTP/1.1`, good), "different ways"},
		"an absolute target":             {get("GET http://other.example/ HTTP/1.1", good), "other.example"},
		"CONNECT elsewhere":              {get("CONNECT other.example:443 HTTP/1.1"), "other.example"},
		"a long method":                  {get(strings.Repeat("A", 40)+" / HTTP/1.1", other), "other.example"},
		"a method of 40 KiB":             {get(strings.Repeat("A", 40<<10)+" / HTTP/1.1", other), "32 KiB"},
		"a request line of 33 KiB":       {get("GET /"+strings.Repeat("a", 33<<10)+" HTTP/1.1", other), "32 KiB"},
		"one of 100 KiB":                 {get("GET /"+strings.Repeat("a", 100<<10)+" http/1.1", other), "32 KiB"},
		"a long line of something else":  {strings.Repeat("word ", 20000) + "\n" + first, ""},
		"what follows the first":         {first + get("GET / HTTP/1.1", other) + "\x81\x85mask", ""},
		"HTTP/2, what follows the first": {newH2Client().request("good.example").request("other.example").String(), ""},
		"a request line in four words":   {get("GET / x HTTP/1.1", other), "different ways"},
		"words after the version":        {get("GET / HTTP/1.1 x", other), "different ways"},
		"a version in odd letters":       {get("GET / Http/1.1", other), "other.example"},
		"a version for a target":         {get("GET HTTP/1.1 HTTP/1.1", other), "other.example"},
		"another version":                {get("GET / HTTP/3.0", other), "different ways"},
		"space before the request":       {" \t" + get("GET / HTTP/1.1", other), "other.example"},
		"tabs between the words":         {get("GET\t/\tHTTP/1.1", other), "other.example"},
		"a control letter in the target": {get("GET /\x01 HTTP/1.1", other), "other.example"},
		"no Host":                        {get("GET / HTTP/1.1", "X: y"), "without a Host"},
		"an empty Host":                  {get("GET / HTTP/1.1", "Host:"), "without a Host"},
		"no Host, 1.0":                   {get("GET / HTTP/1.0"), ""},
		"space before Host":              {get("GET / HTTP/1.1", " Host: other.example", good), "folded"},
		"credentials in Host":            {get("GET / HTTP/1.1", "Host: other.example@good.example"), "other.example@"},
		"credentials in the port":        {get("GET / HTTP/1.1", "Host: good.example:80@other.example"), "other.example"},
		"an alert before the hello":      {"\x15\x03\x01\x00\x02\x01\x5a" + string(helloFor("other.example")), "other.example"},
		"one before a good hello":        {"\x15\x03\x01\x00\x02\x01\x5a" + string(helloFor("good.example")), ""},
		"other records before the hello": {"\x14\x03\x03\x00\x01\x01\x17\x03\x03\x00\x01x" + string(helloFor("other.example")), "other.example"},
		"alerts without end":             {strings.Repeat("\x15\x03\x01\x00\x02\x01\x5a", 10000), "64 KiB"},
		"HTTP/2":                         {newH2Client().request("GOOD.example:80").String(), ""},
		"HTTP/2 for another":             {newH2Client().request("other.example").String(), "other.example"},
		"HTTP/2, a host field":           {h2With(":authority", "good.example", "host", "other.example"), "other.example"},
		"HTTP/2, an absolute path":       {h2With(":authority", "good.example", ":path", "http://other.example/"), "different ways"},
		"HTTP/2, lines in a field":       {h2With(":authority", "good.example", "x", "a\r\nhost: other.example"), "different ways"},
		"HTTP/2, a path of its own":      {h2With(":method", "OPTIONS", ":authority", "good.example", ":path", "*"), ""},
		"HTTP/2, no authority":           {h2With(":method", "GET"), ""},
		"HTTP/2, padding and priority":   {padded.String(), "other.example"},
		"HTTP/2, a header in pieces":     {cut.String(), "other.example"},
		"HTTP/2, a header with a hole":   {mixed.String(), "one piece"},
		"HTTP/2, a lone continuation":    {newH2Client().frame(h2Continuation, h2EndHeaders, nil).String(), "one piece"},
		"HTTP/2, too much padding":       {newH2Client().frame(h2Headers, h2EndHeaders|h2Padded, []byte{9, 0x82}).String(), "broken"},
		"HTTP/2, a broken header":        {newH2Client().frame(h2Headers, h2EndHeaders, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}).String(), "can't be read"},
		"HTTP/2, a header of 16 MiB":     {newH2Client().String() + "\xff\xff\xff\x01\x04\x00\x00\x00\x01", "64 KiB"},
		"HTTP/2, endless continuations":  {newH2Client().frame(h2Headers, 0, make([]byte, 60000)).frame(h2Continuation, 0, make([]byte, 60000)).String(), "64 KiB"},
		"HTTP/2, a header that explodes": {bomb.String(), "can't be read"},
	} {
		t.Run(what, func(t *testing.T) {
			for _, size := range []int{1, 7, 1000, len(c.bytes)} {
				s := newSniffer("good.example")
				passed, err := feedAll(s, []byte(c.bytes), size)
				var mismatch *mismatchError
				if errors.As(err, &mismatch) != (c.veto != "") || err != nil && !strings.Contains(err.Error(), c.veto) {
					t.Errorf("in parts of %d: %v, want %q", size, err, c.veto)
				}
				if c.veto != "" && passed >= len(c.bytes) {
					t.Errorf("in parts of %d: all of it passed", size)
				}
				if len(s.buf) > maxSniff+headerPiece {
					t.Errorf("keeps %d bytes", len(s.buf))
				}
			}
		})
	}
}

func h2With(fields ...string) string {
	c := newH2Client()
	return c.frame(h2Headers, h2EndHeaders, c.fields(fields...)).String()
}

// feedAll feeds b in parts, and says how many bytes passed.
func feedAll(s *sniffer, b []byte, size int) (passed int, err error) {
	for len(b) > 0 {
		part := b[:min(size, len(b))]
		if err := s.feed(part); err != nil {
			return passed, err
		}
		passed += len(part)
		b = b[len(part):]
	}
	return passed, nil
}

// The sniffer agrees with the standard library about what the first request asks for,
// however it is cut.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(get("GET / HTTP/1.1", "Host: good.example")), 5)
	f.Add([]byte(get("POST http://other.example/ HTTP/1.1", "Host: good.example", "Content-Length: 3")+"abc"), 5)
	f.Add(newH2Client().request("other.example").Bytes(), 5)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if size < 1 || len(b) > 20000 {
			return
		}
		_, wholeErr := feedAll(newSniffer("good.example"), b, max(1, len(b)))
		_, partsErr := feedAll(newSniffer("good.example"), b, size)
		if (wholeErr == nil) != (partsErr == nil) {
			t.Errorf("whole: %v; in parts of %d: %v", wholeErr, size, partsErr)
		}
		if host := stdlibOther(b); host != "" && wholeErr == nil {
			t.Errorf("a request for %q passed", host)
		}
	})
}

// stdlibOther is the host that net/http is asked for first, unless it is good.example.
func stdlibOther(b []byte) string {
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	if err != nil || req.ProtoMajor != 1 || req.Host == "" {
		return ""
	}
	if name, err := hostName(hostOnly(req.Host)); err == nil && name == "good.example" {
		return ""
	}
	return req.Host
}
