package screen

import (
	"image/color"
	"strconv"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// sgr sets the pen.
func (s *Screen) sgr(p *params) {
	style := &s.cursor.pen.style
	s.inks = inks{}
	if p.n == 0 {
		*style = uv.Style{}
		return
	}
	uv.ReadStyle(ansi.Params(p.v[:p.n]), style)
	style.Fg, style.Bg = simple(style.Fg), simple(style.Bg)
	style.UnderlineColor = simple(style.UnderlineColor)
}

// simple turns the colour models that no terminal shows into RGB, so that a
// keyframe can say them.
func simple(c color.Color) color.Color {
	switch c := c.(type) {
	case nil, ansi.BasicColor, ansi.IndexedColor, color.RGBA:
		return c
	default:
		r, g, b, a := c.RGBA()
		if a == 0 {
			return nil
		}
		return color.RGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 0xff}
	}
}

// appendSGR writes the SGR that sets exactly this style, without its CSI. Most of
// a keyframe's cost is here: uv's own makes it twice as much.
func appendSGR(b []byte, v *uv.Style) []byte {
	b = append(b, '0')
	for i, n := range "12356789" { // in the order of uv's attribute bits
		if v.Attrs&(1<<i) != 0 {
			b = append(b, ';', byte(n))
		}
	}
	if v.Underline != 0 {
		b = append(b, ";4:"...)
		b = strconv.AppendInt(b, int64(v.Underline), 10)
	}
	b = appendColor(b, 30, v.Fg)
	b = appendColor(b, 40, v.Bg)
	b = appendColor(b, 50, v.UnderlineColor)
	return append(b, 'm')
}

func appendColor(b []byte, base int, c color.Color) []byte {
	add := func(nums ...int) {
		for _, n := range nums {
			b = strconv.AppendInt(append(b, ';'), int64(n), 10)
		}
	}
	switch c := c.(type) {
	case nil:
	case ansi.BasicColor:
		switch n := int(c); {
		case base == 50:
			add(58, 5, n)
		case n < 8:
			add(base + n)
		default:
			add(base + 60 + n - 8)
		}
	case ansi.IndexedColor:
		add(base+8, 5, int(c))
	default:
		r, g, bl, _ := c.RGBA()
		add(base+8, 2, int(r>>8), int(g>>8), int(bl>>8))
	}
	return b
}
