package session

import (
	"slices"
	"time"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
)

// whyUnrecorded is what a program is told that would run unrecorded.
const whyUnrecorded = "the session ends: what it does can't be recorded"

// admit lets a root start: it is recorded, but belongs to no action, unless it
// is an agent that another started.
func (s *Session) admit(e *gate.Exec, p *process, profile *policy.Profile, rule string) {
	c := s.command(e, profile)
	p.proc, p.pgid, p.profile = proc{e.PID, e.Start}, e.PGID, profile
	if p.agent {
		p.next = s.chainOf(e)
		if p.is == nil {
			p.is = identityOf(e)
		}
	}
	p.exec = s.execRecord(p.action, e, c, api.Allow, rule)
	exec := p.exec
	s.await(e, p, false)
	s.record(func(err error) {
		if err != nil {
			delete(s.starting, e)
			e.Deny(whyUnrecorded)
			return
		}
		if p.starter { // a denial may have to end it, which its own tracer couldn't
			e.Allow(gate.NoExit)
			return
		}
		e.Allow()
	}, api.Event{Kind: "exec.allowed", Exec: &exec})
}

// housekeep lets an agent's own upkeep pass, recorded and folded away.
func (s *Session) housekeep(e *gate.Exec, facts policy.Command, profile *policy.Profile) {
	facts.Env = slices.DeleteFunc(slices.Clone(e.Env), func(v string) bool { return slices.Contains(s.env, v) })
	c := s.command(e, profile)
	a := &action{profile: profile}
	a.N, a.Kind, a.Housekeeping = len(s.actions)+1, api.KindCommand, true
	a.Title, a.Verdict, a.By, a.Rule = c.Line, api.Allow, "rule", "housekeeping of "+profile.Name
	a.StartedAt = time.Now().UTC()
	a.ReleasedAt, a.children = a.StartedAt, profile.HousekeepingChildren(facts)
	if a.children {
		a.starts = profile.HousekeepingStarts(facts)
		a.script = e.Argv[len(e.Argv)-1]
	}
	s.actions = append(s.actions, a)
	if err := a.to(api.ActionRunning); err != nil {
		s.fail(err)
		return
	}
	k := s.kinOf(a)
	k.children = a.children
	a.leaders++
	s.start(k, e, c, a.Rule, true, []api.Event{s.actionEvent(a, "released")})
}

// release lets a held action run, once that is in the record.
func (s *Session) release(a *action, rule string) {
	s.forming = slices.DeleteFunc(s.forming, func(f *action) bool { return f == a })
	if err := a.to(api.ActionRunning); err != nil {
		s.fail(err)
		return
	}
	a.Verdict, a.Rule, a.ReleasedAt = api.Allow, rule, time.Now().UTC()
	if a.agent != nil {
		a.profile = a.agent
	}
	s.holdNext = false
	more := []api.Event{s.actionEvent(a, "released"), s.changed("counted")}
	k := s.kinOf(a)
	k.person, k.children = a.person, a.children
	members := a.members
	a.members, a.leaders = nil, len(members)
	for i, e := range members {
		a.seats = append(a.seats, seatOf(e, a.commands[i].Line))
		a.shown = append(a.shown, shownOf(e))
	}
	for i, e := range members {
		s.start(k, e, a.commands[i], rule, true, more)
		more = nil
	}
}

// start records that a program of an action runs and then lets it. The action
// waits for its end when it is counted.
func (s *Session) start(k *kin, e *gate.Exec, c api.Command, rule string, counted bool, also []api.Event) {
	a := k.action
	if k.person && a.fedFromOutside(e) {
		children := k.children
		k = s.kinOf(a)
		k.children = children
	}
	p := &process{
		proc: proc{e.PID, e.Start}, pgid: e.PGID, kin: k, action: a, profile: a.profile,
		leader: counted, agent: counted && a.agent != nil,
	}
	if p.agent {
		p.next, p.is = s.chainOf(e), identityOf(e)
	}
	p.exec = s.execRecord(a, e, c, api.Allow, rule)
	exec := p.exec
	s.await(e, p, counted)
	s.record(func(err error) {
		switch {
		case err != nil:
			delete(s.starting, e)
			e.Deny(whyUnrecorded)
		case counted && !a.Housekeeping && a.agent == nil:
			e.Allow(gate.HoldExit) // its end waits for the checkpoint after it
		default:
			e.Allow()
		}
	}, append(also, api.Event{Kind: "exec.allowed", Exec: &exec})...)
}

// refuse records that a program was denied and then tells it.
func (s *Session) refuse(a *action, e *gate.Exec, c api.Command, rule, reason string) {
	exec := s.execRecord(a, e, c, api.Deny, rule)
	p := s.procs[proc{e.PID, e.Start}]
	s.record(func(error) { turnDown(e, p, reason) }, api.Event{Kind: "exec.denied", Exec: &exec})
}

// deny ends a held action before it ran.
func (s *Session) deny(a *action, rule, reason string) {
	s.forming = slices.DeleteFunc(s.forming, func(f *action) bool { return f == a })
	if err := a.to(api.ActionDenied); err != nil {
		s.fail(err)
		return
	}
	a.Verdict, a.Rule, a.Reason, a.EndedAt = api.Deny, rule, api.Escape(reason), time.Now().UTC()
	events := []api.Event{s.actionEvent(a, "denied"), s.changed("counted")}
	members := a.members
	a.members = nil
	callers := make([]*process, len(members))
	for i, e := range members {
		callers[i] = s.procs[proc{e.PID, e.Start}]
		exec := s.execRecord(a, e, a.commands[i], api.Deny, rule)
		events = append(events, api.Event{Kind: "exec.denied", Exec: &exec})
	}
	s.record(func(error) {
		for i, e := range members {
			turnDown(e, callers[i], reason)
		}
	}, events...)
}

// execRecord is the record of one program start.
func (s *Session) execRecord(a *action, e *gate.Exec, c api.Command, v api.Verdict, rule string) api.Exec {
	s.execs++
	x := api.Exec{
		ID: s.execs, Pid: e.PID, Parent: e.Parent, Argv: bounded(c.Argv), Program: c.Program, Cwd: c.Cwd,
		Verdict: v, Rule: rule, At: time.Now().UTC(),
	}
	if a != nil {
		x.Action = a.N
	}
	return x
}
