package actions

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// word is a part of what a row says an action did.
type word struct {
	text  string
	token themes.Token
}

// did says what an action did to the files, weightiest first: a sign with weight
// for what is lost, and words.
func did(a api.Action) (out []word) {
	e := cmp.Or(a.Effects, &api.Effects{})
	switch {
	case e.Deleted > 0:
		out = append(out, word{fmt.Sprintf(" −%d ", e.Deleted), themes.Loss})
	case e.Grave:
		out = append(out, word{" ! ", themes.Loss})
	}
	for i, w := range e.Words {
		if a.Kind == api.KindEdit && w == "changes "+strings.TrimPrefix(a.Title, "edit ") {
			continue // its title says that
		}
		if i > 0 {
			w = "· " + w
		}
		k := themes.Muted
		if i == 0 && e.Grave {
			k = themes.Warn
		}
		out = append(out, word{" " + w, k})
	}
	return out
}

// saidLeast is the room that it takes to tell what the agent said.
const saidLeast = 20

// share divides the room for a title: what the action did has what the title
// leaves of it, and three fifths of it at least; what the agent said has what is left.
func share(dst uv.Screen, a api.Action, room int) (title int, words []word) {
	words = append([]word{{"  ", themes.Text}}, did(a)...)
	width, before := 0, ""
	for _, w := range words {
		width += paint.Width(dst, w.text)
	}
	if title = room; len(words) > 1 {
		title, before = max(room*2/5, room-width), " · "
	}
	if w := paint.Width(dst, paint.Shorten(dst, a.Title, room)); w < title {
		title = w
	}
	if s := a.Said(); s != "" && s != a.Title && room-title-width >= saidLeast {
		words = append(words, word{before + "said: " + s, themes.Muted})
	}
	if len(words) == 1 {
		words = nil
	}
	return title, words
}

// columns are the widths of what stands to the right of a title, gaps included.
type columns struct{ mark, digits, status, took, lines int }

// columns are those of rows so wide. What is selected has a mark, with a gap.
func (p *Pane) columns(width int) columns {
	c := columnsFor(width, p.digits())
	c.mark = min(1, len(p.marked))
	return c
}

func columnsFor(width, digits int) columns {
	c := columns{digits: digits, status: 13}
	if width >= 56 {
		c.took = 8
	}
	if width >= 72 {
		c.lines = 11
	}
	if width >= 96 {
		c.status = 21
	}
	if width >= 160 {
		c.lines = 28 // for reasons
	}
	return c
}

func (c columns) width() int { return c.status + c.took + c.lines }

func (c columns) heldWidth() int { return max(11, c.width()) }

// title is the room for a title in a row of that width, and whether there is
// room for nothing else.
func (c columns) title(width int, held bool) (room int, alone bool) {
	right := c.width()
	if held {
		right = c.heldWidth()
	}
	all := max(0, width-2-c.mark-2-c.digits-2)
	if room = all - right - 1; room < 4 {
		return all, true
	}
	return room, false
}

// asked draws the row of what is asked about beside the actions: who wants to go
// where, for how long that waits, and why it is asked.
func (p *Pane) asked(r uv.Rectangle, f paint.Frame, c columns, it item) {
	q, ok := p.State.Question(it.question)
	if !ok || !q.Apart() {
		return
	}
	x, y, right := r.Min.X+1+c.mark, r.Min.Y, r.Max.X-1
	f.Text(x, y, right, "◆", themes.Held)
	if x += 2; q.Action != 0 {
		f.Text(x, y, right, fmt.Sprintf("%*s", c.digits, "#"+strconv.Itoa(q.Action)), themes.Muted)
	}
	x += c.digits + 2
	room, alone := c.title(r.Dx(), true)
	f.Clip(x, y, min(right, x+room), paint.Wants(q), themes.Strong)
	if alone {
		return
	}
	x = f.Text(right-c.heldWidth(), y, right, heldSince(q.HeldAt, f), themes.Held)
	why := paint.Reason(f.Screen, q.Rule, right-x-2)
	if q.Connection != nil && q.Connection.Waiting == 0 {
		why = "gave up for now"
	}
	f.Clip(x+2, y, right, why, themes.Muted)
}
