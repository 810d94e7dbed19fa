package display

import (
	"bytes"
	"image/color"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/session/e2e/must"
	"stepbox/session/screen"
)

// hard are characters that terminals draw in different numbers of columns, with the number
// that is theirs.
var hard = []struct {
	name, text string
	width      int
}{
	{"heart", "❤\ufe0f", 2}, {"family", "👨‍👩‍👧", 2}, {"skin", "👍🏽", 2}, {"flag", "🇩🇪", 2}, {"half a flag", "🇩", 1},
	{"keycap", "1\ufe0f\u20e3", 2}, {"devanagari", "का", 2}, {"conjunct", "क्षि", 4}, {"tamil", "மி", 2}, {"khmer", "ខ្មែ", 3}, {"accent", "e\u0301", 1},
	{"soft hyphen", "\u00ad", 1}, {"face", "☺", 1}, {"new emoji", "🫩", 2}, {"han", "漢", 2}, {"hangul", "한", 2}, {"box", "─", 1},
}

// hardFrame draws each in a row of its own, in the middle and at the end, with something
// behind it.
func hardFrame(dst uv.ScreenBuffer) Frame {
	for y, h := range hard {
		put := func(x int, text string, width int) { dst.SetCell(x, y, &uv.Cell{Content: text, Width: width}) }
		put(0, "<", 1)
		put(1, h.text, h.width)
		put(1+h.width, ">", 1)
		put(19-h.width, h.text, h.width)
		put(19, "]", 1)
	}
	return Frame{Cursor: tea.NewCursor(3, 0)}
}

// bytesOf is what a terminal gets of a frame.
func bytesOf(t *testing.T, cols, rows int, draw func(uv.ScreenBuffer) Frame, environ ...string) string {
	t.Helper()
	d, err := Open(strings.NewReader(""), &bytes.Buffer{}, append([]string{"TERM=xterm-256color"}, environ...), draw, func(tea.Msg) {})
	must.OK(t, err)
	defer d.Close()
	d.Update(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
	d.Update(tea.WindowSizeMsg{Width: cols, Height: rows})
	return string(d.frame())
}

// Every character is written whole and what is behind it stands where it belongs, whatever
// the terminal makes of it.
func TestHardCharacters(t *testing.T) {
	text := bytesOf(t, 20, len(hard), hardFrame)
	s := screen.New(20, len(hard))
	_, _ = s.Write([]byte(text))
	buf := uv.NewScreenBuffer(20, len(hard))
	s.Draw(buf, buf.Bounds(), 0)
	for y, h := range hard {
		for _, at := range []struct {
			x    int
			want string
		}{{0, "<"}, {1 + h.width, ">"}, {19, "]"}} {
			if c := buf.CellAt(at.x, y); c.Content != at.want {
				t.Errorf("%s: at column %d is %q, not %q: %q", h.name, at.x, c.Content, at.want, s.Text()[y])
			}
		}
		if n := strings.Count(text, h.text); n < 2 {
			t.Errorf("%s was written %d times", h.name, n)
		}
	}
}

// What a terminal may take for a row and more doesn't go on in the next one.
func TestCharacterOfManyParts(t *testing.T) {
	long := "क" + strings.Repeat("\u093e", 200)
	text := bytesOf(t, 120, 2, func(dst uv.ScreenBuffer) Frame {
		dst.SetCell(0, 0, &uv.Cell{Content: long, Width: 1})
		return Frame{}
	})
	if !strings.Contains(text, ansi.ResetModeAutoWrap+" "+ansi.CHA(1)+long) {
		t.Errorf("it may wrap: %q", text)
	}
}

// What agents turn, tick and cut short with takes a byte or three, as every terminal draws
// it in one column; what may be a picture says where it stands.
func TestDoubtful(t *testing.T) {
	v := view(t)
	v.shown()
	for text, want := range map[string]bool{"a…•–→✓✗●◆○▸⠋⣾✻✢✶⎿≤": false, "☺❤⏺✳✔▶⚠↔": true} {
		for _, r := range text {
			if got := v.doubtful(string(r)); got != want {
				t.Errorf("%c: in doubt %v", r, got)
			}
		}
	}
}

// What is drawn again is written again only where it changed.
func TestPlacedCharactersStay(t *testing.T) {
	v := view(t)
	v.shown()
	v.words = "a☺b"
	v.change(v.words)
	for !v.writing {
		v.turn()
	}
	v.shown()
	v.change(v.words)
	for range 3 {
		v.Refresh()
	}
	if v.writing {
		t.Error("a frame that differs in nothing was written")
	}
}

// GNU screen erases to no colour, and reverses what is italic.
func TestWithinScreen(t *testing.T) {
	ground := func(dst uv.ScreenBuffer) Frame {
		for x := range 20 {
			dst.SetCell(x, 0, &uv.Cell{Content: " ", Width: 1, Style: uv.Style{Bg: color.RGBA{R: 255, A: 255}}})
		}
		dst.SetCell(0, 1, &uv.Cell{Content: "i", Width: 1, Style: uv.Style{Attrs: uv.AttrItalic}})
		return Frame{}
	}
	for _, tt := range []struct {
		environ []string
		written int
		italic  bool
	}{{nil, 0, true}, {[]string{"STY=1.pts-0.host", "LANG=C.UTF-8"}, 20, false}} {
		text := bytesOf(t, 20, 2, ground, tt.environ...)
		if strings.Count(text, coloured) != tt.written || strings.Contains(text, "\x1b[3mi") != tt.italic {
			t.Errorf("with %v it is drawn by %q", tt.environ, text)
		}
	}
}

// Linux's console has bold text brighter: black on a coloured or reversed ground would be grey.
func TestOnTheConsole(t *testing.T) {
	bold := func(dst uv.ScreenBuffer) Frame {
		dst.SetCell(0, 0, &uv.Cell{Content: "r", Width: 1, Style: uv.Style{Attrs: uv.AttrBold | uv.AttrReverse}})
		dst.SetCell(0, 1, &uv.Cell{Content: "g", Width: 1, Style: uv.Style{Bg: ansi.Yellow, Attrs: uv.AttrBold}})
		dst.SetCell(0, 2, &uv.Cell{Content: "b", Width: 1, Style: uv.Style{Attrs: uv.AttrBold}})
		return Frame{}
	}
	for term, want := range map[string]int{"linux": 1, "xterm": 3} {
		text := bytesOf(t, 5, 3, bold, "TERM="+term)
		if n := len(regexp.MustCompile(`[[;]1[;m]`).FindAllString(text, -1)); n != want {
			t.Errorf("%s: bold %d times in %q", term, n, text)
		}
	}
}
