package paint

import (
	"strconv"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
)

// Frame is what a pane draws on and with, besides its own data. Its methods are the functions
// of this package on its screen, in the looks of its palette.
type Frame struct {
	Screen  uv.Screen
	P       *Palette
	Now     time.Time
	Focused bool
	Zoomed  bool          // the pane is shown alone
	Number  string        // the key that focuses the pane
	Spin    string        // the mark beside what takes long, or ""
	Wait    time.Duration // until keys may answer the question that is shown
}

func (f Frame) Text(x, y, end int, s string, k themes.Token) int {
	return Text(f.Screen, x, y, end, s, f.P.S(k))
}

func (f Frame) Clip(x, y, end int, s string, k themes.Token) int {
	return Clip(f.Screen, x, y, end, s, f.P.S(k))
}

// ClipOn is Clip on the ground of another token.
func (f Frame) ClipOn(x, y, end int, s string, k, ground themes.Token) int {
	return Clip(f.Screen, x, y, end, s, f.P.On(k, ground))
}

func (f Frame) Line(x, y, end int, l Line) int  { return Draw(f.Screen, x, y, end, l) }
func (f Frame) Right(x, y, end int, l Line) int { return Right(f.Screen, x, y, end, l) }

func (f Frame) Hints(x, y, end int, ground themes.Token, hints []Hint) {
	f.P.Hints(f.Screen, x, y, end, ground, hints)
}

func (f Frame) Scrollbar(x int, area uv.Rectangle, top, total int, k themes.Token) {
	Scrollbar(f.Screen, x, area, top, total, f.P.S(k))
}

func (f Frame) Rule(x, y, end int, k themes.Token) { Rule(f.Screen, x, y, end, f.P.S(k)) }

func (f Frame) Fill(area uv.Rectangle, k themes.Token)   { Fill(f.Screen, area, f.P.S(k)) }
func (f Frame) Ground(area uv.Rectangle, k themes.Token) { Ground(f.Screen, area, f.P.S(k)) }
func (f Frame) Behind(area uv.Rectangle, k themes.Token) { Behind(f.Screen, area, f.P.S(k)) }

func (f Frame) Width(s string) int                     { return Width(f.Screen, s) }
func (f Frame) LineWidth(l Line) int                   { return LineWidth(f.Screen, l) }
func (f Frame) HintsWidth(hints []Hint) int            { return HintsWidth(f.Screen, hints) }
func (f Frame) Shorten(s string, width int) string     { return Shorten(f.Screen, s, width) }
func (f Frame) ShortenLeft(s string, width int) string { return ShortenLeft(f.Screen, s, width) }

// Span is a run of text in the look of a token.
func (f Frame) Span(s string, k themes.Token) Span { return Span{Text: s, Style: f.P.S(k)} }

// Since is for how long something has been, after a blank: as a clock or, where nothing
// moves by itself, in whole minutes; nothing is said of the first.
func (f Frame) Since(t time.Time) string {
	d := f.Now.Sub(t)
	switch {
	case !f.P.Still:
		return " " + Clock(d)
	case d < time.Minute:
		return ""
	case d < time.Hour:
		return " " + strconv.Itoa(int(d/time.Minute)) + " min"
	}
	return " " + strconv.Itoa(int(d/time.Hour)) + " h"
}

// Hint is a key and what it does here, for the last line of a screen or a dialog.
type Hint struct {
	Key, Words string
	Off        bool // shown, but it does nothing now
}

// Columns between two hints, and where one more fits so.
const (
	hintGap   = 3
	hintTight = 2
)

func (h Hint) width(dst uv.Screen) int { return Width(dst, h.Key) + 1 + Width(dst, h.Words) }

// HintsWidth is how many columns hints take beside each other.
func HintsWidth(dst uv.Screen, hints []Hint) int {
	w := 0
	for _, h := range hints {
		w += h.width(dst) + hintGap
	}
	return max(0, w-hintGap)
}

// WrapHints breaks hints into lines of at most that many columns.
func WrapHints(dst uv.Screen, hints []Hint, width int) [][]Hint {
	var out [][]Hint
	for _, h := range hints {
		n := len(out) - 1
		if n < 0 || HintsWidth(dst, out[n])+hintGap+h.width(dst) > width {
			out = append(out, []Hint{h})
			continue
		}
		out[n] = append(out[n], h)
	}
	return out
}

// fitting is how many hints fit whole in so many columns.
func fitting(dst uv.Screen, hints []Hint, width, gap int) int {
	w := 0
	for i, h := range hints {
		if w += h.width(dst); w > width {
			return i
		}
		w += gap
	}
	return len(hints)
}

// Hints draws the hints that fit whole, on the ground of a token.
func (p *Palette) Hints(dst uv.Screen, x, y, end int, ground themes.Token, hints []Hint) {
	gap := hintGap
	n := fitting(dst, hints, end-x, gap)
	if more := fitting(dst, hints, end-x, hintTight); more > n {
		n, gap = more, hintTight
	}
	for _, h := range hints[:n] {
		key, words := p.On(themes.Key, ground), p.On(themes.Hint, ground)
		if h.Off {
			key, words = p.On(themes.KeyOff, ground), p.On(themes.KeyOff, ground)
			key.Attrs |= uv.AttrStrikethrough
		}
		x = Text(dst, x, y, end, h.Key, key)
		x = Text(dst, x, y, end, " "+h.Words, words) + gap
	}
}
