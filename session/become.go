package session

import (
	"stepbox/session/judge"
)

// goOn lets an agent's script have its interpreter.
func (s *Session) goOn(x *judge.Exec, p *process) {
	q := &process{kin: p.kin, action: p.action, agent: p.agent, is: p.is}
	s.admit(x, q, "the agent's script starts its interpreter")
}

// become is an agent's own process that runs another program in its place.
// When that is approved it is the agent: what it starts is judged, and nothing
// of it is covered.
func (s *Session) become(x *judge.Exec, p *process) {
	if x.Self {
		s.admit(x, selfOf(p, x), "the agent itself: what it starts is judged")
		return
	}
	s.form(x, &action{parent: p, profile: p.profile, becomes: true, agent: p.profile})
}

// selfOf is a process that runs its agent's own program; before is the agent's
// own process that it was, if it was one.
func selfOf(before *process, x *judge.Exec) *process {
	if before != nil { // the agent's own process stays that
		return &process{kin: before.kin, action: before.action, agent: true}
	}
	starter := x.Profile.Starter(x.Argv)
	return &process{starter: starter, agent: !starter}
}

// turnDown denies a program. Who started an agent's starter waits for the
// program that it becomes, so its end must look like that program's.
func turnDown(x *judge.Exec, p *process, reason string) {
	if p != nil && p.starter {
		x.DenyAsRun(reason)
		return
	}
	x.Deny(reason)
}
