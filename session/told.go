package session

import (
	"slices"
	"strings"
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
		Before: a.Before, Spans: slices.Clone(a.spans), Commands: commands, Edited: a.edited, Since: since, Began: a.StartedAt,
		Base: s.info.BaseOf(s.info.Resumed), Ruled: a.ruled(s.info.Mode),
	}
}

// Bounds of looking for what agents write into their transcripts late: when a command
// is held, or a quick one is over, that may not be there yet.
const (
	listenWait = 100 * time.Millisecond // before the second look; it doubles with each
	maxLooks   = 10                     // for the words of one action
	maxUnheard = 16                     // actions at once; what the older ones were for stays unknown
)

// unheard is an action of which it isn't known yet what the agent said of it.
type unheard struct {
	a     *action
	of    deeds.Action
	looks int
}

// listen looks for what the agent announced of an action until that is found: one that is
// held with these commands, or has ended with them.
func (s *Session) listen(a *action, commands []api.Command) {
	if a.Said != nil && (a.Said.Mismatch != "" || said.InTranscripts(a.Said.Source)) {
		return
	}
	u := &unheard{a: a, of: s.asTold(a, commands)}
	s.unheard = slices.DeleteFunc(s.unheard, func(o *unheard) bool { return o.a == a })
	s.unheard = append(s.unheard[max(len(s.unheard)+1-maxUnheard, 0):], u)
	if a.State == api.ActionHeld {
		s.look(u)
	} else { // that was looked for a moment ago
		s.lookLater(u)
	}
}

func (s *Session) lookLater(u *unheard) {
	time.AfterFunc(listenWait<<u.looks, func() {
		s.loop.Submit(func() {
			if s.loop.Now() == loop.Running && slices.Contains(s.unheard, u) {
				s.look(u)
			}
		})
	})
}

// look looks once for what the agent announced of an action.
func (s *Session) look(u *unheard) {
	u.looks++
	held := u.a.State == api.ActionHeld
	s.loop.Aside(func() func() {
		found := s.teller.Announced(u.of)
		if found == nil && held {
			var lines []string
			for _, c := range u.of.Commands {
				lines = append(lines, c.Line, strings.Join(c.Argv[max(len(c.Argv)-1, 0):], ""))
			}
			found = said.Of([]said.Announcement{{Text: said.OnScreen(s.term.Text(), lines), Source: said.FromScreen}})
		}
		return func() {
			if !slices.Contains(s.unheard, u) { // it is looked for anew
				return
			}
			heard := found != nil && said.InTranscripts(found.Source)
			if heard || found != nil && u.a.Said == nil {
				s.told(u.a, func(t files.Told) {
					u.a.Said = s.teller.Beside(found, t.Changed)
					if !u.a.untold {
						s.record(nil, s.actionEvent(u.a, "counted"))
					}
				})
			}
			if heard || u.looks == maxLooks {
				s.unheard = slices.DeleteFunc(s.unheard, func(o *unheard) bool { return o == u })
			} else if s.loop.Now() == loop.Running {
				s.lookLater(u)
			}
		}
	})
}
