package home

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// How many sessions are read at once: some screens of them. Of a search fewer,
// as each is searched for the places.
const (
	reach       = 200
	reachSearch = 50
	places      = 5 // of each, that are read with it
)

// window is the part of the past sessions that was read.
type window struct {
	from  int // the row of the first
	found []api.Found
	total int // all that there are
	read  bool
	state string   // that was asked for; "": those that aren't live
	line  string   // what was typed of the search by then
	two   bool     // rows have a second line: for the place that has what was searched
	notes []string // what couldn't be searched
	left  int      // sessions that aren't searched yet
}

// row is the n-th of all past sessions, if it was read.
func (w *window) row(n int) (api.Found, bool) {
	if i := n - w.from; i >= 0 && i < len(w.found) {
		return w.found[i], true
	}
	return api.Found{}, false
}

// asking is the one request for the list that may be under way.
type asking struct {
	on    bool
	again bool // something changed since it began
}

// Reading says whether the list is being read, or something said of a session.
func (s *Screen) Reading() bool { return s.asking.on || s.labels > 0 }

// Refresh reads the list, or reads it again once what is under way has ended.
func (s *Screen) Refresh() tea.Cmd {
	if s.Reading() {
		s.asking.again = true
		return nil
	}
	q, err := s.search.query(s.cfg.Here)
	if err != "" {
		s.problem, s.entered = err, false
		return nil
	}
	s.asking = asking{on: true}
	q.Limit = reach
	if q.Text != "" {
		q.Limit, q.Hits = reachSearch, places
	}
	row := max(0, min(s.at-len(s.live), s.past.total-1))
	q.Skip = max(0, row-q.Limit/2)
	stamp := s.search.stamp
	return s.ask(s.ctx, func(ctx context.Context) then {
		live, page, err := read(ctx, s.cfg.Client.Find, q)
		return func() tea.Cmd {
			cmd := s.found(stamp, q, live, page, err)
			if s.seek {
				s.seek = false
				cmd = tea.Batch(cmd, s.findAgents())
			}
			return cmd
		}
	})
}

// read asks for the live sessions and for a part of the others; where one state is
// asked for, for those alone.
func read(ctx context.Context, find func(context.Context, api.Query) (api.FoundPage, error), q api.Query) (live, past api.FoundPage, err error) {
	if q.State == "" {
		l := q
		l.State, l.Skip, l.Limit = "live", 0, reach
		if live, err = find(ctx, l); err != nil {
			return live, past, err
		}
		q.State = "past"
	}
	past, err = find(ctx, q)
	return live, past, err
}

// found takes the list. The selection stays on its session.
func (s *Screen) found(stamp int, q api.Query, live, page api.FoundPage, err error) tea.Cmd {
	again := s.asking.again || stamp != s.search.stamp
	s.asking = asking{}
	switch {
	case err != nil:
		s.problem, s.entered = "the list can't be read: "+paint.Failed(err), false
	case stamp == s.search.stamp:
		s.problem = ""
		s.take(q, live, page)
	}
	if again {
		return s.Refresh()
	}
	if s.past.left == 0 {
		return s.look()
	}
	return tea.Batch(s.look(), s.later(func() tea.Cmd {
		if stamp != s.search.stamp {
			return nil // something else is asked for by now
		}
		return s.Refresh()
	}))
}

func (s *Screen) take(q api.Query, live, page api.FoundPage) {
	if s.Notice == tooEarly || s.Notice == entered {
		s.Notice = ""
	}
	s.live = live.Found
	s.follow()
	s.inbox.gather()
	notes := append(page.Notes, live.Notes...)
	for i, n := range notes {
		notes[i] = paint.Clean(n)
	}
	s.past = window{from: q.Skip, found: page.Found, total: max(page.Total, len(page.Found)), read: true, state: q.State, line: s.search.words(), two: q.Text != "", notes: notes, left: page.Behind}
	if !s.toChosen() {
		s.choose(s.at)
	}
}

// toChosen goes to the row of the chosen session, if it was read.
func (s *Screen) toChosen() bool {
	is := func(f api.Found) bool { return f.Session.ID == s.chosen }
	if i := slices.IndexFunc(s.live, is); i >= 0 {
		s.at = i
		return true
	}
	i := slices.IndexFunc(s.past.found, is)
	if i >= 0 {
		s.at = len(s.live) + s.past.from + i
	}
	return i >= 0
}

// look has read what came into view and what is known of the selected session.
func (s *Screen) look() tea.Cmd {
	cmd := s.peek()
	row := s.at - len(s.live)
	if row < 0 || row >= s.past.total || !s.past.read {
		return cmd
	}
	first, last := max(0, row-s.view), min(s.past.total, row+s.view+1)
	if _, ok := s.past.row(first); ok {
		if _, ok = s.past.row(last - 1); ok {
			return cmd
		}
	}
	if s.Reading() {
		return cmd
	}
	return tea.Batch(cmd, s.Refresh())
}
