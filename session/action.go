package session

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
)

// proc names one process for good: a pid alone is used again.
type proc struct {
	pid   int
	start uint64 // clock ticks since boot, proc(5)
}

// process is a living one that the gate has seen exec.
type process struct {
	proc
	pgid, sid int
	argv      []string
	exec      api.Exec
	action    *action         // nil: a root, which belongs to no action
	profile   *policy.Profile // a root's
	leader    bool            // the action ends with it
}

// action is an api.Action with what the session needs to run it.
type action struct {
	api.Action
	members  []*gate.Exec // held ones that start it together: a job, or joined by pipes
	commands []api.Command
	profile  *policy.Profile // of the root that started it
	parent   *process        // that root; nil for a stray
	leaders  int             // living leaders
	shown    [][]string      // argvs that a person saw and approved
	children bool            // a rule allows what it starts
	person   bool            // a person approved it
	into     bool            // hold each program that it starts
	keeps    bool            // what it changes was approved with it
	agent    *policy.Profile // it starts another agent, which then is a root of its own
	forming  *time.Timer     // runs out when no more members are expected
	question *question
	last     *api.Exit // of the leaders that exited so far
	atExit   *checkpoint
	lingers  bool // its leader is gone, but not all that it started
}

// joinTime is how long a held action waits for the rest of its job. A shell
// forks the members of a pipeline one after the other.
const joinTime = 50 * time.Millisecond

// command is one exec as a person judges it.
func (s *Session) command(e *gate.Exec, profile *policy.Profile) api.Command {
	peeled := profile.Peel(e.Argv)
	c := api.Command{
		Line:      api.Escape(peeled.Line) + unlike(e),
		Argv:      escaped(e.Argv),
		Truncated: e.Truncated,
		Cwd:       api.Escape(e.Cwd),
		Program:   api.Escape(e.Program.Path),
		Written:   s.places.wrote(e.Program.Path),
		Env:       differing(s.env, e.Env),
		Pid:       e.PID,
	}
	sources := peeled.Sources
	for _, f := range peeled.Startup {
		if f = path.Join(s.cfg.Home, f); s.places.wrote(f) {
			sources = append(sources, f)
		}
	}
	for _, src := range sources {
		if s.suspect(src) {
			c.Sources = append(c.Sources, api.Escape(src))
		}
	}
	for _, a := range e.Ancestors {
		c.Parents = append(c.Parents, api.Escape(a.Name))
	}
	return c
}

// unlike names the program that runs when its name isn't what it calls itself.
// A script and what the system's alternatives lead to are told by /bin/ls and
// the like having one of the names.
func unlike(e *gate.Exec) string {
	if len(e.Argv) == 0 {
		return " [runs " + api.Escape(e.Program.Path) + "]"
	}
	name := strings.TrimPrefix(path.Base(e.Argv[0]), "-")
	if name == path.Base(e.Program.Path) || name == path.Base(e.Path) && strings.HasPrefix(path.Dir(e.Program.Path), "/usr/") {
		return ""
	}
	return " [runs " + api.Escape(e.Program.Path) + "]"
}

// judge asks the rules about one exec.
func (s *Session) judge(e *gate.Exec, c *api.Command, profile *policy.Profile) policy.Judgement {
	if e.Truncated {
		return policy.Judgement{Verdict: policy.Ask, Rule: "its arguments are too large to be read whole"}
	}
	j := s.policy.Command(s.facts(e, profile.Peel(e.Argv).Argv))
	for _, p := range j.Parts {
		c.Parts = append(c.Parts, api.Part{Text: api.Escape(p.Text), Verdict: api.Verdict(p.Verdict), Rule: p.Rule})
	}
	if len(c.Sources) > 0 && j.Verdict == policy.Allow {
		j.Verdict, j.Rule = policy.Ask, "it reads commands from "+c.Sources[0]+", which the agent can write"
	}
	return j
}

// facts is one exec as the rules see it.
func (s *Session) facts(e *gate.Exec, argv []string) policy.Command {
	return policy.Command{
		Argv: argv, Cwd: e.Cwd, Program: e.Program.Path, Written: s.places.wrote(e.Program.Path),
		Project: s.cfg.Workspace, Home: s.cfg.Home, Wrote: s.places.wrote,
	}
}

// verdict is what the mode makes of the rules' judgement for an action that begins.
func (s *Session) verdict(j policy.Judgement) (api.Verdict, string) {
	switch {
	case j.Verdict == policy.Deny:
		return api.Deny, j.Rule
	case s.holdNext:
		return api.Ask, "step over: hold the next action"
	case s.info.Mode == api.ModeStep:
		return api.Ask, "step mode holds every action"
	case s.info.Mode == api.ModeWatch:
		return api.Allow, "watch mode"
	}
	return api.Verdict(j.Verdict), j.Rule
}

// onExec is a program that wants to start.
func (s *Session) onExec(e *gate.Exec) {
	if s.life.now >= phaseStopping {
		e.Deny("the session is ending")
		return
	}
	known, action := s.owner(e)
	switch {
	case action != nil && action.State == api.ActionHeld:
		s.join(action, e)
	case action != nil && action.agent == nil:
		s.nested(action, e)
	case known != nil && known.proc == (proc{e.PID, e.Start}) && continues(known.argv, e.Argv):
		s.admit(e, known.profile, "the agent starts its interpreter")
	default:
		s.arise(e, known)
	}
}

// arise is an exec by a process that belongs to no action.
func (s *Session) arise(e *gate.Exec, parent *process) {
	profile := s.profile
	if parent != nil && parent.profile != nil {
		profile = parent.profile
	}
	c := s.facts(e, e.Argv)
	switch {
	case profile.Root(e.Argv) && !c.Written && shells[path.Base(e.Program.Path)]:
		s.admit(e, profile, "a shell that is fed commands: what it starts is judged")
		return
	case !e.Truncated && !c.Written && profile.Self(c):
		s.admit(e, profile, "the agent itself: what it starts is judged")
		return
	case !e.Truncated && !c.Written && profile.Housekeeping(c):
		s.housekeep(e, c, profile)
		return
	}
	if a := s.job(e, parent); a != nil {
		s.join(a, e)
		return
	}
	a := &action{parent: parent, profile: profile}
	a.Kind, a.StartedAt = api.KindCommand, time.Now().UTC()
	a.members = []*gate.Exec{e}
	s.forming = append(s.forming, a)
	// Changes that the agent made by itself until now become an edit, with a
	// number before this one, and this state is what the action can be
	// rolled back to.
	s.checkpoint(func(cp *checkpoint, err error) {
		if err != nil {
			s.unformed(a)
			return
		}
		s.formed(a, cp)
	})
}

// shells are the files that a root may be, whatever it calls itself.
var shells = map[string]bool{
	"bash": true, "rbash": true, "dash": true, "sh": true, "zsh": true, "zsh5": true, "fish": true, "ksh": true, "mksh": true,
	"ksh93": true, "busybox": true, "tmux": true, "screen": true,
}

// unformed lets go of an action that can't be: the session ends.
func (s *Session) unformed(a *action) {
	s.forming = slices.DeleteFunc(s.forming, func(f *action) bool { return f == a })
	for _, e := range a.members {
		e.Deny(whyUnrecorded)
	}
}

// whyUnrecorded is what a program is told that would run unrecorded.
const whyUnrecorded = "the session ends: what it does can't be recorded"

// formed gives an action its number and its verdict.
func (s *Session) formed(a *action, cp *checkpoint) {
	if len(a.members) == 0 { // its processes went away meanwhile
		s.forming = slices.DeleteFunc(s.forming, func(f *action) bool { return f == a })
		return
	}
	a.N = len(s.actions) + 1
	s.actions = append(s.actions, a)
	a.Before = cp.id
	if err := a.to(api.ActionHeld); err != nil {
		s.fail(err)
		return
	}
	verdict, rule := s.weigh(a)
	switch verdict {
	case api.Allow:
		a.By = "rule"
		s.release(a, rule)
	case api.Deny:
		a.By = "rule"
		s.deny(a, rule, rule)
	default:
		a.Rule = rule
		a.forming = time.AfterFunc(joinTime, func() { s.submit(func() { s.ask(a) }) })
	}
}

// weigh judges all members of an action; the strictest verdict counts.
func (s *Session) weigh(a *action) (api.Verdict, string) {
	a.commands, a.children = nil, true
	worst, why := api.Allow, ""
	var lines []string
	for i, e := range a.members {
		c := s.command(e, a.profile)
		j := s.judge(e, &c, a.profile)
		v, rule := s.verdict(j)
		if i == 0 || stricter(v, worst) {
			worst, why = v, rule
		}
		a.children = a.children && j.NestedAllowed
		a.commands = append(a.commands, c)
		lines = append(lines, c.Line)
	}
	a.Title = strings.Join(lines, " | ")
	if p := policy.ProfileFor(a.members[0].Argv, a.members[0].Program.Path); p != nil && p.Agent() {
		a.agent = p
	}
	return worst, why
}

// join adds a member to an action. One that has been shown doesn't grow, so
// that an approval covers what was read and no more; what joins one that runs
// is judged by itself.
func (s *Session) join(a *action, e *gate.Exec) {
	switch {
	case a.State == api.ActionRunning:
		a.add(e)
		var lines []string
		for _, m := range a.members {
			lines = append(lines, api.Escape(a.profile.Peel(m.Argv).Line))
		}
		a.Title = strings.Join(lines, " | ")
		s.nested(a, e)
	case a.question != nil:
		s.nested(a, e)
	default:
		a.add(e)
		if a.forming != nil {
			_, a.Rule = s.weigh(a)
			a.forming.Reset(joinTime)
		}
	}
}

// add puts a member where it stands in its job: a shell forks them in order.
func (a *action) add(e *gate.Exec) {
	a.members = append(a.members, e)
	slices.SortStableFunc(a.members, func(x, y *gate.Exec) int { return cmp.Compare(x.Start, y.Start)*2 + cmp.Compare(x.PID, y.PID) })
}

// job finds the action whose job an exec belongs to: the same process group
// as a shell with job control makes them, or joined to it by a pipe.
func (s *Session) job(e *gate.Exec, parent *process) *action {
	for _, a := range s.live() {
		for _, m := range a.members {
			if parent != nil && m.PGID == e.PGID && e.PGID != parent.pgid && parent == a.parent {
				return a
			}
			if m.Stdout != 0 && m.Stdout == e.Stdin || m.Stdin != 0 && m.Stdin == e.Stdout {
				return a
			}
		}
	}
	return nil
}

// live lists actions that new programs can belong to.
func (s *Session) live() []*action {
	l := slices.Clone(s.forming)
	for _, a := range s.actions {
		if a.Kind == api.KindCommand && !a.Housekeeping && (a.State == api.ActionHeld || a.State == api.ActionRunning) && a.agent == nil {
			l = append(l, a)
		}
	}
	return l
}

// owner finds the process or action that an exec belongs to.
func (s *Session) owner(e *gate.Exec) (*process, *action) {
	if p := s.procs[proc{e.PID, e.Start}]; p != nil {
		return p, p.action
	}
	for _, a := range e.Ancestors {
		if p := s.procs[proc{a.PID, a.Start}]; p != nil {
			return p, p.action
		}
	}
	// Its parents are gone: a daemon. Its session or process group may still
	// tell which action made it.
	for _, p := range s.procs {
		if p.action != nil && (p.pgid == e.PGID || p.sid == e.SID && e.SID != s.agentSID) {
			return p, p.action
		}
	}
	for _, a := range s.actions {
		if a.lingers && slices.ContainsFunc(a.members, func(m *gate.Exec) bool { return m.PGID == e.PGID }) {
			return nil, a
		}
	}
	return nil, nil
}

// nested is a program that an action starts.
func (s *Session) nested(a *action, e *gate.Exec) {
	if !slices.Contains(a.members, e) {
		a.Execs++
	}
	c := s.command(e, a.profile)
	j := s.judge(e, &c, a.profile)
	verdict, rule := api.Allow, "part of action "+itoa(a.N)
	switch {
	case j.Verdict == policy.Deny:
		verdict, rule = api.Deny, j.Rule
	case a.into:
		verdict, rule = api.Ask, "step into: every program of this action is held"
	case s.info.Mode == api.ModeWatch || a.person || a.children:
	case a.State == api.ActionHeld:
		verdict, rule = api.Ask, "it joined an action that is held"
	case slices.ContainsFunc(a.shown, func(argv []string) bool { return slices.Equal(argv, e.Argv) }):
	case s.info.Mode == api.ModePolicy || !a.person:
		verdict, rule = api.Verdict(j.Verdict), j.Rule
	}
	switch verdict {
	case api.Allow:
		s.start(a, e, c, rule, nil)
	case api.Deny:
		s.refuse(a, e, c, rule, rule)
	default:
		s.open(&question{
			Question: api.Question{Action: a.N, Subject: api.SubjectNested, Title: c.Line, Rule: rule, Command: &c},
			execs:    []*gate.Exec{e}, action: a,
		})
	}
}

// admit lets a root start: it is recorded, but belongs to no action.
func (s *Session) admit(e *gate.Exec, profile *policy.Profile, rule string) {
	c := s.command(e, profile)
	p := s.track(e, nil, profile)
	p.exec = s.execRecord(nil, e, c, api.Allow, rule)
	exec := p.exec
	s.record(func(err error) {
		if err != nil {
			e.Deny(whyUnrecorded)
			return
		}
		e.Allow()
	}, api.Event{Kind: "exec.allowed", Exec: &exec})
}

// housekeep lets an agent's own upkeep pass, recorded and folded away.
func (s *Session) housekeep(e *gate.Exec, facts policy.Command, profile *policy.Profile) {
	c := s.command(e, profile)
	a := &action{profile: profile}
	a.N, a.Kind, a.Housekeeping = len(s.actions)+1, api.KindCommand, true
	a.Title, a.Verdict, a.By, a.Rule = c.Line, api.Allow, "rule", "housekeeping of "+profile.Name
	a.StartedAt = time.Now().UTC()
	a.ReleasedAt, a.children = a.StartedAt, profile.HousekeepingChildren(facts)
	s.actions = append(s.actions, a)
	if err := a.to(api.ActionRunning); err != nil {
		s.fail(err)
		return
	}
	s.start(a, e, c, a.Rule, []api.Event{s.actionEvent(a, "released")})
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
	more := []api.Event{s.actionEvent(a, "released")}
	for i, e := range a.members {
		a.shown = append(a.shown, e.Argv)
		s.start(a, e, a.commands[i], rule, more)
		more = nil
	}
}

// start records that a program of an action runs and then lets it.
func (s *Session) start(a *action, e *gate.Exec, c api.Command, rule string, also []api.Event) {
	p := s.track(e, a, a.profile)
	if !p.leader && (slices.Contains(a.members, e) || a.Housekeeping) {
		p.leader = true
		a.leaders++
	}
	p.exec = s.execRecord(a, e, c, api.Allow, rule)
	exec := p.exec
	s.record(func(err error) {
		switch {
		case err != nil:
			e.Deny(whyUnrecorded)
		case p.leader && !a.Housekeeping && a.agent == nil:
			e.Allow(gate.HoldExit) // its end waits for the checkpoint after it
		default:
			e.Allow()
		}
	}, append(also, api.Event{Kind: "exec.allowed", Exec: &exec})...)
}

// refuse records that a program was denied and then tells it.
func (s *Session) refuse(a *action, e *gate.Exec, c api.Command, rule, reason string) {
	exec := s.execRecord(a, e, c, api.Deny, rule)
	s.record(func(error) { e.Deny(reason) }, api.Event{Kind: "exec.denied", Exec: &exec})
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
	for i, e := range members {
		exec := s.execRecord(a, e, a.commands[i], api.Deny, rule)
		events = append(events, api.Event{Kind: "exec.denied", Exec: &exec})
	}
	s.record(func(error) {
		for _, e := range members {
			e.Deny(reason)
		}
	}, events...)
}

// track remembers the process that an exec is made by.
func (s *Session) track(e *gate.Exec, a *action, profile *policy.Profile) *process {
	key := proc{e.PID, e.Start}
	p := s.procs[key]
	if p == nil {
		p = &process{proc: key}
		s.procs[key] = p
	}
	p.pgid, p.sid, p.argv, p.profile = e.PGID, e.SID, e.Argv, profile
	if a != nil {
		p.action = a
	}
	return p
}

// actionEvent is the event that says how an action stands.
func (s *Session) actionEvent(a *action, kind string) api.Event {
	if !a.EndedAt.IsZero() {
		s.files.bump() // the checkpoints that its changes lie between may be others now
	}
	copied := a.Action
	return api.Event{Kind: "action." + kind, Action: &copied}
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

// continues says whether an exec is a root's own start going on: env(1) or a
// script's interpreter runs the same words with something in front or without it.
func continues(before, after []string) bool {
	if len(before) == 0 || len(after) == 0 {
		return false
	}
	tail := before[1:]
	return len(tail) > 0 && len(after) >= len(tail) && slices.Equal(after[len(after)-len(tail):], tail)
}

func stricter(a, b api.Verdict) bool {
	rank := map[api.Verdict]int{api.Allow: 0, api.Ask: 1, api.Deny: 2}
	return rank[a] > rank[b]
}
