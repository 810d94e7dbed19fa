package session

import (
	"time"

	"stepbox/runner"
	"stepbox/session/loop"
)

// lookEvery is how often it is looked who runs while that may matter: what ran
// before a look at which no file had moved didn't write what moves later.
const lookEvery = time.Second

// keepLooking looks again and again while commands, or what they left running,
// live.
func (s *Session) keepLooking() {
	if s.lookAgain != nil || s.loop.Now() != loop.Running || len(s.actions.alive()) == 0 {
		return
	}
	s.lookAgain = time.AfterFunc(lookEvery, func() {
		s.loop.Submit(func() {
			s.lookAgain = nil
			s.advance()
		})
	})
}

// advance moves the beginning of the changes that aren't accounted for up to
// now, if there are none.
func (s *Session) advance() {
	if s.loop.Now() != loop.Running || len(s.actions.alive()) == 0 {
		return
	}
	var since []runner.Activity
	s.loop.Alone(func() error {
		since = s.restorer.Unmoved(s.line.Last)
		return nil
	}, func(_ error, next func()) {
		if since != nil {
			s.accountant.Begin(since, s.roster.ownerOf)
			if events := s.survivors(); len(events) > 0 {
				s.record(nil, events...)
			}
		}
		s.keepLooking()
		next()
	})
}
