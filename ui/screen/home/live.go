package home

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/answer"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// How many live sessions are followed, and how many actions of each are kept.
const (
	mostFollowed = 64
	keptActions  = 30
)

// Watch follows the live sessions from now on, until Unwatch.
func (s *Screen) Watch() tea.Cmd {
	if s.board != nil {
		return nil
	}
	s.board, s.of = link.NewBoard(s.ctx, s.cfg.Client), map[string]*state.State{}
	s.seek = true
	return s.await(s.board)
}

// Unwatch follows them no more, and returns what is to be closed off this goroutine.
func (s *Screen) Unwatch() (stop func()) {
	b := s.board
	s.board, s.of, s.inbox.entries, s.inbox.here = nil, nil, nil, false
	if b == nil {
		return func() {}
	}
	return b.Close
}

func (s *Screen) await(b *link.Board) tea.Cmd {
	return func() tea.Msg {
		if !b.Wait() {
			return nil
		}
		return then(func() tea.Cmd {
			if b != s.board {
				return nil // it was left
			}
			return tea.Batch(s.news(), s.await(b))
		})
	}
}

// Tick is called every second.
func (s *Screen) Tick() tea.Cmd {
	if s.board == nil {
		return nil
	}
	return tea.Batch(s.news(), s.peek())
}

// follow follows those that are listed.
func (s *Screen) follow() {
	if s.board == nil {
		return
	}
	ids := map[string]bool{}
	var list []string
	for _, f := range s.live[:min(len(s.live), mostFollowed)] {
		x := f.Session
		ids[x.ID] = true
		list = append(list, x.ID)
		if s.of[x.ID] == nil {
			s.of[x.ID] = &state.State{Session: x}
		}
	}
	s.board.Follow(list)
	for id := range s.of {
		if !ids[id] {
			delete(s.of, id)
		}
	}
}

// news takes what came of the live sessions.
func (s *Screen) news() tea.Cmd {
	var cmd tea.Cmd
	s.board.Take(func(id string, e api.Event) {
		st := s.of[id]
		if st == nil {
			return
		}
		lived := st.Session.Live()
		st.Apply(e)
		st.Keep(keptActions)
		if q := e.Question; q != nil && !q.Open() && s.inbox.has(id, q.ID) && !s.inbox.desk.Pending(answer.Ref{Session: id, ID: q.ID}) {
			s.Notice = fmt.Sprintf("%s #%d: %s", paint.Clean(name(st.Session)), q.Action, paint.Clean(st.Closed(q.ID)))
		}
		if lived && !st.Session.Live() {
			s.Ended(st.Session)
			cmd = s.Refresh()
		}
	})
	s.inbox.gather()
	return tea.Batch(cmd, s.inbox.settle())
}

// Ended says that a session has ended, and what can be done next; it is selected, unless
// the person is at something else.
func (s *Screen) Ended(x api.Session) {
	_, _, words := State(x)
	s.Notice = paint.Clean(name(x)) + " " + words
	if x.Unapplied > 0 {
		s.Notice += fmt.Sprintf("; %d to apply", x.Unapplied)
	}
	if s.chosen != x.ID {
		return
	}
	for _, h := range afterEnd(x) {
		s.Notice += " · " + h.Key + " " + h.Words
	}
}

// afterEnd are the next steps after a session's end.
func afterEnd(x api.Session) (out []paint.Hint) {
	for _, k := range []struct {
		i     intent.Intent
		words string
		is    bool
	}{
		{intent.Open{}, "review", true}, {intent.Apply{}, "apply…", x.Unapplied > 0}, {intent.Replay{}, "replay", true},
		{intent.Resume{}, "resume", true}, {intent.Fork{}, "fork", true},
	} {
		if key := keys.First(k.i, keys.Home); k.is && key != "" {
			out = append(out, paint.Hint{Key: key, Words: k.words})
		}
	}
	return out
}

// now is a live session as it is known now, and what it uses.
func (s *Screen) now(x api.Session) (api.Session, api.Usage) {
	st := s.of[x.ID]
	if st == nil {
		return x, api.Usage{}
	}
	n := st.Session
	n.Name, n.Tags, n.Note, n.Pinned, n.Trashed = x.Name, x.Tags, x.Note, x.Pinned, x.Trashed // what is said of it is no event
	if st.Version > 0 {
		n.Held = len(st.Questions) // the session's own number comes later
	}
	if st.Usage == nil {
		return n, api.Usage{}
	}
	return n, *st.Usage
}
