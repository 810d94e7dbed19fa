package redact

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Mask hides known values in a stream of bytes, such as what an agent prints: each
// character becomes a dot, so that whoever printed it finds the cursor where it thinks
// it is. Values are found across the pieces that the stream comes in; what may be the
// beginning of one is held back until more has come, or Flush.
//
// A Mask is used by one goroutine. A nil one hides nothing.
type Mask struct {
	values [][]byte // the longest first
	// far is how far a window that ends with a pair of bytes is at least from the next
	// one that a value may begin with.
	far   [1 << 16]uint8
	held  []byte // what may be the beginning of a value
	shown int    // so many bytes of held have been shown by Flush
}

// window is how many bytes of a value are looked for at first: all have so many.
const window = minLiteral

// Mask is one for the values that a Recording knows, nil when there are none.
func (r *Redactor) Mask() *Mask {
	m := &Mask{}
	for _, l := range r.known {
		for _, v := range [][]byte{l.exact, bytes.ReplaceAll(l.exact, []byte("\n"), []byte("\r\n"))} { // as a terminal has lines
			if !slices.ContainsFunc(m.values, func(had []byte) bool { return bytes.Equal(had, v) }) {
				m.values = append(m.values, v)
			}
		}
	}
	if len(m.values) == 0 {
		return nil
	}
	slices.SortStableFunc(m.values, func(a, b []byte) int { return len(b) - len(a) })
	for i := range m.far {
		m.far[i] = window - 1
	}
	for _, v := range m.values {
		for i := 1; i < window; i++ {
			p := pair(v[i-1], v[i])
			m.far[p] = min(m.far[p], uint8(window-1-i))
		}
	}
	return m
}

// Held is how many bytes wait for what comes.
func (m *Mask) Held() int {
	if m == nil {
		return 0
	}
	return len(m.held) - m.shown
}

// Write takes the next piece and gives what can be shown by now, which may be a part of
// the piece itself.
func (m *Mask) Write(p []byte) []byte {
	if m == nil {
		return p
	}
	buf := p
	if len(m.held) > 0 {
		buf = slices.Concat(m.held, p)
	}
	found, end := m.find(buf, m.begun(buf, 0))
	out := m.hide(buf[:end], found)
	m.held, m.shown = slices.Clone(buf[end:]), max(0, m.shown-end)
	return out
}

// Flush gives what is held back. It is still remembered: should it be the beginning of a
// value, the rest of that is hidden.
func (m *Mask) Flush() []byte {
	if m.Held() == 0 {
		return nil
	}
	found, _ := m.find(m.held, len(m.held))
	out := m.hide(m.held, found)
	m.shown = len(m.held)
	return out
}

// find lists the values in a text, and where the text ends that is settled: there may
// be the beginning of one, at the place begun or, where a value covers that, later.
func (m *Mask) find(text []byte, begun int) (found []span, end int) {
	for at := 0; ; {
		first, length := m.first(text, at)
		if length == 0 || first >= begun {
			return found, begun
		}
		found = append(found, span{from: first, to: first + length})
		if at = first + length; begun < at {
			begun = m.begun(text, at)
		}
	}
}

// first is where the first value is in a text, from a place on, and how long; of those at
// the same place the longest. It looks at two bytes of a window at a time (Wu and Manber,
// "A fast algorithm for multi-pattern searching", 1994).
func (m *Mask) first(text []byte, from int) (at, length int) {
	for end := from + window - 1; end < len(text); {
		if far := m.far[pair(text[end-1], text[end])]; far > 0 {
			end += int(far)
			continue
		}
		at := end - window + 1
		for _, v := range m.values {
			if bytes.HasPrefix(text[at:], v) {
				return at, len(v)
			}
		}
		end++
	}
	return len(text), 0
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// begun is the first place, from one on, at which the rest of the text is the beginning
// of a value, but less than all of it; the text's end if there is none.
func (m *Mask) begun(text []byte, from int) int {
	first := len(text)
	for _, v := range m.values {
		for at := max(from, len(text)-len(v)+1); at < first; at++ {
			i := bytes.IndexByte(text[at:first], v[0])
			if i < 0 {
				break
			}
			if at += i; bytes.HasPrefix(v, text[at:]) {
				first = at
			}
		}
	}
	return first
}

// hide gives a text with dots for the values in it, without what was shown by now.
func (m *Mask) hide(text []byte, found []span) []byte {
	if len(found) == 0 {
		return text[min(m.shown, len(text)):]
	}
	var out []byte
	at := m.shown
	for _, f := range found {
		out = append(out, text[min(at, f.from):f.from]...)
		for _, b := range text[max(at, f.from):max(at, f.to)] {
			switch {
			case b < ' ': // lines stay
				out = append(out, b)
			case utf8.RuneStart(b):
				out = append(out, "•"...)
			}
		}
		at = max(at, f.to)
	}
	return append(out, text[min(at, len(text)):]...)
}
