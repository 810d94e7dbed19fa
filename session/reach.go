package session

import (
	"stepbox/runner/gate"
	"stepbox/session/api"
)

// mayReach decides whether a process of the sandbox may get hold of another.
// It may among what one verdict covers: nothing in there wasn't judged with it.
// What belongs to no action, the agent too, gets hold of nothing, since it
// could change a program after that was approved; and no action of another,
// nor of the agent.
func (s *Session) mayReach(r gate.Reach) bool {
	k := s.covering(r.Caller)
	if k != nil && r.Kind == gate.ReachShare {
		return true
	}
	if k == nil || s.covering(r.Target) != k {
		s.reachRefused(r)
		return false
	}
	// A debugger can have another program started than the one that was
	// judged, so it takes an approval that covers any.
	return r.Kind != gate.ReachStart || k.person || k.children || s.info.Mode == api.ModeWatch
}

// covering is the kin whose verdict covers a process; nil if none's does.
func (s *Session) covering(p gate.Party) *kin {
	if _, k, _ := s.descends(p); k != nil && k.action.agent == nil {
		return k
	}
	return nil
}

// reachRefused tells a person of the first attempt; there may be many.
func (s *Session) reachRefused(r gate.Reach) {
	if s.reachSaid || s.life.now >= phaseStopping || r.Kind == gate.ReachShare {
		return
	}
	s.reachSaid = true
	s.note(true, "%s tried to get hold of another program (ptrace) and was refused", listedArgs([]string{r.Caller.Name}))
}
