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
