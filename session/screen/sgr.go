package screen

import (
	"image/color"
	"strconv"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// sgr sets the pen. What isn't known or is cut off changes nothing.
func (s *Screen) sgr(p *params) {
	style := &s.cursor.pen.style
	s.inks = inks{}
	if p.n == 0 {
		*style = uv.Style{}
		return
	}
	for all := p.v[:p.n]; len(all) > 0; {
		n := 1 // how many belong together
		for n < len(all) && all[n-1].HasMore() {
			n++
		}
		switch code := all[0].Param(0); {
		case code == 38 || code == 48 || code == 58:
			var c color.Color
			if c, n = readColor(all, n); c != nil {
				*map[int]*color.Color{38: &style.Fg, 48: &style.Bg, 58: &style.UnderlineColor}[code] = c
			}
		case n > 1 && (code != 4 || n > 2 || all[1].Param(0) > 5):
		case code == 21:
			style.Underline = uv.UnderlineDouble
		default:
			uv.ReadStyle(ansi.Params(all[:n]), style)
		}
		all = all[n:]
	}
}

// readColor reads what follows 38 and its like, of the palette or RGB, and says how
// many numbers it took. n are joined by colons; programs write semicolons too.
func readColor(p []ansi.Param, n int) (color.Color, int) {
	kind := 0
	if len(p) > 1 {
		kind = p[1].Param(0)
	}
	joined := n > 1
	if !joined {
		n = min(map[int]int{2: 5, 5: 3}[kind], len(p))
		n = max(n, min(2, len(p)))
	}
	v := p[min(2, n):n]
	switch {
	case kind == 5 && len(v) == 1 && v[0].Param(0) < 256:
		return ansi.IndexedColor(v[0].Param(0)), n
	case kind == 2 && joined && len(v) > 3:
		v = v[1:] // the colour space
	case kind != 2 || len(v) < 3:
		return nil, n
	}
	return color.RGBA{R: uint8(v[0].Param(0)), G: uint8(v[1].Param(0)), B: uint8(v[2].Param(0)), A: 0xff}, n
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

// appendSGR writes the SGR that sets exactly this style, without its CSI, parts
// joined by colons: programs that ask whether there is true colour look for them.
// Most of a keyframe's cost is here: uv's own makes it twice as much.
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
			b = strconv.AppendInt(append(b, ':'), int64(n), 10)
		}
	}
	code := func(n int) { b = strconv.AppendInt(append(b, ';'), int64(n), 10) }
	switch c := c.(type) {
	case nil:
	case ansi.BasicColor:
		switch n := int(c); {
		case n < 8:
			code(base + n)
		default:
			code(base + 60 + n - 8)
		}
	case ansi.IndexedColor:
		code(base + 8)
		add(5, int(c))
	default:
		r, g, bl, _ := c.RGBA()
		code(base + 8)
		b = append(b, ":2:"...) // and no colour space
		add(int(r>>8), int(g>>8), int(bl>>8))
	}
	return b
}
