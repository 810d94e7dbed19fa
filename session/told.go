package session

import (
	"slices"
	"time"

	"stepbox/session/api"
	"stepbox/session/deeds"
	"stepbox/session/files"
	"stepbox/session/loop"
	"stepbox/session/said"
)

// told finds out what an action changed, and then goes on in the loop.
func (s *Session) told(a *action, then func(files.Told)) {
	of := s.asTold(a, a.commands)
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

// asTold is what has to be known of an action to tell of it.
func (s *Session) asTold(a *action, commands []api.Command) deeds.Action {
	since := a.since
	if since.Before(s.info.ResumedAt) {
		since = s.info.ResumedAt
	}
	return deeds.Action{
		Before: a.Before, Spans: slices.Clone(a.spans), Commands: commands, Since: since, Began: a.StartedAt,
		Base: s.info.BaseOf(s.info.Resumed), Ruled: a.ruled(s.info.Mode),
	}
}

// hear tells what the agent announced of an action that a person is asked about.
func (s *Session) hear(a *action, commands []api.Command) {
	of := s.asTold(a, commands)
	s.loop.Aside(func() func() {
		found := s.teller.Announced(of)
		return func() {
			if found != nil && a.Said == nil {
				a.Said = found
				s.record(nil, s.actionEvent(a, "counted"))
			}
		}
	})
}

// Bounds of looking for what agents write into their transcripts late: when a quick
// command is over, that isn't there yet.
const (
	listenWait = time.Second
	maxLooks   = 10 // for the words of one action
	maxUnheard = 16 // actions at once; what the older ones were for stays unknown
)

// unheard is an action that has ended, before it was known what the agent said of it.
type unheard struct {
	a     *action
	of    deeds.Action
	looks int
}

// listen has it be looked for again what the agent announced of an ended action.
func (s *Session) listen(a *action) {
	if len(a.commands) == 0 || a.Said != nil && (a.Said.Mismatch != "" || said.InTranscripts(a.Said.Source)) {
		return
	}
	s.unheard = append(s.unheard[max(len(s.unheard)+1-maxUnheard, 0):], &unheard{a: a, of: s.asTold(a, a.commands)})
	s.listenSoon()
}

// listenSoon has listenAgain be done once, before long.
func (s *Session) listenSoon() {
	if s.listening || len(s.unheard) == 0 {
		return
	}
	s.listening = true
	time.AfterFunc(listenWait, func() {
		s.loop.Submit(func() {
			s.listening = false
			if s.loop.Now() == loop.Running {
				s.listenAgain()
			}
		})
	})
}

// listenAgain looks once more for what the agent announced of actions that have ended.
func (s *Session) listenAgain() {
	all := s.unheard
	s.unheard = nil
	s.loop.Aside(func() func() {
		found := make([]*api.Said, len(all))
		for i, u := range all {
			found[i] = s.teller.Announced(u.of)
		}
		return func() {
			var left []*unheard
			for i, u := range all {
				u.looks++
				if f := found[i]; f != nil && said.InTranscripts(f.Source) {
					s.told(u.a, func(t files.Told) {
						u.a.Said = s.teller.Beside(f, t.Changed)
						s.record(nil, s.actionEvent(u.a, "counted"))
					})
				} else if u.looks < maxLooks {
					left = append(left, u)
				}
			}
			s.unheard = append(left, s.unheard...)
			s.listenSoon()
		}
	})
}
