package export

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filter keeps of a terminal's output what draws: text, whole and in UTF-8, and the
// sequences that move the cursor, colour and clear. What a terminal would obey
// beyond that when the output is played is left out: strings (titles, the clipboard,
// links, notifications, graphics, what programs define of their own), questions that
// it answers as if typed, the mouse and other reports, its window, its printer. The
// sequences are cut as in package screen, which says after what standard.
type filter struct {
	buf []byte // an unfinished sequence or character, with its ESC
	str bool   // within a string
}

// maxSequence bounds a sequence, in bytes; a longer one is left out.
const maxSequence = 256

// write takes the next bytes and emits text, and what draws or isn't seen between it,
// so that a secret with such within it is found.
func (f *filter) write(p []byte, emit func(data []byte, text bool) error) error {
	if len(f.buf) > 0 {
		p = append(f.buf, p...)
		f.buf = nil
	}
	var text []byte
	flush := func() error {
		if len(text) == 0 {
			return nil
		}
		err := emit(text, true)
		text = nil
		return err
	}
	between := func(data []byte) error {
		if err := flush(); err != nil {
			return err
		}
		return emit(slices.Clip(data), false) // what is added to it isn't what comes next
	}
	for len(p) > 0 {
		switch {
		case f.str:
			p = f.skip(p)
			continue
		case p[0] == 0x1b:
			n, whole := sequence(p)
			if !whole && len(p) <= maxSequence {
				f.buf = bytes.Clone(p)
				return flush()
			}
			if seq := f.keep(p[:n]); seq != nil && whole {
				if err := between(seq); err != nil {
					return err
				}
			}
			p = p[n:]
			continue
		case p[0] < 0x20 || p[0] == 0x7f:
			switch { // others do nothing, or ask (ENQ)
			case strings.IndexByte("\t\n\v\f\r", p[0]) >= 0:
				text = append(text, p[0])
			case strings.IndexByte("\b\a\x0e\x0f", p[0]) >= 0:
				if err := between(p[:1]); err != nil {
					return err
				}
			}
			p = p[1:]
			continue
		case !utf8.FullRune(p):
			f.buf = bytes.Clone(p)
			return flush()
		}
		c, n := utf8.DecodeRune(p)
		if unicode.In(c, unicode.Cf, unicode.Mn) { // nobody sees it, or it is part of the letter before
			if err := between(p[:n]); err != nil {
				return err
			}
		} else if c < 0x80 || c > 0x9f { // C1 controls begin sequences in some terminals
			text = utf8.AppendRune(text, c) // of invalid bytes: U+FFFD
		}
		p = p[n:]
	}
	return flush()
}

// skip reads on to a string's end: ST, or BEL; CAN and SUB break it off, as does
// another sequence, which is what is left then. It copies nothing: hostile output is
// full of strings that others break off.
func (f *filter) skip(p []byte) []byte {
	i := bytes.IndexAny(p, "\x1b\x18\x1a\x07")
	switch {
	case i < 0:
		return nil
	case p[i] == 0x1b && i+1 == len(p):
		f.buf = []byte{0x1b}
		return nil
	}
	f.str = false
	if p[i] == 0x1b && p[i+1] != '\\' {
		return p[i:]
	} else if p[i] == 0x1b {
		i++
	}
	return p[i+1:]
}

// sequence is the length of the sequence that p begins with, and whether all of it
// is there. Of a string it is the beginning alone.
func sequence(p []byte) (n int, whole bool) {
	n = 1
	for n < len(p) && p[n] >= 0x20 && p[n] < 0x30 {
		n++
	}
	if n == len(p) {
		return n, false
	}
	if p[n] < 0x20 || p[n] >= 0x7f {
		return n, true // broken off
	}
	if n > 1 || p[n] != '[' {
		return n + 1, true
	}
	for n++; n < len(p); n++ {
		switch b := p[n]; {
		case b >= 0x40 && b < 0x7f:
			return n + 1, true
		case b < 0x20 || b >= 0x7f:
			return n, true
		}
	}
	return n, false
}

// draws are the private modes that change how a terminal draws and nothing else: the
// background, where lines begin and end, the cursor, the other screen, frames that are
// whole. Others make it send what nobody typed, or send it otherwise, or act.
var draws = []string{"5", "6", "7", "12", "25", "45", "47", "69", "1047", "1048", "1049", "2026"}

// keep gives what is kept of a sequence; nil: nothing.
func (f *filter) keep(seq []byte) []byte {
	final := seq[len(seq)-1]
	if len(seq) < 2 || final < 0x30 || final >= 0x7f {
		return nil
	}
	if seq[1] != '[' {
		if len(seq) == 2 && strings.IndexByte("]P_^Xk", final) >= 0 {
			f.str = true
			return nil
		}
		if len(seq) == 2 && strings.IndexByte("78DEHMNOc", final) >= 0 || len(seq) == 3 && strings.IndexByte("()*+", seq[1]) >= 0 || string(seq) == "\x1b#8" {
			return seq
		}
		return nil
	}
	if len(seq) == 2 {
		return nil
	}
	params := seq[2 : len(seq)-1]
	private := bytes.ContainsAny(params, "<=>?")
	switch {
	case (final == 'h' || final == 'l') && len(params) > 0 && params[0] == '?':
		modes := slices.DeleteFunc(strings.Split(string(params[1:]), ";"), func(m string) bool {
			return !slices.Contains(draws, strings.TrimLeft(m, "0"))
		})
		if len(modes) == 0 {
			return nil
		}
		return []byte("\x1b[?" + strings.Join(modes, ";") + string(final))
	case (final == 'h' || final == 'l') && string(params) == "4": // inserting
		return seq
	case string(params) == "!" && final == 'p', final == 'q' && bytes.HasSuffix(params, []byte(" ")): // soft reset, the cursor's shape
		return seq
	case bytes.ContainsAny(params, " !\"#$%&'()*+,-./"), private && final != 'J' && final != 'K':
		return nil
	case strings.IndexByte("@ABCDEFGHIJKLMPSTXZ`abdefgmrsu", final) >= 0:
		return seq
	}
	return nil // c n t x i and what else asks or acts
}
