package session

import (
	"slices"

	"stepbox/session/deeds"
	"stepbox/session/files"
)

// told finds out what an action changed, and then goes on in the loop.
func (s *Session) told(a *action, then func(files.Told)) {
	of := deeds.Action{
		Before: a.Before, Spans: slices.Clone(a.spans), Commands: a.commands, Base: s.info.BaseOf(s.info.Resumed), Ruled: a.ruled(s.info.Mode),
	}
	if n := len(of.Spans); n > 0 {
		a.tells = max(a.tells, of.Spans[n-1].To)
	}
	s.loop.Aside(func() func() {
		t, apart := s.teller.Tell(of), s.apart()
		return func() {
			s.nowApart(apart)
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
