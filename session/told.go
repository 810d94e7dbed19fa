package session

import (
	"slices"
	"time"

	"stepbox/session/api"
	"stepbox/session/deeds"
	"stepbox/session/files"
	"stepbox/session/said"
)

// told finds out what an action changed, and then goes on in the loop.
func (s *Session) told(a *action, then func(files.Told)) {
	of := deeds.Action{
		Before: a.Before, Spans: slices.Clone(a.spans), Commands: a.commands, Began: a.StartedAt,
		Base: s.info.BaseOf(s.info.Resumed), Ruled: a.ruled(s.info.Mode),
	}
	s.loop.Aside(func() func() {
		t := s.teller.Tell(of)
		return func() {
			if of.Base == nil && s.info.BaseOf(s.info.Resumed) != nil { // what the project was came meanwhile
				s.told(a, then)
				return
			}
			if t.Made != nil { // a state that holds its changes alone
				t.Made = s.newCheckpoint(t.Made.Root, t.Made.Manifest, 0)
				t.After = t.Made.ID
				s.record(nil, s.line.Event(t.Made, a.N))
			}
			then(t)
		}
	})
}

// hear tells what the agent announced of an action that a person is asked about.
func (s *Session) hear(a *action, commands []api.Command) {
	now := time.Now()
	s.loop.Aside(func() func() {
		found := s.teller.Announced(commands, now)
		return func() {
			if found != nil && a.Said == nil {
				a.Said = found
				s.record(nil, s.actionEvent(a, "counted"))
			}
		}
	})
}

// listen looks once more for what the agent announced of the action that ended
// before a, or of the last one when a is nil: agents write their transcripts late,
// and a quick command is over by then.
func (s *Session) listen(a *action) {
	again := s.unheard
	s.unheard = nil
	if a != nil && len(a.commands) > 0 && (a.Said == nil || a.Said.Mismatch == "" && !said.InTranscripts(a.Said.Source)) {
		commands, began := a.commands, a.StartedAt // it has none any more by then
		s.unheard = func() {
			s.loop.Aside(func() func() {
				found := s.teller.Announced(commands, began)
				if found == nil || !said.InTranscripts(found.Source) {
					return nil
				}
				return func() {
					s.told(a, func(t files.Told) {
						a.Said = s.teller.Beside(found, t.Changed)
						s.record(nil, s.actionEvent(a, "counted"))
					})
				}
			})
		}
	}
	if again != nil {
		again()
	}
}
