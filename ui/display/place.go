package display

import (
	"strings"
	"unicode"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// Terminals don't agree on how many columns a character takes: one that joins an emoji's
// parts has 2 where another has 6, and a heart that is asked to be red is 1 or 2. So what is
// in doubt says itself where it stands: it is written whole, over blanks of the columns that
// are its own, and the cursor is put behind them. What a terminal draws beyond is drawn over
// by what comes next.

// placed is a character that may be drawn in more or fewer columns than are its own.
type placed struct {
	text     string
	x, width int
	edge     bool // it may reach the last column, where some terminals would go on below
}

// mostColumns is what a terminal draws of one character at most: two for each rune, which
// in 64 bytes are few.
const mostColumns = 64

// mostPlaced bounds how many are remembered.
const mostPlaced = 4096

// place has the characters of a line that are in doubt say where they stand.
func (d *Display) place(line uv.Line) {
	for x := range line {
		c := &line[x]
		if len(c.Content) < 2 || c.Width < 1 || !d.doubtful(c.Content) {
			continue
		}
		p := placed{text: c.Content, x: x, width: c.Width}
		p.edge = x+mostColumns >= len(line) && x+max(c.Width, ansi.StringWidthWc(c.Content), 2) >= len(line)
		known, ok := d.places[p]
		if !ok {
			if len(d.places) >= mostPlaced {
				clear(d.places)
			}
			known = p.sequence()
			d.places[p] = known
		}
		c.Content = known
	}
}

func (p placed) sequence() string {
	s := strings.Repeat(" ", p.width) + ansi.CHA(p.x+1) + p.text + ansi.CHA(p.x+p.width+1)
	if p.edge {
		s = ansi.ResetModeAutoWrap + s + ansi.SetModeAutoWrap
	}
	return s
}

// doubtful says whether terminals may draw a character in different numbers of columns.
func (d *Display) doubtful(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case n < len(s):
		return true // of several parts
	case r == 0xad:
		return true
	case r < 0x300 || r >= 0x2500 && r < 0x25a0 || r >= 0x2e80 && r < 0xd800:
		return false // letters, lines and blocks, and what is wide for everyone
	case r >= 0x1f000 && r < 0x20000:
		return true
	}
	doubt, ok := d.doubts[r]
	if !ok {
		if len(d.doubts) >= mostPlaced {
			clear(d.doubts)
		}
		doubt = unicode.In(r, unicode.M, unicode.Cf, unicode.Co) || ansi.StringWidth(s+"\ufe0f") != ansi.StringWidthWc(s)
		d.doubts[r] = doubt
	}
	return doubt
}
