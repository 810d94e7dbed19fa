package session

import (
	"errors"
	"time"

	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/judge"
)

// whyUnrecorded is what a program is told that would run unrecorded.
const whyUnrecorded = "the session ends: what it does can't be recorded"

// admit lets a root start: it is recorded, but belongs to no action, unless it
// is an agent that another started.
func (s *Session) admit(x *judge.Exec, p *process, rule string) {
	p.profile = x.Profile
	var with gate.Allowance
	if p.starter { // a denial may have to end it, which its own tracer couldn't
		with = gate.NoExit
	}
	s.let(x, p, rule, with)
}

// housekeep lets Stepbox's own program speak for the agent, recorded and folded away.
func (s *Session) housekeep(x *judge.Exec) {
	a := &action{profile: x.Profile}
	a.Kind, a.Housekeeping = api.KindCommand, true
	a.Title, a.Verdict, a.By, a.Rule = x.Command.Title(), api.Allow, "rule", "housekeeping: Stepbox's own program, which speaks for the agent"
	a.StartedAt = time.Now().UTC()
	a.ReleasedAt = a.StartedAt
	s.actions.add(a)
	if err := a.to(api.ActionRunning); err != nil {
		s.fail(err)
		return
	}
	k := s.roster.newKin(a)
	a.leaders++
	s.start(k, x, a.Rule, true, []api.Event{s.actionEvent(a, "released")})
}

// release lets a held action run, once that is in the record.
func (s *Session) release(a *action, rule string) {
	members := s.actions.decided(a)
	if err := a.to(api.ActionRunning); err != nil {
		s.fail(err)
		return
	}
	a.Verdict, a.Rule, a.ReleasedAt = api.Allow, rule, time.Now().UTC()
	if a.agent != nil {
		a.profile = a.agent
	}
	s.holdNext = false
	more := []api.Event{s.actionEvent(a, "released")}
	s.countSoon()
	k := s.roster.newKin(a)
	k.person, k.children = a.person, a.children
	a.leaders = len(members)
	for _, x := range members {
		if a.person {
			s.judge.Approved(x)
			a.shown = append(a.shown, shownOf(x))
		}
		a.sit(x)
		a.commands = append(a.commands, x.Command)
	}
	// What a command writes into the project is its own: then the next one tells.
	if s.word != "" && a.agent == nil && len(members) > 0 && members[0].Tell(s.secrets.Text(s.word, ""), s.cfg.Workspace) {
		s.word = ""
	}
	for _, x := range members {
		s.start(k, x, rule, true, more)
		more = nil
	}
}

// start lets a program of an action run. The action waits for its end when it is
// counted.
func (s *Session) start(k *kin, x *judge.Exec, rule string, counted bool, also []api.Event) {
	a := k.action
	k = s.roster.kinFor(k, x)
	var with gate.Allowance
	if counted && !a.Housekeeping && a.agent == nil {
		with = gate.HoldExit // its end waits for the checkpoint after it
	}
	s.let(x, &process{kin: k, action: a, profile: a.profile, leader: counted, approved: a.approved(x), agent: counted && a.agent != nil}, rule, with, also...)
}

// let records that a program runs, and lets it: it is made ready while that is
// committed, and begins once it is. Its process takes its place then.
func (s *Session) let(x *judge.Exec, p *process, rule string, with gate.Allowance, also ...api.Event) {
	p.proc, p.pgid, p.shell, p.jobs, p.sends = procOf(x), x.PGID, x.Shell(), x.Shell() && !x.Writable, x.Command.Sends
	if p.agent {
		p.next = x.Chain
		if p.is == nil {
			p.is = x.Identity()
		}
	}
	p.exec = s.roster.record(p.action, x, api.Allow, rule)
	p.exec.Basis.Leads = p.leader
	exec := p.exec
	recorded := s.recorded(append(also, api.Event{Kind: "exec.allowed", Exec: &exec})...)
	mark := s.roster.let(x, p)
	step, becomes := s.info.Mode == api.ModeStep, s.roster.released[procOf(x)].begins
	if step && (mark != 0 || p.approved) { // it is judged by itself: nothing that others gave it may outlive that
		with |= gate.Unfiltered
	}
	x.OnBegin(func() error {
		// On the gate's goroutine; the process stands before its first
		// instruction and is its only thread.
		if mark != 0 && p.kin.person && x.Unchecked() {
			return errors.New("another program traces it: it can't be compared with what was shown")
		}
		if err := s.mayBegin(x, mark, step, recorded); err != nil {
			return err
		}
		becomes()
		s.loop.Submit(func() { s.began(x.Exec) })
		return nil
	})
	x.Allow(with)
}

// mayBegin gives a program that stands in its process its mark, if that isn't 0, and says whether it may run: it is recorded by then.
func (s *Session) mayBegin(x *judge.Exec, mark uint64, step bool, recorded func() error) error {
	if mark != 0 {
		if err := gate.SetMark(x.PID, mark); err != nil {
			return err
		}
	}
	if err := recorded(); err != nil {
		return errors.New(whyUnrecorded)
	}
	if !step {
		return nil
	}
	return s.judge.Unwritten(x)
}

// refuse records that programs were denied and then tells them.
func (s *Session) refuse(a *action, rule, reason string, also []api.Event, denied ...*judge.Exec) {
	callers := make([]*process, len(denied))
	for i, x := range denied {
		callers[i] = s.roster.of(x)
		exec := s.roster.record(a, x, api.Deny, rule)
		also = append(also, api.Event{Kind: "exec.denied", Exec: &exec})
	}
	s.record(func(error) {
		for i, x := range denied {
			turnDown(x, callers[i], reason)
		}
	}, also...)
}

// deny ends a held action before it ran.
func (s *Session) deny(a *action, rule, reason string) {
	members := s.actions.decided(a)
	if err := a.to(api.ActionDenied); err != nil {
		s.fail(err)
		return
	}
	a.Verdict, a.Rule, a.Reason, a.EndedAt = api.Deny, rule, api.Escape(reason), time.Now().UTC()
	s.refuse(a, rule, reason, []api.Event{s.actionEvent(a, "denied"), s.changed("counted")}, members...)
}

// record is the record of one program start.
func (r *roster) record(a *action, x *judge.Exec, v api.Verdict, rule string) api.Exec {
	r.execs++
	out := api.Exec{
		ID: r.execs, Pid: x.PID, Parent: x.Parent, Argv: bounded(x.Command.Argv), Program: x.Command.Program, Cwd: x.Command.Cwd,
		Verdict: v, Rule: rule, At: time.Now().UTC(), Basis: basis(x),
	}
	if a != nil {
		out.Action = a.N
	}
	return out
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

// began is a program that stands in its process now.
func (s *Session) began(e *gate.Exec) {
	p, before := s.roster.begins(e)
	switch {
	case p == nil || before == nil || !before.leader:
	case before.action == p.action:
		p.leader = true
	default: // an agent that another started, and that becomes another program
		s.leaderGone(before.action, nil)
	}
}
