package cellstest

import (
	"cmp"
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/exp/golden"
)

// drawnIn are the themes that golden frames are drawn in. The first one's text is the frame's.
var drawnIn = []string{"dark", "light", "contrast", "plain"}

// Golden compares a frame, that draw draws anew for each of four themes, with the test's golden file, one for all of them:
//
//   - the text, row by row, and of other themes the rows that differ;
//   - for each row its runs of one style: a letter, and how many cells wide it is;
//   - the letters, each with its style in the four themes.
//
// So a change of words is a readable difference, a change of colours one line, and four
// themes take less than half of what one takes as escape sequences.
func Golden(t testing.TB, draw func(theme string) uv.ScreenBuffer) {
	t.Helper()
	var frames []uv.ScreenBuffer
	for _, theme := range drawnIn {
		b := draw(theme)
		legible(t, theme, b)
		frames = append(frames, b)
	}
	golden.RequireEqual(t, describe(frames))
}

// describe writes frames of one size, one for each theme.
func describe(frames []uv.ScreenBuffer) string {
	var text, others, styles strings.Builder
	letters := map[string]string{}
	var last string
	first := frames[0]
	for y := range first.Height() {
		row := words(first, y)
		fmt.Fprintln(&text, row)
		for i, f := range frames[1:] {
			if w := words(f, y); w != row {
				fmt.Fprintf(&others, "%s %d %s\n", drawnIn[i+1], y, w)
			}
		}
		if r := runs(frames, y, letters); r != last {
			fmt.Fprintf(&styles, "%d%s\n", y, r)
			last = r
		}
	}
	out := text.String() + others.String() + "--- styles, from row\n" + styles.String() + "---\n"
	for _, style := range slices.SortedFunc(maps.Keys(letters), func(a, b string) int {
		return cmp.Or(len(letters[a])-len(letters[b]), strings.Compare(letters[a], letters[b]))
	}) {
		out += letters[style] + " " + style + "\n"
	}
	return out
}

// legible fails where a theme's letters are on a ground from which they hardly differ:
// a contrast below 3, as WCAG 2.2 counts. Programs of the sandbox colour as they like, but
// with the colours of a palette.
func legible(t testing.TB, theme string, b uv.ScreenBuffer) {
	t.Helper()
	for y := range b.Height() {
		for x := range b.Width() {
			c := b.CellAt(x, y)
			fg, ok := c.Style.Fg.(color.RGBA)
			bg, both := c.Style.Bg.(color.RGBA)
			if !ok || !both || strings.IndexFunc(c.Content, unicode.IsLetter) < 0 {
				continue
			}
			if l, d := luminance(fg), luminance(bg); (max(l, d)+0.05)/(min(l, d)+0.05) < 3 {
				t.Errorf("theme %s: %q at %d,%d is %s: %s", theme, c.Content, x, y, look(c.Style), words(b, y))
				return
			}
		}
	}
}

func luminance(c color.RGBA) float64 {
	linear := func(v uint8) float64 { return math.Pow(float64(v)/255, 2.2) }
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// words is the text of a row without the blanks at its end.
func words(b uv.ScreenBuffer, y int) string {
	var out strings.Builder
	for x := range b.Width() {
		if c := b.CellAt(x, y); c != nil && c.Width > 0 {
			out.WriteString(c.Content)
		}
	}
	return strings.TrimRight(out.String(), " ")
}

// runs are the styles of a row, each by its letter, which is given where it comes first.
func runs(frames []uv.ScreenBuffer, y int, letters map[string]string) string {
	var out strings.Builder
	var run string
	n := 0
	flush := func() {
		if n > 0 {
			fmt.Fprintf(&out, " %s%d", run, n)
		}
	}
	for x := range frames[0].Width() {
		style := looks(frames, x, y)
		l, ok := letters[style]
		if !ok {
			l = letter(len(letters))
			letters[style] = l
		}
		if l != run {
			flush()
			run, n = l, 0
		}
		n++
	}
	flush()
	return out.String()
}

// letter is a, b, … z, A, … Z, aa, ab, …
func letter(n int) string {
	const all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if n < len(all) {
		return all[n : n+1]
	}
	return letter(n/len(all)-1) + letter(n%len(all))
}

// looks is how a cell looks in each theme, in words; once where it is the same in all.
func looks(frames []uv.ScreenBuffer, x, y int) string {
	var all []string
	for _, f := range frames {
		c := f.CellAt(x, y)
		if c == nil || c.Width == 0 && x > 0 {
			c = f.CellAt(x-1, y)
		}
		all = append(all, look(c.Style))
	}
	if len(slices.Compact(slices.Clone(all))) == 1 {
		return all[0]
	}
	return strings.Join(all, " | ")
}

func look(s uv.Style) string {
	out := []string{hex(s.Fg)}
	if s.Bg != nil {
		out = append(out, "on", hex(s.Bg))
	}
	for _, a := range []struct {
		bit  uint8
		word string
	}{
		{uv.AttrBold, "bold"}, {uv.AttrFaint, "faint"}, {uv.AttrItalic, "italic"}, {uv.AttrReverse, "reverse"}, {uv.AttrStrikethrough, "strike"},
	} {
		if s.Attrs&a.bit != 0 {
			out = append(out, a.word)
		}
	}
	if s.Underline != uv.UnderlineNone {
		out = append(out, "underline")
	}
	return strings.Join(out, " ")
}

// hex is a colour, or - for the terminal's own.
func hex(c color.Color) string {
	if c == nil {
		return "-"
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
