package session

import (
	"slices"
	"strconv"
	"time"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/judge"
	"stepbox/session/loop"
	"stepbox/session/rules"
)

// onExec is a program that wants to start.
func (s *Session) onExec(x *judge.Exec) {
	p := s.roster.of(x)
	if p == nil || !p.next.Names(x) {
		s.place(x, false)
		return
	}
	chain := p.next
	lookFirst(s.loop, x, func() func() {
		goesOn := s.judge.Continues(chain, x)
		return func() { s.place(x, goesOn && p.next == chain) }
	})
}

// lookFirst is aside for a held exec, which is forgotten when its process is gone
// by then: that was told.
func lookFirst(l *loop.Loop, x *judge.Exec, work func() (then func())) {
	l.Aside(func() func() {
		then := work()
		return func() {
			if x.Valid() {
				then()
			}
		}
	})
}

// place finds out whose an exec is, and goes on with it as such. In a chain it
// is the interpreter that the agent's script starts.
func (s *Session) place(x *judge.Exec, inChain bool) {
	if s.loop.Now() >= loop.Stopping {
		x.Deny("the session is ending")
		return
	}
	p, k, doubt := s.roster.belongs(x)
	covered := k != nil && k.action.agent == nil
	profile := s.profile
	switch {
	case covered:
		profile = k.action.profile
	case p != nil && p.profile != nil:
		profile = p.profile
	}
	if x.Profile != profile { // another agent's
		lookFirst(s.loop, x, func() func() {
			again := s.judge.Exec(x.Exec, profile)
			return func() { s.place(again, inChain) }
		})
		return
	}
	x = s.judge.Newest(x)
	itself := p != nil && p.proc == procOf(x)
	denied := x.Judgement.Verdict == policy.Deny
	switch {
	case itself && inChain:
		s.admit(x, &process{kin: p.kin, action: p.action, agent: p.agent, is: p.is}, "the agent's script starts its interpreter")
	case covered && x.Agent != nil:
		// As npx and other launchers start it. Covered, nothing that it ever does
		// would be judged.
		s.form(x, &action{parent: p, profile: profile, doubt: "an agent within action " + strconv.Itoa(k.action.N) + " is an action of its own"})
	case covered:
		s.nested(k, x)
	case itself && p.agent && x.Self && !denied: // the agent's own process stays that
		s.admit(x, &process{kin: p.kin, action: p.action, agent: true}, "the agent itself: what it starts is judged")
	case itself && p.agent:
		// It runs another program in its place. When that is approved it is the
		// agent: what it starts is judged, and nothing of it is covered.
		s.form(x, &action{parent: p, profile: profile, becomes: true, agent: profile})
	default:
		s.arise(x, p, doubt)
	}
}

// arise is an exec by a process that belongs to no action.
func (s *Session) arise(x *judge.Exec, parent *process, doubt string) {
	switch j := x.Judgement; {
	case x.Becomes(): // whatever the rules say of what it becomes
		s.admit(x, &process{starter: true}, "the agent itself: what it starts is judged")
		return
	case j.Verdict == policy.Deny: // whatever passes unasked otherwise
	case x.Root && (j.Verdict == policy.Allow || j.Layer == ""):
		s.admit(x, &process{}, "a shell that is fed commands: what it starts is judged")
		return
	case x.Self:
		starter := x.Profile.Starter(x.Argv)
		s.admit(x, &process{starter: starter, agent: !starter}, "the agent itself: what it starts is judged")
		return
	case x.Ours, x.Hook:
		s.housekeep(x)
		return
	}
	switch a := s.actions.job(x, parent); {
	case a == nil:
		s.form(x, &action{parent: parent, profile: x.Profile, doubt: doubt})
	case a.State == api.ActionRunning:
		s.joinRunning(a, x)
	default:
		s.actions.hold(a, x)
		if a.forming != nil { // it has been weighed without this one
			a.forming.Stop()
			s.regard(a, func() { s.weighed(a) })
		}
	}
}

// form begins an action.
func (s *Session) form(x *judge.Exec, a *action) {
	a.Kind, a.StartedAt = api.KindCommand, time.Now().UTC()
	a.proc = procOf(x)
	if p := s.roster.starter(x); p != nil {
		a.itself, a.launched = true, p.launches(x)
		p.busy = true
	}
	s.actions.hold(a, x)
	s.actions.forming = append(s.actions.forming, a)
	s.oneByOne(time.Now(), func() { s.formed(a) })
}

// In step mode an action waits for those that have just begun to run to end, or for their files to rest, but not for
// longer than patience: else each look of the agent's own at the project cuts a build's changes into pieces, which are asked about
// one by one, half-way.
const (
	patience = 5 * time.Second
	resting  = 2 * time.Second
	noticing = 500 * time.Millisecond // what the agent noticed may come later here
)

// oneByOne goes on when that is so, for an action that began then.
func (s *Session) oneByOne(began time.Time, then func()) {
	rests := max(resting-time.Since(s.lastMove), noticing-time.Since(began))
	wait := min(patience-time.Since(began), rests)
	if s.info.Mode != api.ModeStep || wait <= 0 || !slices.ContainsFunc(s.writers(), func(c files.Command) bool { return c.Young(time.Now()) }) {
		then()
		return
	}
	s.behind = append(s.behind, func() { s.oneByOne(began, then) })
	time.AfterFunc(wait, func() { s.loop.Submit(s.pastEdits) })
}

// formed goes on with an action that begins: it is what may be held from now on.
func (s *Session) formed(a *action) {
	s.actions.goesOn(a)
	// Changes that the agent made by itself until now become an edit, with a
	// number before this one, and this state is what the action can be
	// rolled back to.
	s.checkpoint(func(cp *files.Checkpoint, err error) {
		if err != nil { // the session ends
			for _, x := range s.actions.decided(a) {
				x.Deny(whyUnrecorded)
			}
			return
		}
		s.regard(a, func() {
			if len(a.members) == 0 { // its processes went away meanwhile
				s.actions.decided(a)
				return
			}
			s.actions.add(a)
			s.term.Mark(a.N)
			s.claimed(a)
			a.Before = cp.ID
			if err := a.to(api.ActionHeld); err != nil {
				s.fail(err)
				return
			}
			s.weighed(a)
		})
	})
}

// regard looks once more at the members of an action, where that can tell more
// than the first look did: a file was written since, or it has to be known
// whether one is the agent's program.
func (s *Session) regard(a *action, then func()) {
	closer := a.becomes || a.parent != nil && a.parent.is.Scripted() || slices.ContainsFunc(a.members, func(x *judge.Exec) bool { return x.Agent != nil })
	if !closer && !slices.ContainsFunc(a.members, (*judge.Exec).Moves) {
		then()
		return
	}
	members := slices.Clone(a.members)
	a.regards++
	s.loop.Aside(func() func() {
		again := make(map[*gate.Exec]*judge.Exec, len(members))
		for _, x := range members {
			if x.Moves() {
				x = s.judge.Again(x)
			}
			if closer {
				x = x.Closer()
			}
			again[x.Exec] = x
		}
		return func() {
			a.regards--
			more := false // came meanwhile
			for i, x := range a.members {
				if y := again[x.Exec]; y != nil {
					a.members[i] = y
				} else {
					more = true
				}
			}
			if more {
				s.regard(a, then)
				return
			}
			then()
		}
	})
}

// weigh is the verdict on an action.
func (s *Session) weigh(a *action, mode api.Mode) (api.Verdict, string) {
	verdict, rule := a.weigh(mode, s.holdNext)
	if verdict == api.Ask && mode == api.ModeStep && !s.holdNext {
		if r := s.shape(a); r != nil {
			return api.Allow, r.Words()
		}
	}
	return verdict, rule
}

// shape is the rule on what the agent's own program starts that an action is of, in step mode; nil: there is none, or a
// question would tell more than the command's words. The rule covers that program and not what it starts: so it
// says what it is about, and is no boundary.
func (s *Session) shape(a *action) *api.Rule {
	if !a.itself || len(a.members) != 1 || a.agent != nil || a.becomes || a.doubt != "" || a.into {
		return nil
	}
	x := a.members[0]
	if x.Judgement.Verdict != policy.Allow || !x.Plain() || len(s.judge.Places.Traps()) > 0 {
		return nil
	}
	for i := range s.info.Rules {
		if r := &s.info.Rules[i]; r.Itself != "" && r.Itself == x.Program.Path && rules.Shapes(r.Command, x.Argv) {
			return r
		}
	}
	return nil
}

// weighed gives an action its verdict. One that is asked about waits for others
// that may join it.
func (s *Session) weighed(a *action) {
	if a.State != api.ActionHeld || len(a.members) == 0 { // its processes went away meanwhile
		return
	}
	s.newest(a)
	verdict, rule := s.weigh(a, s.info.Mode)
	switch verdict {
	case api.Allow:
		a.By = "rule"
		if s.info.Mode == api.ModeStep {
			s.actions.shown(a) // what joins it now is judged by itself
			s.letRun(a, rule, nil)
			return
		}
		s.release(a, rule)
	case api.Deny:
		a.By = "rule"
		s.deny(a, rule, rule)
	default:
		a.Rule = rule
		if a.forming == nil {
			a.forming = time.AfterFunc(joinTime, func() { s.loop.Submit(func() { s.ask(a) }) })
		} else {
			a.forming.Reset(joinTime)
		}
	}
}

// joinRunning adds a program to an action that runs: it is shown with it and
// judged by itself.
func (s *Session) joinRunning(a *action, x *judge.Exec) {
	a.sit(x)
	a.commands = append(a.commands, x.Command)
	a.Title = titleOf(a.seats)
	a.leaders++ // it isn't over before this is decided
	a.atExit, a.exiting = nil, false
	k := s.roster.newKin(a)
	k.joined = true
	k.children = x.Judgement.NestedAllowed && s.info.Mode != api.ModeStep
	verdict, rule := s.within(k, x, true)
	grown := s.actionEvent(a, "counted")
	switch verdict {
	case api.Allow:
		s.start(k, x, rule, true, []api.Event{grown})
	case api.Deny:
		s.refuse(a, rule, rule, nil, x)
		s.leaderGone(a, nil)
	default:
		s.askNested(k, x, rule, true, grown)
	}
}

// nested is a program that a kin starts.
func (s *Session) nested(k *kin, x *judge.Exec) {
	a := k.action
	a.Execs++
	verdict, rule := s.within(k, x, false)
	switch verdict {
	case api.Allow:
		s.start(k, x, rule, false, nil)
	case api.Deny:
		s.refuse(a, rule, rule, nil, x)
	default:
		s.askNested(k, x, rule, false)
	}
}

// askNested asks about a program that an action starts, or that joins it.
func (s *Session) askNested(k *kin, x *judge.Exec, rule string, joins bool, also ...api.Event) {
	c := x.Command
	s.open(&question{
		Question: api.Question{Action: k.action.N, Subject: api.SubjectNested, Title: c.Title(), Rule: rule, Command: &c},
		about:    &aboutProgram{kin: k, joins: joins}, execs: []*judge.Exec{x}, action: k.action,
	}, also...)
}
