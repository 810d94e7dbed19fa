package network

import (
	"fmt"
	"slices"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// id names a row as long as it is listed.
func (f *Fold) id() int64 {
	if f.Question != nil {
		return -f.Question.ID
	}
	return f.IDs[0]
}

// withHeld appends the rows: folded attempts, and below them what is asked about, the
// oldest question last, which is where a list that follows its end has the selection.
// Attempts that wait for their answer are part of their question's row.
func withHeld(out, folds []Fold, questions []api.Question) []Fold {
	var asked []Fold
	many := false
	for i := range questions {
		if c := questions[i].Connection; c != nil {
			asked = append(asked, Fold{Question: &questions[i], Count: c.Tries, held: true})
			many = many || c.Host == ""
		}
	}
	for _, f := range folds {
		waits := f.held && (many || slices.ContainsFunc(asked, func(q Fold) bool { return isAbout(q.Question.Connection, f.Last) }))
		if !waits {
			out = append(out, f)
		}
	}
	slices.Reverse(asked)
	return append(out, asked...)
}

// isAbout says whether an attempt is one of those that a question is about.
func isAbout(c *api.Connection, a api.Attempt) bool {
	return c.Program == a.Program && c.Host == a.Host() && c.Port == a.Port && c.Protocol == a.Protocol
}

// asked is how many of the open questions are about what is to be reached.
func (p *Pane) asked() int {
	n := 0
	for i := range p.State.Questions {
		if p.State.Questions[i].Connection != nil {
			n++
		}
	}
	return n
}

// Question is the question whose row is selected, or 0.
func (p *Pane) Question() int64 {
	rows := p.rows()
	if len(rows) == 0 {
		return 0
	}
	if q := rows[p.List.In(len(rows))].Question; q != nil {
		return q.ID
	}
	return 0
}

// Whole says whether a question's row shows all that a decision on it covers.
func (p *Pane) Whole(dst uv.Screen, q api.Question) bool {
	if p.Area.Empty() || q.Connection == nil {
		return false
	}
	const beside = len(" ") + 2 + len(" ") + len(" ") // the mark, and what is around
	state := heldWords(q.Connection, p.Area.Dx(), " 0:00:00")
	return paint.Width(dst, paint.WhoTo(q.Connection))+beside+paint.Width(dst, state) <= p.Area.Dx()
}

// heldWords is the state of what is held, in a row of that width.
func heldWords(c *api.Connection, width int, since string) string {
	words := "HELD"
	if width >= 60 {
		words += since
		if c.Waiting == 0 {
			words += " gave up for now"
		}
	}
	if c.Tries > 1 {
		words += fmt.Sprintf(" ×%d", c.Tries)
	}
	return words
}

// heldRow draws the row of a question.
func heldRow(r uv.Rectangle, f paint.Frame, q *api.Question) {
	y, x, end := r.Min.Y, r.Min.X+1, r.Max.X-1
	x = f.Text(x, y, end, "◆ ", themes.Held)
	state := heldWords(q.Connection, r.Dx(), f.Since(q.HeldAt))
	stop := end
	if w := f.Width(state); w+14 < end-x {
		stop = end - w - 1
		f.Text(end-w, y, end, state, themes.Held)
	}
	f.Clip(x, y, stop, paint.WhoTo(q.Connection), themes.Strong)
}
