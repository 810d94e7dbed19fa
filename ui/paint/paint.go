// Package paint draws text, rules and boxes into terminal cells. It is the only
// place where strings become cells, so it is also where text that came out of
// the sandbox is made harmless a last time: escapes are stripped or shown, and
// widths are the ones the terminal will use.
//
// Nothing here keeps state; a Screen belongs to the goroutine that draws.
package paint

import (
	"cmp"
	"unicode/utf8"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/session/api"
	"stepbox/themes"
)

// Palette is a theme ready to be drawn with.
type Palette struct {
	Theme  *themes.Theme
	Signs  Signs // as they are drawn
	Still  bool  // nothing moves by itself
	styles [themes.Count]uv.Style
	fg, bg [themes.Count]float64 // how bright their colours are
}

// NewPalette prepares a theme for a terminal with so many colours.
func NewPalette(t *themes.Theme, colours colorprofile.Profile) *Palette {
	p := &Palette{Theme: t}
	for k := themes.Token(0); k < themes.Count; k++ {
		s := t.Style(k)
		st := uv.Style{Fg: s.Fg, Bg: s.Bg}
		if colours == colorprofile.ANSI256 {
			st.Fg, st.Bg = indexed(s.Fg, s.Fg256), indexed(s.Bg, s.Bg256)
		}
		for _, a := range []struct {
			on  bool
			bit uint8
		}{
			{s.Bold, uv.AttrBold}, {s.Faint, uv.AttrFaint}, {s.Italic, uv.AttrItalic},
			{s.Reverse, uv.AttrReverse}, {s.Strike, uv.AttrStrikethrough},
		} {
			if a.on {
				st.Attrs |= a.bit
			}
		}
		if s.Underline {
			st.Underline = uv.UnderlineSingle
		}
		p.styles[k], p.fg[k], p.bg[k] = st, luminance(st.Fg), luminance(st.Bg)
	}
	return p
}

// Plain says whether nothing beyond ordinary characters is to be drawn where words or
// they can do.
func (p *Palette) Plain() bool { return p.Theme.Name == "plain" || p.Signs != Unicode }

// S is a token's style.
func (p *Palette) S(k themes.Token) uv.Style {
	if k < 0 || k >= themes.Count {
		k = themes.Text
	}
	return p.styles[k]
}

// On is a token's style on the ground of another: a state's word on a selected
// row, or a muted fact in a dialog. What couldn't be read on it takes its colour; where
// the ground reverses (plain themes do), its own style is kept whole.
func (p *Palette) On(k, ground themes.Token) uv.Style {
	s, g := p.S(k), p.S(ground)
	if g.Attrs&uv.AttrReverse != 0 {
		g.Attrs |= s.Attrs & uv.AttrBold
		return g
	}
	if s.Fg == nil || s.Bg == nil && g.Bg != nil && !readable(p.fg[k], p.bg[ground]) {
		s.Fg = g.Fg
	}
	s.Bg = cmp.Or(s.Bg, g.Bg)
	if g.Underline != uv.UnderlineNone {
		s.Underline = g.Underline
	}
	return s
}

// Span is a run of text in one style.
type Span struct {
	Text  string
	Style uv.Style
}

// Line is a row of spans.
type Line []Span

// Clean makes text safe to draw on one line: what isn't printable becomes a
// visible escape. Text without anything of the kind is returned as it is.
func Clean(s string) string { return api.Escape(s) }

// Width is how many columns s takes on dst, once it is clean.
func Width(dst uv.Screen, s string) int { return widthOf(dst.WidthMethod(), shown(dst, Clean(s))) }

func widthOf(m uv.WidthMethod, s string) int {
	if ascii(s) {
		return len(s)
	}
	return m.StringWidth(s)
}

// LineWidth is how many columns a line takes on dst.
func LineWidth(dst uv.Screen, l Line) int {
	w := 0
	for _, s := range l {
		w += Width(dst, s.Text)
	}
	return w
}

// Text draws s from column x of row y on, up to but not including column end,
// and returns the column after it. A character that would cross end is left out.
func Text(dst uv.Screen, x, y, end int, s string, st uv.Style) int {
	s = shown(dst, Clean(s))
	method := method(dst)
	var cell uv.Cell // one for all: what is passed to a Screen is on the heap
	for len(s) > 0 {
		if n := asciiRun(s); n > 0 {
			cell = uv.Cell{Content: s[:1], Width: 1, Style: st}
			s = s[1:]
		} else {
			cluster, w := firstOf(s, method)
			if len(cluster) == 0 {
				return x
			}
			s = s[len(cluster):]
			if w <= 0 {
				continue
			}
			cell = uv.Cell{Content: cluster, Width: w, Style: st}
		}
		if x+cell.Width > end {
			return x
		}
		dst.SetCell(x, y, &cell)
		x += cell.Width
	}
	return x
}

// asciiRun says whether s starts with an ASCII character that stands alone: one
// that no following character can join.
func asciiRun(s string) int {
	if s[0] >= 0x80 || len(s) > 1 && s[1] >= 0x80 {
		return 0
	}
	return 1
}

// firstOf is the first character of clean text, and its columns. One of more columns than any
// has is of parts that the terminal doesn't join: as one it might have no room anywhere.
func firstOf(s string, m ansi.Method) (string, int) {
	if m == ansi.WcWidth {
		s = api.Trim(s, 64) // no character has more
	}
	c, w := ansi.FirstGraphemeCluster(s, m)
	if w > 8 {
		_, n := utf8.DecodeRuneInString(c)
		return c[:n], m.StringWidth(c[:n])
	}
	return c, w
}

func method(dst uv.Screen) ansi.Method {
	if m, ok := dst.WidthMethod().(ansi.Method); ok {
		return m
	}
	return ansi.WcWidth
}

// Draw draws a line of spans and returns the column after it.
func Draw(dst uv.Screen, x, y, end int, l Line) int {
	for _, s := range l {
		x = Text(dst, x, y, end, s.Text, s.Style)
	}
	return x
}

// Clip draws s like Text, with an ellipsis in place of what doesn't fit.
func Clip(dst uv.Screen, x, y, end int, s string, st uv.Style) int {
	return Text(dst, x, y, end, Shorten(dst, s, end-x), st)
}

// Right draws a line so that it ends before column end, unless it would start
// before column x: then nothing is drawn. It returns where it starts.
func Right(dst uv.Screen, x, y, end int, l Line) int {
	w := LineWidth(dst, l)
	if end-w < x {
		return end
	}
	Draw(dst, end-w, y, end, l)
	return end - w
}

// Fill covers an area with blanks of a style.
func Fill(dst uv.Screen, area uv.Rectangle, st uv.Style) {
	cell := uv.Cell{Content: " ", Width: 1, Style: st}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			dst.SetCell(x, y, &cell)
		}
	}
}

// Ground gives every cell of an area that has no background of its own the
// ground's, so that a row's highlight lies beneath what was drawn on it. What
// couldn't be read on it takes its colour; where the ground reverses, all does, as a
// colour would be the ground of its own.
func Ground(dst uv.Screen, area uv.Rectangle, st uv.Style) {
	restyle(dst, area, func(c *uv.Cell) {
		on := c.Style.Bg == nil
		if on {
			c.Style.Bg = st.Bg
		}
		if c.Style.Fg == nil || on && (st.Attrs&uv.AttrReverse != 0 || st.Fg != nil && st.Bg != nil && !apart(c.Style.Fg, st.Bg)) {
			c.Style.Fg = st.Fg
		}
		c.Style.Attrs |= st.Attrs
		if st.Underline != uv.UnderlineNone {
			c.Style.Underline = st.Underline
		}
	})
}

// Lift is Ground for an area that has a background of its own, from's.
func Lift(dst uv.Screen, area uv.Rectangle, from, to uv.Style) {
	restyle(dst, area, func(c *uv.Cell) {
		if c.Style.Bg == from.Bg {
			c.Style.Bg = nil
		}
	})
	Ground(dst, area, to)
}

// Dim gives an area one look: its own colours go.
func Dim(dst uv.Screen, area uv.Rectangle, st uv.Style) {
	restyle(dst, area, func(c *uv.Cell) { c.Style, c.Link = st, uv.Link{} })
}

// Behind makes an area recede for a dialog over it; where one thing is shown at a time, it goes.
func Behind(dst uv.Screen, area uv.Rectangle, st uv.Style) {
	if SignsOf(dst) == Words {
		Fill(dst, area, uv.Style{})
		return
	}
	Dim(dst, area, st)
}

func restyle(dst uv.Screen, area uv.Rectangle, f func(*uv.Cell)) {
	var n uv.Cell
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			c := dst.CellAt(x, y)
			if c == nil || c.Width == 0 {
				continue
			}
			n = *c
			f(&n)
			dst.SetCell(x, y, &n)
		}
	}
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 || s[i] < 0x20 || s[i] == 0x7f {
			return false
		}
	}
	return true
}
