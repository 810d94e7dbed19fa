// Package state is what the interface knows of one session: plain data, reduced
// from the session's event stream. Applying an event is total: whatever arrives,
// in whatever order, leaves a state that can be drawn.
//
// A State belongs to the goroutine that updates the interface.
package state

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"sort"
	"strconv"

	"stepbox/session/api"
)

// Bounds on what is kept. The record has all of it; these are for drawing.
const (
	maxNotes    = 200
	maxAttempts = 20000
	maxActions  = 50000
)

// State is one session as it is known now.
type State struct {
	Session   api.Session
	Actions   []api.Action   // by number
	Questions []api.Question // open ones, oldest first
	Attempts  []api.Attempt  // by ID
	Notes     []api.Note
	Usage     *api.Usage // nil until the first arrives
	Changes   int64      // newest version of the session's changes that was told
	Seq       uint64     // last recorded event that was applied
	Version   uint64     // grows with every change, for caches
	Tried     uint64     // grows with every change of the attempts

	prints map[int64]string // fingerprints of open questions
	closed map[int64]bool   // questions known to be answered, so that a late event can't reopen one
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
		s.Session = *e.Session
	case e.Action != nil:
		s.action(*e.Action)
	case e.Question != nil:
		s.question(*e.Question)
	case e.Attempt != nil:
		s.attempt(*e.Attempt)
		s.Tried++
	case e.Note != nil:
		s.note(*e.Note)
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

func (s *State) action(a api.Action) {
	i := sort.Search(len(s.Actions), func(i int) bool { return s.Actions[i].N >= a.N })
	if i < len(s.Actions) && s.Actions[i].N == a.N {
		s.Actions[i] = a
		return
	}
	if len(s.Actions) >= maxActions {
		if i == 0 {
			return
		}
		copy(s.Actions, s.Actions[1:i])
		s.Actions[i-1] = a
		return
	}
	s.Actions = append(s.Actions, api.Action{})
	copy(s.Actions[i+1:], s.Actions[i:])
	s.Actions[i] = a
}

func (s *State) question(q api.Question) {
	at := -1
	for i := range s.Questions {
		if s.Questions[i].ID == q.ID {
			at = i
		}
	}
	if !q.Open() {
		if s.closed == nil {
			s.closed = map[int64]bool{}
		}
		s.closed[q.ID] = true
		delete(s.prints, q.ID)
		if at >= 0 {
			s.Questions = append(s.Questions[:at:at], s.Questions[at+1:]...)
		}
		return
	}
	if s.closed[q.ID] {
		return
	}
	if s.prints == nil {
		s.prints = map[int64]string{}
	}
	s.prints[q.ID] = print(q)
	if at >= 0 {
		s.Questions[at] = q
		return
	}
	s.Questions = append(s.Questions, q)
	sort.SliceStable(s.Questions, func(i, j int) bool { return s.Questions[i].ID < s.Questions[j].ID })
}

func (s *State) attempt(a api.Attempt) {
	i := sort.Search(len(s.Attempts), func(i int) bool { return s.Attempts[i].ID >= a.ID })
	if i < len(s.Attempts) && s.Attempts[i].ID == a.ID {
		s.Attempts[i] = a
		return
	}
	s.Attempts = append(s.Attempts, api.Attempt{})
	copy(s.Attempts[i+1:], s.Attempts[i:])
	s.Attempts[i] = a
	if len(s.Attempts) > maxAttempts {
		s.Attempts = append([]api.Attempt(nil), s.Attempts[len(s.Attempts)-maxAttempts*3/4:]...)
	}
}

func (s *State) note(n api.Note) {
	for i := range s.Notes {
		if s.Notes[i].ID == n.ID && n.ID != 0 {
			s.Notes[i] = n
			return
		}
	}
	s.Notes = append(s.Notes, n)
	if len(s.Notes) > maxNotes {
		s.Notes = append([]api.Note(nil), s.Notes[len(s.Notes)-maxNotes:]...)
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
	for _, q := range s.Questions {
		if q.ID == id {
			return q, true
		}
	}
	return api.Question{}, false
}

// Place is an open question's place in the queue, from 1, and how long that is.
func (s *State) Place(id int64) (place, of int) {
	return 1 + slices.IndexFunc(s.Questions, func(q api.Question) bool { return q.ID == id }), len(s.Questions)
}

// Print is a fingerprint of all that is shown of an open question: two questions
// with the same one read the same. The question's own hash is part of it.
func (s *State) Print(id int64) string { return s.prints[id] }

func print(q api.Question) string {
	b, err := json.Marshal(q)
	if err != nil {
		return q.Hash // its fields are plain data, which can always be encoded
	}
	h := fnv.New64a()
	h.Write(b) // never fails
	return q.Hash + "/" + strconv.FormatUint(h.Sum64(), 16)
}

// WasAnswered says whether a question is known to be closed.
func (s *State) WasAnswered(id int64) bool { return s.closed[id] }

// QuestionOf finds the first open question of an action.
func (s *State) QuestionOf(action int) (api.Question, bool) {
	for _, q := range s.Questions {
		if q.Action == action {
			return q, true
		}
	}
	return api.Question{}, false
}

// Action finds an action by its number.
func (s *State) Action(n int) (api.Action, bool) {
	i := sort.Search(len(s.Actions), func(i int) bool { return s.Actions[i].N >= n })
	if i < len(s.Actions) && s.Actions[i].N == n {
		return s.Actions[i], true
	}
	return api.Action{}, false
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
