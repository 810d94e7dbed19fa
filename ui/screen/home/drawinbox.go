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
func (b *inbox) draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) uv.Rectangle {
	box := paint.Box{Title: "Held in all sessions", Focused: f.Focused && b.here && b.dialogs.Top() == nil, Facts: paint.Line{{Text: paint.Count(len(b.entries), "question", "questions"), Style: f.P.S(themes.Held)}}}
	if len(b.entries) == 0 {
		box.Facts = nil
	}
	inner := box.Draw(dst, area, f.P)
	if len(b.entries) == 0 {
		paint.Clip(dst, inner.Min.X+1, inner.Min.Y, inner.Max.X, "nothing is held: what comes in a moment is asked here", f.P.S(themes.Muted))
		return inner
	}
	top := max(0, b.cursor-inner.Dy()+1)
	for i := range min(inner.Dy(), len(b.entries)-top) {
		row := uv.Rect(inner.Min.X, inner.Min.Y+i, inner.Dx(), 1)
		whole := b.row(dst, row, f, b.entries[top+i])
		if top+i == b.cursor {
			b.whole = whole
			if b.here {
				paint.Ground(dst, row, f.P.S(themes.Selected))
				paint.Point(dst, row.Min)
			}
		}
	}
	paint.Scrollbar(dst, area.Max.X-1, inner, top, len(b.entries), f.P.S(themes.Border))
	return inner
}

// row draws a question's row, and says whether all of what is asked is in it.
func (b *inbox) row(dst uv.Screen, r uv.Rectangle, f paint.Frame, e heldRow) bool {
	p, y, end := f.P, r.Min.Y, r.Max.X-1
	first := e.refs[0]
	x := paint.Text(dst, r.Min.X+1, y, end, "◆"+f.Since(e.q.HeldAt), p.S(themes.Held)) + 2
	right := paint.Line{}
	switch n := len(e.refs); {
	case b.desk.Pending(first):
		right = paint.Line{{Text: "answering…", Style: p.S(themes.Info)}}
	case n > 1:
		right = paint.Line{{Text: fmt.Sprintf("%d×", n), Style: p.S(themes.Info)}}
	}
	end = paint.Right(dst, x, y, end, right) - 1
	whose := fmt.Sprintf("%s #%d", paint.Clean(name(b.of[first.Session].Session)), e.q.Action)
	room := min(26, max(10, r.Dx()/4))
	paint.Clip(dst, x, y, x+room, whose, p.S(themes.Strong))
	x += room + 1
	text := wants(e.q)
	paint.Clip(dst, x, y, end, text, p.S(themes.Text))
	return paint.Width(dst, text) <= end-x
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
