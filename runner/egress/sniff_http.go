package egress

import (
	"bytes"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// httpHeader is what was found so far of a request's header.
type httpHeader struct {
	read   int    // bytes of it that were looked at
	spaced bool   // the first word has ended
	line   bool   // the request line was read
	target string // the host in it
	hosted bool   // there has to be a Host: it is HTTP/1.1, and names none itself
	rest   int    // where the lines after it start
}

const headerPiece = 1 << 10 // bytes

// h2Preface begins HTTP/2 without TLS (RFC 9113 section 3.4).
const h2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// feedHTTP reads the header of an HTTP/1 request (RFC 9112).
func (s *sniffer) feedHTTP(b []byte) ([]byte, sniffVerdict) {
	// Only a little at a time: most of what was read may belong to other requests.
	start, part := len(s.buf), b[:min(len(b), headerPiece)]
	s.buf = append(s.buf, part...)
	if n := min(len(s.buf), len(h2Preface)); string(s.buf[:n]) == h2Preface[:n] {
		if n == len(h2Preface) {
			s.buf, s.h2 = s.buf[:0], newH2Frames()
			s.step = s.feedH2
		}
		return b[n-start:], sniffVerdict{}
	}
	h, from := &s.http, s.http.read
	h.read = len(s.buf)
	if !h.line {
		more, is, bad := s.requestLine(from)
		switch {
		case bad != "":
			return nil, sniffVerdict{bad: bad}
		case !is:
			return s.opaque()
		case more:
			return b[len(part):], sniffVerdict{}
		}
		from = h.rest - 1
	}
	// The header ends with an empty line; it may have begun in earlier bytes.
	end := headerEnd(s.buf, max(from-2, h.rest-1))
	if end < 0 {
		return b[len(part):], sniffVerdict{}
	}
	hosts, bad := headerHosts(s.buf[h.rest:end])
	v := sniffVerdict{names: hosts, bad: bad}
	if h.target != "" {
		v.names = append([]string{h.target}, hosts...)
	}
	if v.bad == "" && h.hosted && len(hosts) == 0 {
		v.bad = "a request without a Host"
	}
	s.step, s.buf = nil, nil
	return nil, v
}

// requestLine reads the first line; what lies before from was read before.
func (s *sniffer) requestLine(from int) (more, is bool, bad string) {
	h := &s.http
	n := bytes.IndexByte(s.buf[from:], '\n')
	end := len(s.buf)
	if n >= 0 {
		end = from + n
	}
	switch {
	case !h.mayBeRequestLine(s.buf, from, end):
		return false, false, ""
	case end > maxSniff/2:
		if versionWord().Match(s.buf[:end]) {
			return false, false, longLine
		}
		if n >= 0 {
			return false, false, ""
		}
		s.step = s.feedLong
		return true, true, ""
	case n < 0:
		return true, true, ""
	}
	h.rest = end + 1
	h.line, bad = h.parse(string(bytes.TrimSuffix(s.buf[:end], []byte("\r"))))
	return false, h.line, bad
}

const longLine = "a request line of more than 32 KiB"

// feedLong looks for the end of a first line that is longer than what a request line may
// be. Only then is it known whether it is one.
func (s *sniffer) feedLong(b []byte) ([]byte, sniffVerdict) {
	part, _, ended := bytes.Cut(b, []byte("\n"))
	// A version is known by its first letters, after a space.
	s.buf = append(s.buf[:copy(s.buf, s.buf[max(0, len(s.buf)-len(" HTTP/")):])], part...)
	found := versionWord().Match(s.buf)
	s.buf = s.buf[:copy(s.buf, s.buf[max(0, len(s.buf)-len(" HTTP/")):])]
	switch {
	case found:
		return nil, sniffVerdict{bad: longLine}
	case ended:
		return s.opaque()
	}
	return nil, sniffVerdict{}
}

var versionWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)[ \t\r\v\f]HTTP/`) })

// headerEnd is where the body begins, -1 when that hasn't come.
func headerEnd(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return -1
		}
		i += n
		switch tail := b[i+1:]; {
		case bytes.HasPrefix(tail, []byte("\n")):
			return i + 2
		case bytes.HasPrefix(tail, []byte("\r\n")):
			return i + 3
		}
	}
	return -1
}

// mayBeRequestLine says whether the line so far, which ends at end, could
// become "METHOD TARGET HTTP/1.1"; what lies before from has been found fit.
func (h *httpHeader) mayBeRequestLine(buf []byte, from, end int) bool {
	for i := from; i < end; i++ {
		switch c := buf[i]; {
		case h.spaced:
			return true // servers differ in what a target may hold
		case strings.IndexByte(spaces, c) >= 0:
			h.spaced = true
		case !methodByte(c):
			return false
		}
	}
	return true
}

// methodByte says whether a method may hold c (RFC 9110 section 5.6.2).
func methodByte(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// spaces are what some server or other takes for a space between words.
const spaces = " \t\r\n\v\f"

// parse says whether line is an HTTP/1 request line, and notes which host its target
// names, if it does.
func (h *httpHeader) parse(line string) (ok bool, bad string) {
	words := strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(spaces, c) })
	if len(words) < 3 {
		return false, ""
	}
	version := 2 + slices.IndexFunc(words[2:], func(w string) bool { return len(w) >= 5 && strings.EqualFold(w[:5], "HTTP/") })
	switch {
	case version < 2:
		return false, ""
	case version != 2 || len(words) != 3 || !strings.EqualFold(words[2][:min(7, len(words[2]))], "HTTP/1."):
		return false, "a request line that servers might read in different ways"
	}
	tunnel := strings.EqualFold(words[0], "CONNECT")
	h.target = requestTarget(tunnel, words[1])
	if h.target == "" && !tunnel && strings.Contains(words[1], ":") && strings.IndexByte("/?*", words[1][0]) < 0 { // http:/HOST
		return false, "a target that servers might read in different ways"
	}
	h.hosted = h.target == "" && words[2][7:] != "0"
	return true, ""
}

// requestTarget is the host that a request's target names, if it does.
func requestTarget(tunnel bool, target string) string {
	if tunnel {
		return hostOnly(target)
	}
	scheme, after, absolute := strings.Cut(target, "://")
	if !absolute || strings.ContainsAny(scheme, "/?#") {
		return ""
	}
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		after = after[:i]
	}
	return hostOnly(after[strings.LastIndexByte(after, '@')+1:])
}

// headerHosts are the hosts in the lines after the first one. What servers might read in
// different ways is bad (RFC 9112 section 5.2).
func headerHosts(header []byte) (hosts []string, bad string) {
	for len(header) > 0 {
		var line []byte
		line, header, _ = bytes.Cut(header, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			break
		}
		if bytes.IndexByte(line, '\r') >= 0 {
			return hosts, "a header line with a bare CR"
		}
		if line[0] == ' ' || line[0] == '\t' {
			return hosts, "a folded header line"
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if value = bytes.TrimSpace(value); len(value) > 0 && strings.EqualFold(string(bytes.TrimSpace(name)), "host") {
			hosts = append(hosts, hostOnly(string(value)))
		}
	}
	return hosts, ""
}

// hostOnly takes the port off HOST:PORT.
func hostOnly(s string) string {
	if host, port, err := net.SplitHostPort(s); err == nil && strings.Trim(port, "0123456789") == "" {
		return host
	}
	return s
}
