// Package rows is the scrolling and selecting that lists share: which row is
// selected, which is the first in view, and whether the list follows its end.
package rows

import (
	"fmt"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/find"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
	"stepbox/ui/selection"
)

// List is the position in a list of rows. The zero value follows the end.
type List struct {
	Area    uv.Rectangle // where it was drawn last
	total   int          // rows then
	at, top int
	away    bool // the person moved off the end, so the list stays
	height  int  // rows in view, from the last fit
}

// fit adapts to a number of rows and the height of the view.
func (l *List) fit(total, height int) {
	l.height = max(height, 1)
	l.at = max(0, l.In(total))
	if l.at < l.top {
		l.top = l.at
	}
	if l.at >= l.top+l.height {
		l.top = l.at - l.height + 1
	}
	l.top = max(0, min(l.top, total-l.height))
}

// At is the selected row, Top the first one in view.
func (l *List) At() int  { return l.at }
func (l *List) Top() int { return l.top }

// In is the selected row of so many, as they will be when they are drawn.
func (l *List) In(total int) int {
	if !l.away {
		return total - 1
	}
	return min(l.at, total-1)
}

// Follows says whether new rows pull the selection along.
func (l *List) Follows() bool { return !l.away }

// State is what a list's title says of it: whether it follows, as the caller knows best,
// and which of so many rows is selected.
func (l *List) State(total int, follows bool, cols int, f paint.Frame) paint.Line {
	if total == 0 || follows && cols < 40 {
		return nil
	}
	mark, words, token := "○", " not following", themes.Muted
	if follows {
		mark, words, token = "●", " following", themes.OK
	}
	if cols < 64 {
		words = ""
	}
	return paint.Line{f.Span(mark+words, token), {Text: fmt.Sprintf("  %d/%d", l.In(total)+1, total), Style: f.P.S(themes.Muted)}}
}

// Move selects another row; reaching the last one by moving down follows again.
func (l *List) Move(by, total int) {
	l.Select(max(0, min(l.at+by, total-1)))
	if by > 0 && l.at >= total-1 {
		l.away = false
	}
}

// Handle carries out an intent that moves in the list.
func (l *List) Handle(i intent.Intent, total int) {
	switch i := i.(type) {
	case intent.Move:
		l.Move(i.By, total)
	case intent.Page:
		l.Move(i.By*max(l.height-1, 1), total)
	case intent.Top:
		l.Select(0)
	case intent.Bottom:
		l.Follow()
	}
}

// Select selects a row and stays there.
func (l *List) Select(i int) { l.at, l.away = max(i, 0), true }

// Follow goes to the end and stays with it.
func (l *List) Follow() { l.away = false }

// Scroll moves the view and takes the selection along only when it would leave it.
func (l *List) Scroll(by, total int) {
	l.away = true
	l.top = max(0, min(l.top+by, total-l.height))
	l.at = max(l.top, min(l.at, l.top+l.height-1))
	if by > 0 && l.top >= total-l.height {
		l.at = max(0, total-1)
		l.away = false
	}
}

// Wheel scrolls the list, wherever in it the mouse is.
func (l *List) Wheel(_, _, by int) { l.Scroll(by, l.total) }

// Text is where the rows were drawn last.
func (l *List) Text(int, int) selection.Region { return selection.Region{Area: l.Area, Top: l.top} }

// Title is a pane's with how many of its rows a filter has.
func Title(name string, f find.Filter, found, of int) string {
	if !f.Narrows() {
		return name
	}
	return fmt.Sprintf("%s  %d of %d", name, found, of)
}

// Step goes to the next or the previous row that has what is asked for; beyond the last
// is the first.
func (l *List) Step(by, total int, has func(n int) bool) {
	at := l.In(total)
	for range total {
		if at = (at + by + total) % total; has(at) {
			l.Select(at)
			return
		}
	}
}

// Draw draws the rows in view inside of a pane's border, marks the selected one
// and how far the view is. row draws the n-th. Without the focus the selection is
// marked only if it means something to other panes. Where there are no rows, it says none.
func (l *List) Draw(border, inside uv.Rectangle, total int, f paint.Frame, idle bool, none string, row func(r uv.Rectangle, n int)) {
	if l.Area, l.total = inside, total; total == 0 || inside.Empty() {
		paint.Paragraph(f.Screen, inside, none, f.P.S(themes.Muted))
		return
	}
	l.fit(total, inside.Dy())
	ground, bar := themes.SelectedIdle, themes.Border
	if f.Focused {
		ground, bar = themes.Selected, themes.BorderFocus
	}
	for i := range min(inside.Dy(), total-l.top) {
		r := uv.Rect(inside.Min.X, inside.Min.Y+i, inside.Dx(), 1)
		row(r, l.top+i)
		if l.top+i == l.at && (f.Focused || idle) {
			f.Ground(r, ground)
			if f.Focused {
				paint.Point(f.Screen, r.Min)
			}
		}
	}
	f.Scrollbar(border.Max.X-1, inside, l.top, total, bar)
}
