package session

import (
	"stepbox/runner/gate"
	"stepbox/session/api"
)

// mayReach decides whether a process of the sandbox may get hold of another.
// It may within one action: there is nothing in it that wasn't approved with
// it. What belongs to no action, the agent too, gets hold of nothing, since it
// could change a program after that was approved; and no action of another,
// nor of the agent.
func (s *Session) mayReach(r gate.Reach) bool {
	a := s.actionOf(r.Caller)
	if a == nil {
		s.reachRefused(r)
		return false
	}
	if r.Kind == gate.ReachShare {
		return true
	}
	if s.actionOf(r.Target) != a {
		s.reachRefused(r)
		return false
	}
	// A debugger can have another program started than the one that was
	// judged, so it takes an approval that covers any.
	return r.Kind != gate.ReachStart || a.person || a.children || s.info.Mode == api.ModeWatch
}

// actionOf is the action that a process belongs to by descent, which the gate
// gives with it, nearest first; nil if it is none's.
func (s *Session) actionOf(lineage []gate.Process) *action {
	for _, p := range lineage {
		if known := s.procs[proc{p.PID, p.Start}]; known != nil {
			if known.action == nil || known.action.agent != nil {
				return nil
			}
			return known.action
		}
	}
	return nil
}

// reachRefused tells a person of the first attempt; there may be many.
func (s *Session) reachRefused(r gate.Reach) {
	if s.reachSaid || s.life.now >= phaseStopping || r.Kind == gate.ReachShare {
		return
	}
	s.reachSaid = true
	s.note(true, "%s tried to get hold of another program (ptrace) and was refused", listedArgs([]string{r.Caller[0].Name}))
}
