package egress

import (
	"bytes"
	"strconv"
	"strings"
)

// httpBody is what is left of a request's body.
type httpBody struct {
	left    int64 // bytes of it, or of the chunk with its end
	chunked bool
	last    bool // the chunk of no bytes has come: only its trailer is left
	line    []byte
}

// maxChunkLine bounds the line before a chunk, and one of a trailer.
const maxChunkLine = 4 << 10

// feedBody skips a body.
func (s *sniffer) feedBody(b []byte) ([]byte, sniffVerdict) {
	d := &s.body
	n := min(d.left, int64(len(b)))
	d.left -= n
	b = b[n:]
	switch {
	case d.left > 0:
		return nil, sniffVerdict{}
	case d.chunked:
		s.step = s.feedChunk
	default:
		s.step = s.begin
	}
	return b, sniffVerdict{}
}

// feedChunk reads the line before a chunk, or one of the trailer (RFC 9112 section
// 7.1).
func (s *sniffer) feedChunk(b []byte) ([]byte, sniffVerdict) {
	d := &s.body
	n := bytes.IndexByte(b, '\n')
	part := b
	if n >= 0 {
		part = b[:n]
	}
	if len(d.line)+len(part) > maxChunkLine {
		return nil, sniffVerdict{bad: "a line of more than 4 KiB in a body"}
	}
	if d.line = append(d.line, part...); n < 0 {
		return nil, sniffVerdict{}
	}
	b = b[n+1:]
	line := string(bytes.TrimSuffix(d.line, []byte("\r")))
	d.line = d.line[:0]
	if d.last {
		if line == "" {
			*d, s.step = httpBody{}, s.begin
		}
		return b, sniffVerdict{}
	}
	digits, _, _ := strings.Cut(line, ";")
	size, err := strconv.ParseUint(strings.TrimRight(digits, " \t"), 16, 62)
	switch {
	case err != nil:
		return nil, sniffVerdict{bad: "a chunk without a size"}
	case size == 0:
		d.last = true
	default:
		d.left, s.step = int64(size), s.feedChunkData
	}
	return b, sniffVerdict{}
}

// feedChunkData skips a chunk, and reads the line end after it.
func (s *sniffer) feedChunkData(b []byte) ([]byte, sniffVerdict) {
	d := &s.body
	n := min(d.left, int64(len(b)))
	d.left -= n
	for b = b[n:]; len(b) > 0; {
		c := b[0]
		b = b[1:]
		switch {
		case c == '\n':
			d.line, s.step = d.line[:0], s.feedChunk
			return b, sniffVerdict{}
		case c == '\r' && len(d.line) == 0:
			d.line = append(d.line, c)
		default:
			return nil, sniffVerdict{bad: "a chunk that is longer than its size"}
		}
	}
	return nil, sniffVerdict{}
}
