package home

import (
	"fmt"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// mostInbox is how many rows the inbox has at most; it scrolls.
const mostInbox = 8

// height is how many rows of an area the inbox takes: none while nothing is held, nor
// awaited.
func (b *inbox) height(area uv.Rectangle) int {
	n := min(len(b.entries), mostInbox, max(1, area.Dy()/4))
	if n == 0 && !b.here || area.Dy() < 8 {
		return 0
	}
	return max(1, n) + 2
}

// draw draws the list, and returns where its rows are.
func (b *inbox) draw(area uv.Rectangle, f paint.Frame) uv.Rectangle {
	f.Focused = f.Focused && b.here && b.dialogs.Top() == nil
	box := paint.Box{Title: "Held in all sessions", Facts: paint.Line{f.Span(paint.Count(len(b.entries), "question", "questions"), themes.Held)}}
	if len(b.entries) == 0 {
		box.Facts = nil
	}
	inner := box.Draw(area, f)
	if len(b.entries) == 0 {
		f.Clip(inner.Min.X+1, inner.Min.Y, inner.Max.X, "nothing is held: what comes in a moment is asked here", themes.Muted)
		return inner
	}
	top := max(0, b.cursor-inner.Dy()+1)
	for i := range min(inner.Dy(), len(b.entries)-top) {
		row := uv.Rect(inner.Min.X, inner.Min.Y+i, inner.Dx(), 1)
		whole := b.row(row, f, b.entries[top+i])
		if top+i == b.cursor {
			b.whole = whole
			if b.here {
				f.Ground(row, themes.Selected)
				paint.Point(f.Screen, row.Min)
			}
		}
	}
	f.Scrollbar(area.Max.X-1, inner, top, len(b.entries), themes.Border)
	return inner
}

// row draws a question's row, and says whether all of what is asked is in it.
func (b *inbox) row(r uv.Rectangle, f paint.Frame, e heldRow) bool {
	y, end := r.Min.Y, r.Max.X-1
	first := e.refs[0]
	x := f.Text(r.Min.X+1, y, end, "◆"+f.Since(e.q.HeldAt), themes.Held) + 2
	right := paint.Line{}
	switch n := len(e.refs); {
	case b.desk.Pending(first):
		right = paint.Line{f.Span("answering…", themes.Info)}
	case n > 1:
		right = paint.Line{f.Span(fmt.Sprintf("%d×", n), themes.Info)}
	}
	end = f.Right(x, y, end, right) - 1
	whose := fmt.Sprintf("%s #%d", paint.Clean(name(b.of[first.Session].Session)), e.q.Action)
	room := min(26, max(10, r.Dx()/4))
	f.Clip(x, y, x+room, whose, themes.Strong)
	x += room + 1
	text := wants(e.q)
	f.Clip(x, y, end, text, themes.Text)
	return f.Width(text) <= end-x
}

// wants is what is asked about, in a row.
func wants(q api.Question) string {
	switch {
	case q.Apart():
		return paint.Wants(q)
	case q.Command != nil:
		return "$ " + paint.Clean(q.Command.Title())
	case len(q.Changes) == 1:
		return "changes " + paint.Clean(q.Changes[0].Path)
	case len(q.Changes) > 1:
		return fmt.Sprintf("changes %s and %d more", paint.Clean(q.Changes[0].Path), len(q.Changes)-1)
	}
	return paint.Clean(q.Title)
}
