package home

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/answer"
	"stepbox/ui/dialog"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// heldRow is a row of the inbox: a question, and those of other sessions that read the same,
// which its answer is for, too. The first is the oldest, and the one that is shown.
type heldRow struct {
	refs []answer.Ref
	q    api.Question
}

// inbox is what is held in all live sessions, as one list: what can't be undone first.
type inbox struct {
	*core
	desk    answer.Desk
	about   string // the session of the question that is opened; "": none is
	entries []heldRow
	here    bool // the keys go to it
	cursor  int
	chosen  answer.Ref // the first of the selected row; it stays selected wherever the row goes
	whole   bool       // the selected row, as it was drawn last, shows all that an answer covers
	blind   bool       // there is too little room: what keys would be about isn't in view, or not all of it

	emptied time.Time // when nothing was left, with the keys here
}

// screen is what the desk works with.
func (b *inbox) screen() answer.Screen {
	return answer.Screen{
		Client: b.cfg.Client, Now: b.cfg.Now,
		State: func(session string) *state.State { return b.of[session] },
		Over: func(session string) bool {
			st := b.of[session]
			return st == nil || !st.Session.Live()
		},
		Refused: func(_ answer.Ref, words string) { b.refused(words) },
		Do: func(_ string, f func(context.Context) func() tea.Cmd) tea.Cmd {
			return b.ask(b.ctx, func(ctx context.Context) then { return f(ctx) })
		},
		After: func(d time.Duration, f func() tea.Cmd) tea.Cmd { return b.after(d, f) },
	}
}

// gather makes the list anew of what is known.
func (b *inbox) gather() {
	b.entries = nil
	kin := map[string]int{}
	for _, f := range b.live {
		x := f.Session
		st := b.of[x.ID]
		if st == nil {
			continue
		}
		st.Also = nil
		for _, q := range st.Questions {
			r, k := answer.Ref{Session: x.ID, ID: q.ID}, st.Kin(q)
			i, ok := kin[k]
			switch {
			case k == "" || !ok:
				kin[k] = len(b.entries)
				b.entries = append(b.entries, heldRow{refs: []answer.Ref{r}, q: q})
			case q.HeldAt.Before(b.entries[i].q.HeldAt):
				b.entries[i].refs, b.entries[i].q = slices.Insert(b.entries[i].refs, 0, r), q
			default:
				b.entries[i].refs = append(b.entries[i].refs, r)
			}
		}
	}
	slices.SortStableFunc(b.entries, func(a, b heldRow) int {
		return cmp.Or(cmp.Compare(state.Rank(a.q), state.Rank(b.q)), a.q.HeldAt.Compare(b.q.HeldAt))
	})
	for _, e := range b.entries {
		if len(e.refs) > 1 {
			st := b.of[e.refs[0].Session]
			if st.Also == nil {
				st.Also = map[int64]string{}
			}
			st.Also[e.q.ID] = b.also(e)
		}
	}
	b.pick(slices.IndexFunc(b.entries, func(e heldRow) bool { return slices.Contains(e.refs, b.chosen) }))
	switch now := b.cfg.Now(); {
	case !b.here || len(b.entries) > 0:
		b.emptied = time.Time{}
	case b.emptied.IsZero():
		b.emptied = now
	case now.Sub(b.emptied) >= answer.Linger:
		b.here, b.desk.Decided = false, now // the next key may have been for it
	}
}

// also says which questions of other sessions an answer is for.
func (b *inbox) also(e heldRow) string {
	var names []string
	for _, r := range e.refs[1:] {
		q, _ := b.of[r.Session].Question(r.ID)
		names = append(names, fmt.Sprintf("%s #%d", name(b.of[r.Session].Session), q.Action))
	}
	return "and " + paint.Count(len(names), "equal one", "equal ones") + " elsewhere, answered with it: " + strings.Join(names, ", ")
}

// pick selects a row; without one the row stays that is there.
func (b *inbox) pick(i int) {
	if i < 0 {
		i = b.cursor
	}
	b.cursor, b.chosen = max(0, min(i, len(b.entries)-1)), answer.Ref{}
	if e, ok := b.asked(); ok {
		b.chosen = e.refs[0]
	}
}

// asked is the selected row.
func (b *inbox) asked() (heldRow, bool) {
	if b.cursor < len(b.entries) {
		return b.entries[b.cursor], true
	}
	return heldRow{}, false
}

// has says whether a question is in the list.
func (b *inbox) has(session string, id int64) bool {
	return slices.ContainsFunc(b.entries, func(e heldRow) bool { return slices.Contains(e.refs, answer.Ref{Session: session, ID: id}) })
}

// target is what keys would decide now, as it is shown.
func (b *inbox) target() state.Target {
	if b.blind {
		return state.Target{}
	}
	if d := b.dialogs.Top(); d != nil {
		t := d.Target()
		t.Place += " " + b.about
		return t
	}
	e, ok := b.asked()
	if !ok || !b.here {
		return state.Target{}
	}
	r := e.refs[0]
	return state.Target{Question: r.ID, Hash: b.of[r.Session].Print(r.ID), Place: "inbox " + r.Session}
}

// settle brings an opened question and the quiet time in line with what will be drawn next.
func (b *inbox) settle() tea.Cmd {
	var cmd tea.Cmd
	if b.about != "" {
		cmd = b.sync()
	}
	return tea.Batch(cmd, b.desk.Watch(b.target()))
}

// sync tells the opened question what became of it, and reads what it lacks.
func (b *inbox) sync() tea.Cmd {
	st := b.of[b.about]
	if st == nil {
		st = &state.State{Session: api.Session{State: api.SessionEnded}}
	}
	news := b.desk.News(b.about, st)
	if b.cfg.Watching {
		news.Off = dialog.WatchingOnly
	}
	b.dialogs.Sync(news)
	return b.desk.Differences(b.about, b.dialogs.Top())
}

// open opens a question beside its evidence.
func (b *inbox) open(e heldRow) {
	r := e.refs[0]
	b.dialogs = dialog.Stack{}
	b.over(r.Session, dialog.NewDecision(e.q, b.of[r.Session].Print(r.ID)))
}

// shut closes what is open, or goes back to what is below it.
func (b *inbox) shut() {
	b.dialogs.Close(b.dialogs.Top())
	if b.dialogs.Top() == nil {
		b.about = ""
	}
}

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
