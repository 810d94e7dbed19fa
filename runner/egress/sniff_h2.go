package egress

import (
	"encoding/binary"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// h2Frames is where in the client's frames of HTTP/2 a connection is (RFC 9113
// sections 4 and 6).
type h2Frames struct {
	head  []byte // of the current frame
	left  int    // bytes of it to come
	kept  bool   // it is part of a header
	block bool   // a header has begun and goes on in the next frame
	dec   *hpack.Decoder

	names []string // of the header that is being read
	bytes int      // of its fields
	odd   bool     // servers that pass it on by HTTP/1 might make another of it
}

const (
	h2FrameHead    = 9
	h2Headers      = 1
	h2Continuation = 9
	h2EndHeaders   = 0x4
	h2Padded       = 0x8
	h2Priority     = 0x20

	h2Table     = 4 << 10  // what a header table has unless the server says otherwise
	h2MaxTable  = 64 << 10 // bytes; clients that were offered more are closed
	h2MaxFields = 1 << 20  // bytes of one header's fields: a few bytes may stand for many
)

func newH2Frames() *h2Frames {
	h := &h2Frames{}
	h.dec = hpack.NewDecoder(h2Table, h.field)
	h.dec.SetAllowedMaxDynamicTableSize(h2MaxTable)
	h.dec.SetMaxStringLength(maxSniff)
	return h
}

// field notes a field of a header.
func (h *h2Frames) field(f hpack.HeaderField) {
	h.bytes += len(f.Name) + len(f.Value)
	h.odd = h.odd || strings.ContainsAny(f.Name, "\r\n\x00") || strings.ContainsAny(f.Value, "\r\n\x00") ||
		f.Name == ":path" && f.Value != "" && f.Value != "*" && f.Value[0] != '/'
	if (f.Name == ":authority" || f.Name == "host") && f.Value != "" {
		h.names = append(h.names, hostOnly(f.Value))
	}
}

// feedH2 looks at the header of the first stream, and skips what comes before.
func (s *sniffer) feedH2(b []byte) ([]byte, sniffVerdict) {
	h := s.h2
	if h.left == 0 && len(h.head) < h2FrameHead {
		n := min(h2FrameHead-len(h.head), len(b))
		if h.head, b = append(h.head, b[:n]...), b[n:]; len(h.head) < h2FrameHead {
			return nil, sniffVerdict{}
		}
		kind := h.head[3]
		h.left = int(binary.BigEndian.Uint32(h.head) >> 8)
		h.kept = kind == h2Headers || kind == h2Continuation
		if h.block != (kind == h2Continuation) {
			return nil, sniffVerdict{bad: "an HTTP/2 header that isn't in one piece"}
		}
		if h.kept && len(s.buf)+h.left > maxSniff {
			return nil, sniffVerdict{bad: "an HTTP/2 header of more than 64 KiB"}
		}
	}
	n := min(h.left, len(b))
	if h.kept {
		s.buf = append(s.buf, b[:n]...)
	}
	if h.left, b = h.left-n, b[n:]; h.left > 0 {
		return nil, sniffVerdict{}
	}
	v := s.endOfFrame()
	h.head = h.head[:0]
	return b, v
}

// endOfFrame reads a header that is complete.
func (s *sniffer) endOfFrame() sniffVerdict {
	h := s.h2
	kind, flags := h.head[3], h.head[4]
	if !h.kept {
		return sniffVerdict{}
	}
	if kind == h2Headers {
		var ok bool
		if s.buf, ok = withoutPadding(s.buf, flags); !ok {
			return sniffVerdict{bad: "a broken HTTP/2 header"}
		}
	}
	if h.block = flags&h2EndHeaders == 0; h.block {
		return sniffVerdict{}
	}
	_, err := h.dec.Write(s.buf)
	if err == nil {
		err = h.dec.Close()
	}
	s.step, s.buf = nil, nil
	v := sniffVerdict{names: h.names}
	switch {
	case err != nil || h.bytes > h2MaxFields:
		v.bad = "an HTTP/2 header that can't be read"
	case h.odd:
		v.bad = "an HTTP/2 header that servers might read in different ways"
	}
	return v
}

// withoutPadding is the header in a HEADERS frame.
func withoutPadding(b []byte, flags byte) ([]byte, bool) {
	pad := 0
	if flags&h2Padded != 0 {
		if len(b) == 0 {
			return nil, false
		}
		pad, b = int(b[0]), b[1:]
	}
	if flags&h2Priority != 0 {
		if len(b) < 5 {
			return nil, false
		}
		b = b[5:]
	}
	if pad > len(b) {
		return nil, false
	}
	return b[:len(b)-pad], true
}
