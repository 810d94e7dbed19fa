// Package state is what the interface knows of one session: plain data, reduced
// from the session's event stream. Applying an event is total: whatever arrives,
// in whatever order, leaves a state that can be drawn.
//
// A State belongs to the goroutine that updates the interface.
package state

import (
	"cmp"
	"fmt"
	"slices"

	"stepbox/session/api"
)

// Bounds on what is kept. The record has all of it; these are for drawing.
const (
	maxAttempts = 20000
	maxActions  = 50000
	maxWork     = 5000 // applies, and roll backs
)

// State is one session as it is known now.
type State struct {
	Session   api.Session
	Actions   []api.Action   // by number
	Questions []api.Question // open ones: what can't be undone first, then the oldest
	Attempts  []api.Attempt  // by ID
	Applies   []api.Apply    // by ID
	Rollbacks []api.Rollback // by ID
	Usage     *api.Usage     // nil until the first arrives
	Received  int64          // bytes from the network, by all attempts, and Sent to it
	Sent      int64
	Changes   int64  // newest version of the session's changes that was told
	Seq       uint64 // last recorded event that was applied
	Version   uint64 // grows with every change, for caches
	Tried     uint64 // grows with every change of the attempts

	// Also says in words, of open questions, which ones of other sessions an answer is for,
	// too. It is part of what is shown of them.
	Also map[int64]string

	prints map[int64]string // fingerprints of open questions
	alike  map[int64]string // the same of what equal ones have in common
	closed map[int64]string // of questions known to be closed, why, so that a late event can't reopen one
}

// Apply reduces one event.
func (s *State) Apply(e api.Event) {
	if e.Seq != 0 {
		if e.Seq <= s.Seq {
			return // seen before the stream was joined again
		}
		s.Seq = e.Seq
	}
	s.Version++
	switch {
	case e.Session != nil:
		name := cmp.Or(s.Session.Name, e.Session.Name) // a person may have named it otherwise since
		s.Session = *e.Session
		s.Session.Name = name
	case e.Action != nil:
		s.Actions = put(s.Actions, *e.Action, maxActions, func(x api.Action) int64 { return int64(x.N) })
	case e.Question != nil:
		s.question(*e.Question)
	case e.Attempt != nil:
		s.count(*e.Attempt)
		s.Attempts = put(s.Attempts, *e.Attempt, maxAttempts, func(x api.Attempt) int64 { return x.ID })
		s.Tried++
	case e.Apply != nil:
		s.Applies = put(s.Applies, *e.Apply, maxWork, func(x api.Apply) int64 { return x.ID })
	case e.Rollback != nil:
		s.Rollbacks = put(s.Rollbacks, *e.Rollback, maxWork, func(x api.Rollback) int64 { return x.ID })
	case e.Usage != nil:
		u := *e.Usage
		s.Usage = &u
	case e.Changes != nil:
		s.Changes = max(s.Changes, *e.Changes)
	}
	if !s.Session.Live() && s.Session.State != "" {
		s.Questions, s.Usage = nil, nil
	}
}

// Earlier puts actions before those that it has.
func (s *State) Earlier(all []api.Action) {
	if len(s.Actions) > 0 {
		end, _ := slices.BinarySearchFunc(all, s.Actions[0].N, func(x api.Action, n int) int { return cmp.Compare(x.N, n) })
		all = all[:end]
	}
	all = all[max(0, len(all)+len(s.Actions)-maxActions):]
	s.Actions = append(slices.Clone(all), s.Actions...)
	s.Version++
}

// Become makes it what another State is: the same session at another moment.
// The versions go on growing.
func (s *State) Become(o State) {
	o.Version, o.Tried = max(s.Version, o.Version)+1, max(s.Tried, o.Tried)+1
	*s = o
}

// count adds what an attempt moved since it was told of last.
func (s *State) count(a api.Attempt) {
	if i, found := slices.BinarySearchFunc(s.Attempts, a.ID, func(x api.Attempt, id int64) int { return cmp.Compare(x.ID, id) }); found {
		a.Received, a.Sent = a.Received-s.Attempts[i].Received, a.Sent-s.Attempts[i].Sent
	}
	s.Received, s.Sent = s.Received+a.Received, s.Sent+a.Sent
}

// put puts v where its number says, in the place of the one that has the number,
// and keeps at most most of them: those with the highest numbers.
func put[T any](list []T, v T, most int, number func(T) int64) []T {
	i, found := slices.BinarySearchFunc(list, number(v), func(x T, n int64) int { return cmp.Compare(number(x), n) })
	if found {
		list[i] = v
		return list
	}
	list = slices.Insert(list, i, v)
	return list[max(0, len(list)-most):]
}

func (s *State) question(q api.Question) {
	if s.closed == nil {
		s.closed, s.prints, s.alike = map[int64]string{}, map[int64]string{}, map[int64]string{}
	}
	switch {
	case !q.Open():
		s.closed[q.ID] = "what asked went away"
		if q.Closed != "withdrawn" {
			s.closed[q.ID] = fmt.Sprintf("it was answered elsewhere: %s by %s", q.Closed, cmp.Or(q.ClosedBy, "somebody"))
		}
		delete(s.prints, q.ID)
		delete(s.alike, q.ID)
		s.Questions = slices.DeleteFunc(s.Questions, func(x api.Question) bool { return x.ID == q.ID })
	case s.closed[q.ID] == "":
		s.prints[q.ID], s.alike[q.ID] = print(q), alike(q)
		s.Questions = queue(s.Questions, q)
	}
}

// Answered takes a question that this interface itself closed, ahead of its event.
func (s *State) Answered(q api.Question) {
	if q.Open() {
		return
	}
	s.Version++
	s.question(q)
}

// Question finds an open question.
func (s *State) Question(id int64) (api.Question, bool) {
	return s.first(func(q api.Question) bool { return q.ID == id })
}

// Fresh finds an open question that reads as it did.
func (s *State) Fresh(id int64, print string) (api.Question, bool) {
	q, ok := s.Question(id)
	return q, ok && s.Print(id) == print
}

func (s *State) first(match func(api.Question) bool) (api.Question, bool) {
	if i := slices.IndexFunc(s.Questions, match); i >= 0 {
		return s.Questions[i], true
	}
	return api.Question{}, false
}

// Place is an open question's place in the queue, from 1, and how long that is.
func (s *State) Place(id int64) (place, of int) {
	return 1 + slices.IndexFunc(s.Questions, func(q api.Question) bool { return q.ID == id }), len(s.Questions)
}

// Closed says why a question that is known to be closed is, else "".
func (s *State) Closed(id int64) string { return s.closed[id] }

// QuestionOf finds the first open question about an action itself. What it wants to
// reach is asked about apart.
func (s *State) QuestionOf(action int) (api.Question, bool) {
	return s.first(func(q api.Question) bool { return q.Action == action && !q.Apart() })
}

// Keep forgets all actions but so many of the newest, and those that are asked about: for
// who shows no more.
func (s *State) Keep(newest int) {
	drop := len(s.Actions) - newest
	if drop < newest { // not with each one
		return
	}
	s.Actions = slices.DeleteFunc(s.Actions, func(a api.Action) bool {
		drop--
		return drop >= 0 && !slices.ContainsFunc(s.Questions, func(q api.Question) bool { return q.Action == a.N })
	})
}

// Action finds an action by its number.
func (s *State) Action(n int) (api.Action, bool) {
	i, ok := slices.BinarySearchFunc(s.Actions, n, func(x api.Action, n int) int { return cmp.Compare(x.N, n) })
	if !ok {
		return api.Action{}, false
	}
	return s.Actions[i], true
}

// Redoable is the newest roll back that can be brought again: of an action, if
// one has it, else of any.
func (s *State) Redoable(action int) (found api.Rollback, ok bool) {
	for i := len(s.Rollbacks) - 1; i >= 0; i-- {
		r := s.Rollbacks[i]
		if r.Open || r.Redone || r.PutsIn() || r.Home != nil || r.Failure != "" {
			continue
		}
		if slices.Contains(r.Actions, action) {
			return r, true
		}
		if !ok {
			found, ok = r, true
		}
	}
	return found, ok
}

// Unreviewed counts actions whose changes wait for a word.
func (s *State) Unreviewed() int {
	n := 0
	for i := range s.Actions {
		if s.Actions[i].Review == api.ReviewOpen {
			n++
		}
	}
	return n
}
