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

// mostPlaced bounds how many are remembered.
const mostPlaced = 4096

// coloured stands for a blank with a ground of its own: GNU screen erases to no colour, and
// only ordinary blanks are drawn by erasing.
const coloured = "\u00a0"

// place has the characters of a line that are in doubt say where they stand. What another
// character has left of a wide one is a blank.
func (d *Display) place(line uv.Line) {
	for x, end := 0, 0; x < len(line); x++ {
		c := &line[x]
		if c.Width > 0 {
			end = x + c.Width
		} else if x >= end {
			c.Content, c.Width = " ", 1
		}
		if d.ascii && strings.ContainsFunc(c.Content, func(r rune) bool { return r >= utf8.RuneSelf }) {
			c.Content = strings.Repeat("?", c.Width)
		}
		if d.console && (c.Style.Bg != nil || c.Style.Attrs&uv.AttrReverse != 0) {
			c.Style.Attrs &^= uv.AttrBold // it would be brighter: black on a ground becomes grey
		}
		if d.inScreen {
			c.Style.Attrs &^= uv.AttrItalic // it would be reversed
			if c.Content == " " && c.Style.Bg != nil && !d.ascii {
				c.Content = coloured
				continue
			}
		}
		if d.ascii || len(c.Content) < 2 || c.Width < 1 || !d.doubtful(c.Content) {
			continue
		}
		p := placed{text: c.Content, x: x, width: c.Width}
		// No byte takes more than a column.
		p.edge = x+len(c.Content) >= len(line) && x+max(c.Width, ansi.StringWidthWc(c.Content), 2) >= len(line)
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

// pictures are the symbols among which are those that some fonts have as pictures of two
// columns. What agents turn and tick with isn't: they are written ten times a second.
var pictures = &unicode.RangeTable{R16: []unicode.Range16{
	{0x203c, 0x203c, 1}, {0x2049, 0x2049, 1}, {0x2122, 0x2139, 1}, {0x2194, 0x21aa, 1}, {0x231a, 0x231b, 1}, {0x2328, 0x2328, 1},
	{0x23cf, 0x23fa, 1}, {0x24c2, 0x24c2, 1}, {0x25aa, 0x25ab, 1}, {0x25b6, 0x25b6, 1}, {0x25c0, 0x25c0, 1}, {0x25fb, 0x25fe, 1},
	{0x2600, 0x2712, 1}, {0x2714, 0x2716, 1}, {0x271d, 0x271d, 1}, {0x2721, 0x2721, 1}, {0x2728, 0x2728, 1}, {0x2733, 0x2734, 1},
	{0x2744, 0x2757, 1}, {0x2763, 0x2764, 1}, {0x2795, 0x27bf, 1}, {0x2934, 0x2935, 1}, {0x2b05, 0x2b55, 1},
}}

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
		doubt = unicode.In(r, unicode.M, unicode.Cf, unicode.Co) ||
			(r < 0x2000 || r >= 0x2e80 || unicode.Is(pictures, r)) && ansi.StringWidth(s+"\ufe0f") != ansi.StringWidthWc(s)
		d.doubts[r] = doubt
	}
	return doubt
}
