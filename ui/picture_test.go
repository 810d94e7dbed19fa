package ui

import (
	"flag"
	"fmt"
	"html"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/themes"
)

// The README's pictures are screens as they are drawn; -update writes them.
func TestPictures(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) *driver{
		"deciding": func(t *testing.T) *driver {
			return keysOn([]api.Question{sceneEdit(), sceneQuestion()}, leader, "a", "w")(t, 120, 35, "dark")
		},
		"home": func(t *testing.T) *driver {
			d := drive(t, severalHeld(), 120, 35, Options{Config: themed("dark"), Version: "v0.1.0"})
			d.shows("Last actions")
			d.press("tab")
			return d
		},
		"reviewing": func(t *testing.T) *driver {
			return keysOn(nil, leader, "space", "w", leader, "space", "w", leader, "2", "w")(t, 160, 35, "light")
		},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := open(t)
			d.idle()
			d.advance(time.Second)
			d.idle()
			got := picture(d.cells, d.m.palette.Theme)
			file := filepath.Join("..", "docs", "pictures", name+".svg")
			if flag.Lookup("update").Value.String() == "true" {
				must.OK(t, os.WriteFile(file, []byte(got), 0o644))
			}
			if want, err := os.ReadFile(file); err != nil || string(want) != got {
				t.Errorf("%s is old (%v): go test ./ui -run TestPictures -update writes it", file, err)
			}
		}))
	}
}

// A cell of a picture, in pixels.
const cellWide, cellHigh = 8.4, 18

// canvas are the colours of what has none of its own: text, and what is behind it.
type canvas struct{ text, page string }

// picture draws cells as SVG: a rectangle for each run of one background, and a text for
// each run of one style, with its width given so that no font can shift it.
func picture(b uv.ScreenBuffer, th *themes.Theme) string {
	on := canvas{hex(th.Style(themes.Text).Fg, ""), hex(th.Canvas[min(1, len(th.Canvas)-1)], "")}
	var out strings.Builder
	w, h := b.Width(), b.Height()
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.1f %d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" xml:space="preserve">`+"\n", float64(w)*cellWide, h*cellHigh)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", on.page)
	for y := range h {
		for x := 0; x < w; {
			x = run(&out, b, x, y, on)
		}
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// run draws the cells from x on that have one style, and returns where they end.
func run(out *strings.Builder, b uv.ScreenBuffer, x, y int, on canvas) int {
	style, from, text := b.CellAt(x, y).Style, x, ""
	for x < b.Width() && b.CellAt(x, y).Style == style {
		c := b.CellAt(x, y)
		text += c.Content
		x += max(1, c.Width)
	}
	fg, bg := hex(style.Fg, on.text), hex(style.Bg, "")
	if style.Attrs&uv.AttrReverse != 0 {
		fg, bg = hex(style.Bg, on.page), hex(style.Fg, on.text)
	}
	left, wide := float64(from)*cellWide, float64(x-from)*cellWide
	if bg != "" {
		fmt.Fprintf(out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", left, y*cellHigh, wide, cellHigh, bg)
	}
	if strings.TrimSpace(text) == "" {
		return x
	}
	more := ""
	if style.Attrs&uv.AttrBold != 0 {
		more += ` font-weight="bold"`
	}
	if style.Attrs&uv.AttrFaint != 0 {
		more += ` opacity="0.6"`
	}
	if style.Underline != 0 {
		more += ` text-decoration="underline"`
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`+"\n",
		left, y*cellHigh+14, wide, fg, more, html.EscapeString(text))
	return x
}

func hex(c color.Color, none string) string {
	if c == nil {
		return none
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
