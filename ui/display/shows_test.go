package display

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"stepbox/session/e2e/must"
	"stepbox/session/screen"
)

// looked is how a line's cell looks: of a blank what is seen of it.
func looked(l uv.Line, x int, p colorprofile.Profile) string {
	c := l[x]
	if c.Width == 0 && x > 0 && l[x-1].Width == 2 {
		return "the rest"
	}
	content, s := c.Content, uv.ConvertStyle(c.Style, p)
	if content == "" || content == coloured {
		content = " "
	}
	hue := func(c color.Color) string {
		if c == nil {
			return "."
		}
		r, g, b, _ := c.RGBA()
		return fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)
	}
	fg, under := hue(s.Fg), hue(s.UnderlineColor)
	if content == " " {
		s.Attrs &= uv.AttrReverse | uv.AttrStrikethrough
		if s.Attrs == 0 && s.Underline == uv.UnderlineNone {
			fg = "."
		}
	}
	if s.Underline == uv.UnderlineNone {
		under = "."
	}
	return fmt.Sprintf("%q %s on %s, %v, underline %v %s, to %q", content, fg, hue(s.Bg), s.Attrs, s.Underline, under, uv.ConvertLink(c.Link, p).URL)
}

// Whatever is drawn, and whatever the terminal turns out to be meanwhile: what is on it is
// the frame.
func TestTheTerminalShowsTheFrame(t *testing.T) {
	texts := []uv.Cell{{Content: " ", Width: 1}, {Content: "a", Width: 1}, {Content: "b", Width: 1}, {Content: "✓", Width: 1}, {Content: " ", Width: 1}}
	for _, h := range hard {
		if h.width == ansi.StringWidth(h.text) { // else a terminal may have it in several cells
			texts = append(texts, uv.Cell{Content: h.text, Width: h.width})
		}
	}
	styles := []uv.Style{{}, {}, {Bg: color.RGBA{R: 0x20, G: 0x24, B: 0x30, A: 255}}, {Fg: color.RGBA{R: 255, A: 255}, Attrs: uv.AttrBold},
		{Fg: ansi.BasicColor(4), Bg: ansi.BasicColor(3)}, {Fg: ansi.IndexedColor(200), Attrs: uv.AttrReverse},
		{Attrs: uv.AttrFaint}, {Underline: uv.UnderlineCurly, UnderlineColor: color.RGBA{G: 255, A: 255}}, {Attrs: uv.AttrStrikethrough}}
	rapid.Check(t, func(t *rapid.T) {
		on := screen.New(20, 6)
		var frame, given, drawn uv.ScreenBuffer // what is to be drawn, what it was drawn in, and that as it was then
		draw := func(dst uv.ScreenBuffer) Frame {
			for y, line := range frame.Lines {
				copy(dst.Line(y), line)
			}
			given, drawn = dst, uv.NewScreenBuffer(dst.Width(), dst.Height())
			for y := range dst.Height() {
				copy(drawn.Line(y), dst.Line(y))
			}
			return Frame{Cursor: tea.NewCursor(1, 1)}
		}
		environ := []string{"LC_ALL=C.UTF-8", "STY=" + rapid.SampledFrom([]string{"", "1.pts"}).Draw(t, "STY"), "TERM=" + rapid.SampledFrom([]string{"xterm-256color", "screen", "tmux-256color", "linux", "xterm-kitty"}).Draw(t, "TERM")}
		d, err := Open(strings.NewReader(""), on, environ, draw, func(tea.Msg) {})
		must.OK(t, err)
		defer d.Close()
		size := func(cols, rows int) {
			frame = uv.NewScreenBuffer(cols, rows)
			on.Resize(cols, rows)
			d.Update(tea.WindowSizeMsg{Width: cols, Height: rows})
		}
		size(20, 6)
		colours := []colorprofile.Profile{colorprofile.ASCII, colorprofile.ANSI, colorprofile.ANSI256, colorprofile.TrueColor}
		d.Update(tea.ColorProfileMsg{Profile: rapid.SampledFrom(colours).Draw(t, "colours")})
		area := func() (x, y, w, h int) {
			x, y = rapid.IntRange(0, frame.Width()-1).Draw(t, "x"), rapid.IntRange(0, frame.Height()-1).Draw(t, "y")
			return x, y, rapid.IntRange(1, frame.Width()-x).Draw(t, "w"), rapid.IntRange(1, frame.Height()-y).Draw(t, "h")
		}
		look := func() {
			on.Write(d.frame())
			got := uv.NewScreenBuffer(frame.Width(), frame.Height())
			on.Draw(got, got.Bounds(), 0)
			for y, line := range drawn.Lines {
				if !slices.Equal(given.Line(y), line) { // what the mouse selects is read from it
					t.Fatalf("row %d isn't as it was drawn any more: %q", y, given.Line(y))
				}
				for x := range line {
					want, is := looked(line, x, d.colours), looked(got.Line(y), x, d.colours)
					if want != is {
						t.Fatalf("at %d,%d is %s, want %s", x, y, is, want)
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { look() },
			"fill": func(t *rapid.T) {
				x, y, w, h := area()
				c := rapid.SampledFrom(texts).Draw(t, "text")
				c.Style = rapid.SampledFrom(styles).Draw(t, "style")
				c.Link.URL = rapid.SampledFrom([]string{"", "", "", "https://example.org"}).Draw(t, "link")
				for j := y; j < y+h; j++ {
					for i := x; i+c.Width <= x+w; i += c.Width {
						frame.SetCell(i, j, &c)
					}
				}
			},
			"scroll": func(t *rapid.T) {
				by := rapid.IntRange(1, frame.Height()).Draw(t, "by")
				for y := range frame.Height() - by {
					copy(frame.Line(y), frame.Line(y+by))
				}
			},
			"shift": func(t *rapid.T) {
				_, y, w, _ := area()
				line := append(uv.Line(nil), frame.Line(y)...)
				for x := range line {
					frame.SetCell(x, y, &uv.EmptyCell)
				}
				for x, c := range line {
					if c.Width > 0 && x+w+c.Width <= len(line) {
						frame.SetCell(x+w, y, &c)
					}
				}
			},
			"resize": func(t *rapid.T) {
				size(rapid.IntRange(2, 40).Draw(t, "cols"), rapid.IntRange(1, 12).Draw(t, "rows"))
			},
			"modes": func(t *rapid.T) {
				mode := rapid.SampledFrom([]ansi.Mode{ansi.ModeSynchronizedOutput, ansi.ModeUnicodeCore}).Draw(t, "mode")
				d.Update(tea.ModeReportMsg{Mode: mode, Value: ansi.ModeReset})
			},
			"away": func(t *rapid.T) {
				left := rapid.SampledFrom([]string{"\x1b[31m", "\x1b[2;3r", "\x1b[4h", "\x1b[2;3r\x1b[?6h", "\x1b[?7l", "\x1b(0", "\x0e\x1b)0", "\x1b[?1049h"}).Draw(t, "left")
				_ = d.Away(func() error { fmt.Fprint(on, "another program\r\n", left); return nil })
			},
		})
	})
}
