package paint

import (
	"image/color"
	"math"

	"github.com/charmbracelet/x/ansi"
)

// indexed is the entry of the 256-colour palette for a colour: the theme's own
// choice, or the one that looks nearest. Greys matter most in a theme, and the
// usual conversion, which weighs hue, turns them blue.
func indexed(c color.Color, own uint8) color.Color {
	if _, basic := c.(ansi.BasicColor); c == nil || basic {
		return c
	}
	if own != 0 {
		return ansi.IndexedColor(own)
	}
	r16, g16, b16, _ := c.RGBA()
	r, g, b := int(r16>>8), int(g16>>8), int(b16>>8)
	best, least := 16, 1<<30
	try := func(i, x, y, z int) {
		// Distance weighted by how red the colour is, close to what eyes see.
		mean := (r + x) / 2
		dr, dg, db := r-x, g-y, b-z
		d := (512+mean)*dr*dr/256 + 4*dg*dg + (767-mean)*db*db/256
		if d < least {
			best, least = i, d
		}
	}
	level := [6]int{0, 95, 135, 175, 215, 255}
	for i := range 216 {
		try(16+i, level[i/36], level[i/6%6], level[i%6])
	}
	for i := range 24 {
		v := 8 + 10*i
		try(232+i, v, v, v)
	}
	return ansi.IndexedColor(uint8(best))
}

// apart says whether text of one colour can be read on the other.
func apart(a, b color.Color) bool { return readable(luminance(a), luminance(b)) }

// readable says the same of how bright they are: a contrast of 3, as WCAG 2.2 asks of
// large text.
func readable(x, y float64) bool { return (max(x, y)+0.05)/(min(x, y)+0.05) >= 3 }

// luminance is how bright a colour is, from 0 to 1; the terminal's own isn't known.
func luminance(c color.Color) float64 {
	if c == nil {
		return 0
	}
	r, g, b, _ := c.RGBA()
	linear := func(v uint32) float64 { return math.Pow(float64(v)/0xffff, 2.2) }
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}
