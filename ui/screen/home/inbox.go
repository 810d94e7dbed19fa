package home

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/answer"
	"stepbox/ui/dialog"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// linger is how long the inbox keeps the keys once it is empty: an agent that has its
// answer asks its next question a moment later, and that is answered as the last one was.
const linger = 3 * time.Second

// heldRow is a row of the inbox: a question, and those of other sessions that read the same,
// which its answer is for, too. The first is the oldest, and the one that is shown.
type heldRow struct {
	refs []answer.Ref
	q    api.Question
}

// inbox is what is held in all live sessions, as one list: what can't be undone first.
type inbox struct {
	entries []heldRow
	here    bool // the keys go to it
	cursor  int
	chosen  answer.Ref // the first of the selected row; it stays selected wherever the row goes
	whole   bool       // the selected row, as it was drawn last, shows all that an answer covers
	blind   bool       // there is no room: nothing that keys could be about was drawn

	emptied time.Time // when nothing was left, with the keys here
}

// gather makes the list anew of what is known.
func (s *Screen) gather() {
	in := &s.inbox
	in.entries = nil
	kin := map[string]int{}
	for _, x := range s.live {
		st := s.of[x.ID]
		if st == nil {
			continue
		}
		st.Also = nil
		for _, q := range st.Questions {
			r, k := answer.Ref{Session: x.ID, ID: q.ID}, st.Kin(q)
			i, ok := kin[k]
			switch {
			case k == "" || !ok:
				kin[k] = len(in.entries)
				in.entries = append(in.entries, heldRow{refs: []answer.Ref{r}, q: q})
			case q.HeldAt.Before(in.entries[i].q.HeldAt):
				in.entries[i].refs, in.entries[i].q = slices.Insert(in.entries[i].refs, 0, r), q
			default:
				in.entries[i].refs = append(in.entries[i].refs, r)
			}
		}
	}
	slices.SortStableFunc(in.entries, func(a, b heldRow) int {
		return cmp.Or(cmp.Compare(state.Rank(a.q), state.Rank(b.q)), a.q.HeldAt.Compare(b.q.HeldAt))
	})
	for _, e := range in.entries {
		if len(e.refs) > 1 {
			st := s.of[e.refs[0].Session]
			if st.Also == nil {
				st.Also = map[int64]string{}
			}
			st.Also[e.q.ID] = s.also(e)
		}
	}
	s.pick(slices.IndexFunc(in.entries, func(e heldRow) bool { return slices.Contains(e.refs, in.chosen) }))
	switch now := s.cfg.Now(); {
	case !in.here || len(in.entries) > 0:
		in.emptied = time.Time{}
	case in.emptied.IsZero():
		in.emptied = now
	case now.Sub(in.emptied) >= linger:
		in.here, s.desk.Decided = false, now // the next key may have been for it
	}
}

// also says which questions of other sessions an answer is for.
func (s *Screen) also(e heldRow) string {
	var names []string
	for _, r := range e.refs[1:] {
		q, _ := s.of[r.Session].Question(r.ID)
		names = append(names, fmt.Sprintf("%s #%d", name(s.of[r.Session].Session), q.Action))
	}
	return "and " + paint.Count(len(names), "equal one", "equal ones") + " elsewhere, answered with it: " + strings.Join(names, ", ")
}

// pick selects a row; without one the row stays that is there.
func (s *Screen) pick(i int) {
	in := &s.inbox
	if i < 0 {
		i = in.cursor
	}
	in.cursor, in.chosen = max(0, min(i, len(in.entries)-1)), answer.Ref{}
	if e, ok := s.asked(); ok {
		in.chosen = e.refs[0]
	}
}

// asked is the selected row.
func (s *Screen) asked() (heldRow, bool) {
	if s.inbox.cursor < len(s.inbox.entries) {
		return s.inbox.entries[s.inbox.cursor], true
	}
	return heldRow{}, false
}

// inboxed says whether a question is in the list.
func (s *Screen) inboxed(session string, id int64) bool {
	return slices.ContainsFunc(s.inbox.entries, func(e heldRow) bool { return slices.Contains(e.refs, answer.Ref{Session: session, ID: id}) })
}

// target is what keys would decide now, as it is shown.
func (s *Screen) target() state.Target {
	if s.inbox.blind {
		return state.Target{}
	}
	if s.dialog != nil {
		t := s.dialog.Target()
		t.Place += " " + s.about
		return t
	}
	e, ok := s.asked()
	if !ok || !s.inbox.here {
		return state.Target{}
	}
	r := e.refs[0]
	return state.Target{Question: r.ID, Hash: s.of[r.Session].Print(r.ID), Place: "inbox " + r.Session}
}

// settle brings an opened question and the quiet time in line with what will be drawn next.
func (s *Screen) settle() tea.Cmd {
	var cmd tea.Cmd
	if s.dialog != nil && s.about != "" {
		cmd = s.sync()
	}
	return tea.Batch(cmd, s.desk.Watch(s.target()))
}

// Restart begins the quiet time anew: what is on the screen is new to the eye.
func (s *Screen) Restart() { s.desk.Guard.Restart(s.cfg.Now()) }

// sync tells the opened question what became of it, and reads what it lacks.
func (s *Screen) sync() tea.Cmd {
	st := s.of[s.about]
	if st == nil {
		st = &state.State{Session: api.Session{State: api.SessionEnded}}
	}
	for _, d := range []dialog.Dialog{s.below, s.dialog} {
		if d != nil {
			d.Sync(s.desk.News(s.about, st))
		}
	}
	return s.desk.Differences(s.about, s.dialog)
}

// open opens a question beside its evidence.
func (s *Screen) open(e heldRow) {
	r := e.refs[0]
	d := dialog.NewDecision(e.q, s.of[r.Session].Print(r.ID))
	if s.cfg.Watching {
		d.Off = dialog.WatchingOnly
	}
	s.dialog, s.below, s.about = d, nil, r.Session
}

// shut closes what is open, or goes back to what is below it.
func (s *Screen) shut() {
	s.dialog, s.below = s.below, nil
	if s.dialog == nil {
		s.about = ""
	}
}
