package egress

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/cryptobyte"
)

// maxSniff is how many bytes of a connection's start are kept to find the name
// in them.
const maxSniff = 64 << 10

// mismatchError is why a connection was cut: its first bytes name another host
// than the one that was allowed, or hide it.
type mismatchError struct{ what string }

func (e *mismatchError) Error() string { return e.what }

// sniffer looks at what a client sends first and vetoes a TLS hello or an HTTP
// request for another host than the one the connection was allowed for. It
// holds nothing back: a hello or a request header is of no use to a server
// before its last byte, and that is the byte that goes through a veto. So it
// can't stall any protocol.
//
// It is a second line: the connection already leads where the allowed name
// resolved to. It doesn't see later requests on a kept connection, names
// inside QUIC or HTTP/2 without TLS, or TLS that is begun in mid-stream.
type sniffer struct {
	name string // what the connection was allowed for
	seen string // the name that the client gave, once known
	done bool   // nothing more to look at
	tls  bool   // it starts like TLS
	size int    // bytes fed so far
	buf  []byte // the bytes so far; of TLS, those of the hello without record headers

	// TLS: the header of the current record and how much of it is missing.
	record []byte
	left   int
	doubt  bool // a version that only some servers take: it may be no TLS at all

	// HTTP: what was found so far.
	spaced bool   // the first word has ended
	line   bool   // the request line was read
	target string // the host in it
	rest   int    // where the lines after it start
}

// newSniffer checks for name. Without one nothing is looked at, nor for a service of
// the person's own, whatever it calls itself.
func newSniffer(name string) *sniffer {
	return &sniffer{name: name, done: name == "" || name == HostName}
}

// feed looks at the next bytes, before they are sent. Each byte is looked at
// once or twice, however they are cut.
func (s *sniffer) feed(b []byte) error {
	if s.done || len(b) == 0 {
		return nil
	}
	var verdict sniffVerdict
	if s.size == 0 {
		s.tls = b[0] == recordHandshake
	}
	s.size += len(b)
	if s.tls {
		verdict = s.feedTLS(b)
	} else {
		verdict = s.feedHTTP(b)
	}
	if verdict.more && s.size > maxSniff {
		verdict = sniffVerdict{bad: "a hello or header of more than 64 KiB"}
	}
	if verdict.more {
		return nil
	}
	s.done, s.buf = true, nil
	for _, name := range verdict.names {
		clean, err := hostName(name)
		if err == nil {
			s.seen = clean
		}
		if clean != s.name {
			return &mismatchError{fmt.Sprintf("closed: it asked for %.100q on a connection to %s", name, s.name)}
		}
	}
	if verdict.bad != "" && !s.doubt {
		return &mismatchError{"closed: cannot tell which host it asks for: " + verdict.bad}
	}
	return nil
}

// sniffVerdict is what the bytes so far say.
type sniffVerdict struct {
	more  bool     // too early to tell
	names []string // hosts that are asked for
	bad   string   // it is TLS or HTTP, but can't be read
}

const (
	recordHandshake = 0x16
	helloClient     = 1
	extServerName   = 0
)

// feedTLS reads the client hello (RFC 8446 sections 4.1.2 and 5.1), which may
// be spread over several records.
func (s *sniffer) feedTLS(b []byte) sniffVerdict {
	for len(b) > 0 {
		if s.left == 0 {
			n := min(5-len(s.record), len(b))
			s.record, b = append(s.record, b[:n]...), b[n:]
			if len(s.record) >= 2 && s.record[1] != 3 {
				s.doubt = true
			}
			if len(s.record) < 5 {
				return sniffVerdict{more: true}
			}
			s.left = int(binary.BigEndian.Uint16(s.record[3:]))
			if s.record[0] != recordHandshake || s.left == 0 {
				return sniffVerdict{bad: "a broken TLS record"}
			}
			s.record = s.record[:0]
		}
		n := min(s.left, len(b))
		s.buf, b, s.left = append(s.buf, b[:n]...), b[n:], s.left-n
		if len(s.buf) > 0 && s.buf[0] != helloClient {
			return sniffVerdict{bad: "TLS that doesn't start with a client hello"}
		}
		if len(s.buf) < 4 {
			continue
		}
		size := int(s.buf[1])<<16 | int(s.buf[2])<<8 | int(s.buf[3])
		if size > maxSniff {
			return sniffVerdict{bad: "a TLS hello of more than 64 KiB"}
		}
		if len(s.buf) >= 4+size {
			return helloNames(s.buf[4 : 4+size])
		}
	}
	return sniffVerdict{more: true}
}

// helloNames takes the server name out of a client hello's body (RFC 6066
// section 3).
func helloNames(b cryptobyte.String) sniffVerdict {
	bad := sniffVerdict{bad: "a broken TLS hello"}
	var session, suites, compression, extensions cryptobyte.String
	if !b.Skip(2+32) || // version, random
		!b.ReadUint8LengthPrefixed(&session) || !b.ReadUint16LengthPrefixed(&suites) || !b.ReadUint8LengthPrefixed(&compression) {
		return bad
	}
	if b.Empty() {
		return sniffVerdict{}
	}
	if !b.ReadUint16LengthPrefixed(&extensions) || !b.Empty() {
		return bad
	}
	var names []string
	for !extensions.Empty() {
		var kind uint16
		var data, list cryptobyte.String
		if !extensions.ReadUint16(&kind) || !extensions.ReadUint16LengthPrefixed(&data) {
			return bad
		}
		if kind != extServerName {
			continue
		}
		if !data.ReadUint16LengthPrefixed(&list) || !data.Empty() {
			return bad
		}
		for !list.Empty() {
			var kind uint8
			var host cryptobyte.String
			if !list.ReadUint8(&kind) || !list.ReadUint16LengthPrefixed(&host) {
				return bad
			}
			if kind == 0 { // host_name
				names = append(names, string(host))
			}
		}
	}
	return sniffVerdict{names: names}
}

// feedHTTP reads the header of an HTTP/1 request (RFC 9112).
func (s *sniffer) feedHTTP(b []byte) sniffVerdict {
	from := len(s.buf)
	if from == 0 {
		b = bytes.TrimLeft(b, "\r\n") // servers skip empty lines before a request
	}
	s.buf = append(s.buf, b...)
	if !s.line {
		n := bytes.IndexByte(s.buf[from:], '\n')
		end := len(s.buf)
		if n >= 0 {
			end = from + n
		}
		// A request line that is half of what is kept is none.
		if end > maxSniff/2 || !s.mayBeRequestLine(from, end) {
			return sniffVerdict{}
		}
		if n < 0 {
			return sniffVerdict{more: true}
		}
		var ok bool
		s.rest = from + n + 1
		if s.target, ok = requestTarget(string(bytes.TrimSuffix(s.buf[:s.rest-1], []byte("\r")))); !ok {
			return sniffVerdict{}
		}
		s.line, from = true, s.rest-1
	}
	// The header ends with an empty line; it may have begun in earlier bytes.
	tail := s.buf[max(from-2, s.rest-1):]
	if !bytes.Contains(tail, []byte("\n\n")) && !bytes.Contains(tail, []byte("\n\r\n")) {
		return sniffVerdict{more: true}
	}
	hosts, bad := hostLines(s.buf[s.rest:])
	v := sniffVerdict{names: hosts, bad: bad}
	if s.target != "" {
		v.names = append([]string{s.target}, hosts...)
	}
	return v
}

// mayBeRequestLine says whether the line so far, which ends at end, could
// become "METHOD TARGET HTTP/1.1"; what lies before from has been found fit.
func (s *sniffer) mayBeRequestLine(from, end int) bool {
	for i := from; i < end; i++ {
		switch c := s.buf[i]; {
		case c == ' ' && !s.spaced:
			s.spaced = i > 0
			if !s.spaced {
				return false
			}
		case s.spaced:
			if c < ' ' && c != '\r' && c != '\t' {
				return false
			}
		case i >= 32 || !methodByte(c):
			return false
		}
	}
	return true
}

func methodByte(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '-' || c == '_'
}

// requestTarget says whether line is an HTTP/1 request line, and which host
// its target names, if it does.
func requestTarget(line string) (host string, ok bool) {
	words := strings.Fields(line)
	if len(words) < 3 {
		return "", false
	}
	if version := words[len(words)-1]; !strings.HasPrefix(version, "HTTP/1.") && !strings.HasPrefix(version, "http/1.") {
		return "", false
	}
	target := words[1]
	if strings.EqualFold(words[0], "CONNECT") {
		return hostOnly(target), true
	}
	if scheme, after, absolute := strings.Cut(target, "://"); absolute && !strings.ContainsAny(scheme, "/?#") {
		if i := strings.IndexAny(after, "/?#"); i >= 0 {
			after = after[:i]
		}
		return hostOnly(after[strings.LastIndexByte(after, '@')+1:]), true
	}
	return "", true
}

// hostLines collects the Host values of a header.
func hostLines(header []byte) (hosts []string, bad string) {
	wasHost := false
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
			if wasHost {
				return hosts, "a folded Host line"
			}
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		wasHost = ok && strings.EqualFold(string(bytes.TrimSpace(name)), "host")
		if wasHost {
			if host := hostOnly(string(bytes.TrimSpace(value))); host != "" {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts, ""
}

// hostOnly takes the port off HOST:PORT.
func hostOnly(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		return host
	}
	return s
}
