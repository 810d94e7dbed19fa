package egress

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
)

// maxSniff is how many bytes of a connection's start are kept to find the name
// in them.
const maxSniff = 64 << 10

// mismatchError is why a connection was cut: its first bytes name another host
// than the one that was allowed, or hide it.
type mismatchError struct{ what string }

func (e *mismatchError) Error() string { return e.what }

// sniffer looks at what a client sends first and vetoes a TLS hello or an HTTP request for
// another host than the one the connection was allowed for. It holds nothing back: a
// hello or a request header is of no use to a server before its last byte, and that
// is the byte that goes through a veto. So it can't stall any protocol.
//
// It is a second line: the connection already leads where the allowed name resolved
// to. It doesn't see names inside TLS or QUIC, a hello without a name, TLS that is
// begun in the middle of another protocol, or later requests: who means to hide a name
// has TLS for it.
type sniffer struct {
	name string // what the connection was allowed for
	seen string // the name that the client gave, once known
	buf  []byte // of the hello (without record headers) or the header that isn't complete
	size int    // bytes of a hello fed so far, record headers included

	// step takes some of the bytes and returns the others; nil: nothing more is looked at.
	step func(b []byte) (rest []byte, v sniffVerdict)

	tls  tlsRecords
	http httpHeader
	h2   *h2Frames
}

// newSniffer checks for name. Without one nothing is looked at, nor for a service of
// the person's own, whatever it calls itself.
func newSniffer(name string) *sniffer {
	s := &sniffer{name: name}
	if name != "" && name != HostName {
		s.step = s.begin
	}
	return s
}

// feed looks at the next bytes, before they are sent. Each byte is looked at
// once or twice, however they are cut.
func (s *sniffer) feed(b []byte) error {
	for len(b) > 0 && s.step != nil {
		var v sniffVerdict
		if b, v = s.step(b); len(s.buf) > maxSniff {
			v.bad = "a hello or header of more than 64 KiB"
		}
		if err := s.judge(v); err != nil {
			s.step, s.buf = nil, nil
			return err
		}
	}
	return nil
}

// sniffVerdict is what the bytes so far say.
type sniffVerdict struct {
	names []string // hosts that are asked for
	bad   string   // it is TLS or HTTP, but can't be read
}

// judge compares names with the connection's.
func (s *sniffer) judge(v sniffVerdict) error {
	for _, name := range v.names {
		clean, err := hostName(name)
		if err == nil {
			s.seen = clean
		}
		if clean != s.name {
			return &mismatchError{fmt.Sprintf("closed: it asked for %.100q on a connection to %s", name, s.name)}
		}
	}
	if v.bad != "" {
		return &mismatchError{"closed: cannot tell which host it asks for: " + v.bad}
	}
	return nil
}

// begin looks at the first byte of a connection.
func (s *sniffer) begin(b []byte) ([]byte, sniffVerdict) {
	if recordFirst <= b[0] && b[0] <= recordLast {
		s.step = s.feedTLS
		return b, sniffVerdict{}
	}
	// Servers skip empty lines before a request, and some any space.
	if b = bytes.TrimLeft(b, spaces); len(b) > 0 {
		s.step = s.feedHTTP
	}
	return b, sniffVerdict{}
}

// opaque looks at nothing any more.
func (s *sniffer) opaque() ([]byte, sniffVerdict) {
	s.step, s.buf = nil, nil
	return nil, sniffVerdict{}
}

const (
	recordHandshake = 0x16
	recordFirst     = 0x14 // change_cipher_spec
	recordLast      = 0x17 // application_data
	helloClient     = 1
	extServerName   = 0
)

// tlsRecords is where in its records a hello is.
type tlsRecords struct {
	head  []byte // of the current record
	left  int    // bytes of it to come
	skip  bool   // it holds nothing of the hello
	doubt bool   // a version that only some servers take: it may be no TLS at all
}

// feedTLS reads the client hello (RFC 8446 sections 4.1.2 and 5.1), which may
// be spread over several records.
func (s *sniffer) feedTLS(b []byte) ([]byte, sniffVerdict) {
	done, v := s.hello(b)
	if done {
		s.step, s.buf = nil, nil
	}
	if s.tls.doubt {
		v.bad = ""
	}
	return nil, v
}

// hello is done when it is complete, or broken.
func (s *sniffer) hello(b []byte) (done bool, v sniffVerdict) {
	r := &s.tls
	if s.size += len(b); s.size > maxSniff {
		return true, sniffVerdict{bad: "a TLS hello of more than 64 KiB"}
	}
	for len(b) > 0 {
		if r.left == 0 {
			n := min(5-len(r.head), len(b))
			r.head, b = append(r.head, b[:n]...), b[n:]
			if len(r.head) >= 2 && r.head[1] != 3 {
				r.doubt = true
			}
			if len(r.head) < 5 {
				return false, v
			}
			r.left = int(binary.BigEndian.Uint16(r.head[3:]))
			// Servers overlook alerts before the hello.
			r.skip = len(s.buf) == 0 && recordFirst <= r.head[0] && r.head[0] <= recordLast && r.head[0] != recordHandshake
			if r.head[0] != recordHandshake && !r.skip || r.left == 0 {
				return true, sniffVerdict{bad: "a broken TLS record"}
			}
			r.head = r.head[:0]
		}
		n := min(r.left, len(b))
		if !r.skip {
			s.buf = append(s.buf, b[:n]...)
		}
		b, r.left = b[n:], r.left-n
		if len(s.buf) > 0 && s.buf[0] != helloClient {
			return true, sniffVerdict{bad: "TLS that doesn't start with a client hello"}
		}
		if len(s.buf) < 4 {
			continue
		}
		size := int(s.buf[1])<<16 | int(s.buf[2])<<8 | int(s.buf[3])
		if size > maxSniff {
			return true, sniffVerdict{bad: "a TLS hello of more than 64 KiB"}
		}
		if len(s.buf) >= 4+size {
			return true, helloNames(s.buf[4 : 4+size])
		}
	}
	return false, v
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
