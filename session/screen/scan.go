package screen

import "unicode/utf8"

// Bounds of what the scanner collects. A longer sequence is read to its end and dropped.
const (
	maxCSI     = 256       // bytes between CSI and its final byte
	maxString  = 1 << 20   // OSC 52: the longest thing with a use
	maxShort   = 4 << 10   // any other OSC, DCS or APC
	maxPicture = 1 << 30   // bytes that are counted of one
	keepSpace  = 16 << 10  // buffers grown beyond are let go after use
	maxParams  = 32        // of one CSI; more are ignored
	maxParam   = 1<<16 - 1 // a number's largest value; more is the same
)

type scanState uint8

const (
	stGround scanState = iota
	stUTF8             // within a character: buf holds its first bytes
	stEscape           // after ESC; buf holds intermediates
	stCSI              // after ESC [; buf holds what came so far
	stString           // within OSC, DCS, APC, PM, SOS or a title of screen(1)
)

// scanner cuts the byte stream into characters, controls and sequences after
// the DEC parser (https://vt100.net/emu/dec_ansi_parser), for UTF-8: bytes from
// 0x80 on are text, never controls, also within strings. What is begun at the
// end of a write is kept as it came, so that a keyframe can repeat it.
type scanner struct {
	state   scanState
	kind    byte // of a string: the byte after ESC
	buf     []byte
	dropped bool // buf was full: the sequence will be ignored
	more    int  // bytes of a picture beyond what buf has
	carried int  // the same of one that a keyframe began, until it begins again
	left    int  // bytes of the running write not yet read, for the guard
}

func (s *Screen) read(p []byte) {
	sc := &s.scan
	for len(p) > 0 {
		sc.left = len(p)
		switch sc.state {
		case stGround:
			p = s.ground(p)
		case stUTF8:
			p = s.partial(p)
		case stEscape:
			p = s.escape(p)
		case stCSI:
			p = s.csiByte(p)
		case stString:
			p = s.stringBytes(p)
		}
	}
	sc.left = 0
}

// ground reads text and what interrupts it.
func (s *Screen) ground(p []byte) []byte {
	b := p[0]
	switch {
	case b >= 0x20 && b < 0x7f:
		n := 1
		for n < len(p) && p[n] >= 0x20 && p[n] < 0x7f {
			n++
		}
		s.step(len(p) - n)
		s.printASCII(p[:n])
		return p[n:]
	case b == 0x1b:
		s.begin(stEscape)
		return s.quickCSI(p[1:])
	case b < 0x20:
		s.step(len(p) - 1)
		s.control(b)
		return p[1:]
	case b == 0x7f:
		return p[1:]
	}
	if !utf8.FullRune(p) {
		s.begin(stUTF8)
		s.scan.buf = append(s.scan.buf, p...)
		return nil
	}
	r, n := decodeRune(p)
	s.step(len(p) - n)
	s.printRune(r)
	return p[n:]
}

// decodeRune reads a character. Bytes that begin one which isn't completed are one
// U+FFFD, any other that are none are one each (Unicode 3.9, maximal subparts).
func decodeRune(p []byte) (rune, int) {
	r, n := utf8.DecodeRune(p)
	for r == utf8.RuneError && n < len(p) && !utf8.FullRune(p[:n+1]) {
		n++
	}
	return r, n
}

// quickCSI reads a CSI that lies whole within the write, nearly all do, where
// it is. p begins after the ESC.
func (s *Screen) quickCSI(p []byte) []byte {
	if len(p) < 2 || p[0] != '[' {
		return p
	}
	for i := 1; i < len(p) && i <= maxCSI; i++ {
		switch b := p[i]; {
		case b >= 0x40 && b < 0x7f:
			s.scan.state = stGround
			s.step(len(p) - i - 1)
			s.csi(p[1:i], b)
			return p[i+1:]
		case b < 0x20 || b > 0x3f:
			return p
		}
	}
	return p
}

// partial completes a character that an earlier write began.
func (s *Screen) partial(p []byte) []byte {
	sc := &s.scan
	var whole [utf8.UTFMax]byte
	had := copy(whole[:], sc.buf)
	n := copy(whole[had:], p) + had
	if !utf8.FullRune(whole[:n]) {
		sc.buf = append(sc.buf, p...) // fewer than four bytes in all, or it would be full
		return nil
	}
	r, size := decodeRune(whole[:n])
	sc.state = stGround
	s.step(len(p) - (size - had))
	s.printRune(r)
	return p[size-had:]
}

func (s *Screen) begin(st scanState) {
	sc := &s.scan
	if cap(sc.buf) > keepSpace {
		sc.buf = nil
	}
	sc.state, sc.buf, sc.dropped, sc.more = st, sc.buf[:0], false, 0
	if st == stString {
		sc.more, sc.carried = sc.carried, 0
	}
}

// escape reads what follows an ESC.
func (s *Screen) escape(p []byte) []byte {
	b := p[0]
	sc := &s.scan
	switch {
	case b < 0x20:
		s.interject(b, len(p)-1)
	case b < 0x30:
		if len(sc.buf) < 4 {
			sc.buf = append(sc.buf, b)
		} else {
			sc.dropped = true
		}
	case b >= 0x7f:
		if b != 0x7f { // text: the sequence is broken off
			sc.state = stGround
			return p
		}
	case len(sc.buf) == 0 && b == '[':
		s.begin(stCSI)
	case len(sc.buf) == 0 && (b == ']' || b == 'P' || b == '_' || b == '^' || b == 'X' || b == 'k'):
		s.begin(stString)
		sc.kind = b
	default:
		sc.state = stGround
		if !sc.dropped {
			s.step(len(p) - 1)
			s.esc(sc.buf, b)
		}
	}
	return p[1:]
}

// interject runs a control in the middle of a sequence: ESC begins another, CAN
// and SUB break it off.
func (s *Screen) interject(b byte, left int) {
	switch b {
	case 0x1b:
		s.begin(stEscape)
	case 0x18, 0x1a:
		s.scan.state = stGround
	default:
		s.step(left)
		s.control(b)
	}
}

// csiByte reads one byte of a CSI that came in pieces or is unusual.
func (s *Screen) csiByte(p []byte) []byte {
	b := p[0]
	sc := &s.scan
	switch {
	case b < 0x20:
		s.interject(b, len(p)-1)
	case b < 0x40:
		if len(sc.buf) < maxCSI {
			sc.buf = append(sc.buf, b)
		} else {
			sc.dropped = true
		}
	case b < 0x7f:
		sc.state = stGround
		if !sc.dropped {
			s.step(len(p) - 1)
			s.csi(sc.buf, b)
		}
	case b > 0x7f:
		sc.state = stGround
		return p
	}
	return p[1:]
}

// stringBytes collects a string. ESC ends it, as do CAN and SUB, which drop it;
// BEL ends an OSC.
func (s *Screen) stringBytes(p []byte) []byte {
	sc := &s.scan
	n := 0
	for n < len(p) && p[n] != 0x1b && p[n] != 0x18 && p[n] != 0x1a && p[n] != 0x07 {
		n++
	}
	s.collect(p[:n])
	if n == len(p) {
		return nil
	}
	b := p[n]
	switch {
	case b == 0x07 && sc.kind != ']':
		s.collect(p[n : n+1])
		return p[n+1:]
	case b == 0x18 || b == 0x1a:
		sc.state = stGround
		return p[n+1:]
	}
	sc.state = stGround
	if !sc.dropped {
		s.step(len(p) - n - 1)
		s.str(sc.kind, sc.buf, b == 0x07)
	}
	if b == 0x1b {
		s.begin(stEscape) // ST's second byte comes as ESC \, which does nothing
	}
	return p[n+1:]
}

// collect appends to the string; only OSC 52 may be long. Of a picture what is beyond is counted.
func (s *Screen) collect(p []byte) {
	sc := &s.scan
	if sc.dropped || len(p) == 0 {
		return
	}
	// Up to the bound first: whether it is an OSC 52 must not depend on the cut.
	if room := maxShort - len(sc.buf); room > 0 {
		n := min(room, len(p))
		sc.buf = append(sc.buf, p[:n]...)
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	limit := maxShort
	if sc.kind == ']' && len(sc.buf) > 3 && string(sc.buf[:3]) == "52;" {
		limit = maxString
	}
	if limit == maxShort && pictured(sc.kind, sc.buf) {
		sc.more = min(sc.more+len(p), maxPicture)
		return
	}
	if len(sc.buf)+len(p) > limit {
		sc.dropped, sc.buf = true, sc.buf[:0]
		return
	}
	sc.buf = append(sc.buf, p...)
}

// counted is how much came of a picture beyond what is kept.
func (sc *scanner) counted() int {
	if sc.state == stString {
		return sc.more
	}
	return sc.carried
}

// step runs before each instruction, after which so many bytes of the write are
// left; tests make it fail.
func (s *Screen) step(left int) {
	s.scan.left = left
	if s.trip != nil {
		s.trip()
	}
}

// pending is what has been read of an unfinished character or sequence, such
// that reading it again leads to the same state.
func (s *Screen) pending() []byte {
	sc := &s.scan
	var b []byte
	switch sc.state {
	case stUTF8:
		b = append(b, sc.buf...)
	case stEscape:
		b = append(append(b, 0x1b), sc.buf...)
		if sc.dropped {
			b = append(b, "    "...)
		}
	case stCSI:
		b = append(append(b, "\x1b["...), sc.buf...)
		if sc.dropped {
			b = append(b, '0') // one more than fits
		}
	case stString:
		b = append(append(b, 0x1b, sc.kind), sc.buf...)
		if sc.dropped {
			// One that nobody reads stands for one that was too long.
			b = append(b, "9999;"...)
		}
	}
	return b
}
