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

// action is an api.Action with what the session needs to run it.
type action struct {
	api.Action
	members  []*gate.Exec // held ones that start it together: a job, or joined by pipes
	seats    []seat       // the same, and what joined later, while it runs
	commands []api.Command
	profile  *policy.Profile              // of the root that started it
	parent   *process                     // that root; nil for a stray
	kins     int                          // how many it has had
	leaders  int                          // those that it waits for
	shown    []shown                      // what a person saw and approved
	children bool                         // a rule allows what it starts
	starts   func(file, name string) bool // of housekeeping with children: what those may be
	script   string                       // of housekeeping with children, its last argument
	person   bool                         // a person approved it
	into     bool                         // hold each program that it starts
	keeps    bool                         // what it changes was approved with it
	becomes  bool                         // an agent's own process becomes another program, and that the agent
	agent    *policy.Profile              // it is another agent, which then is a root of its own
	doubt    string                       // why it isn't of the action that it looks to be of
	forming  *time.Timer                  // runs out when no more members are expected
	question *question
	last     *api.Exit // of the leaders that exited so far
	atExit   *checkpoint
	exiting  bool       // its last leader is about to end
	lingers  bool       // its leader is gone, but not all that it started
	undone   bool       // a roll back killed all of it
	spans    []stretch  // between which its changes were made
	toldTo   int64      // the last checkpoint whose changes are counted
	reviewed api.Review // what it was before it was taken back
	unseen   bool       // it changed more than its open question shows
	tally    tally
}

// shown is a program start that was approved, as far as a second one is the same.
type shown struct {
	argv     []string
	dev, ino uint64
	contents [32]byte // of all files behind it
}

func (s shown) is(e *gate.Exec) bool {
	return s.dev == e.Program.Dev && s.ino == e.Program.Ino && slices.Equal(s.argv, e.Argv) &&
		s.contents == e.Cover()
}

func shownOf(e *gate.Exec) shown { return shown{e.Argv, e.Program.Dev, e.Program.Ino, e.Contents()} }

// joinTime is how long a held action waits for the rest of its job. A shell
// forks the members of a pipeline one after the other.
const joinTime = 50 * time.Millisecond

// command is one exec as a person judges it.
func (s *Session) command(e *gate.Exec, profile *policy.Profile) api.Command {
	peeled := profile.Peel(e.Argv)
	c := api.Command{
		Line:      api.Escape(peeled.Line) + s.unlike(e, peeled),
		Argv:      escaped(e.Argv),
		Truncated: e.Truncated,
		Cwd:       api.Escape(e.Cwd),
		Program:   api.Escape(e.Program.Path),
		Written:   s.made(e),
		Env:       differing(s.env, e.Env),
		Unpinned:  escaped(e.Unpinned),
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
// the like having one of the names. What the agent or the project may have made
// is named in any case, unless the line has its path.
func (s *Session) unlike(e *gate.Exec, peeled policy.Peeled) string {
	runs := " [runs " + api.Escape(e.Program.Path) + "]"
	if len(e.Argv) == 0 {
		return runs
	}
	if s.made(e) || s.places.made(e.Program.Path) {
		at := e.Argv[0]
		if !path.IsAbs(at) {
			at = path.Join(e.Cwd, at)
		}
		if !peeled.Wrapped && strings.Contains(e.Argv[0], "/") && path.Clean(at) == e.Program.Path {
			return ""
		}
		return runs
	}
	name := strings.TrimPrefix(path.Base(e.Argv[0]), "-")
	if name == path.Base(e.Program.Path) || name == path.Base(e.Path) && systems(e.Path) && systems(e.Program.Path) {
		return ""
	}
	return runs
}

// systems says whether a path is in a folder of the system's programs, whose
// links the agent can't have made.
func systems(file string) bool {
	return slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/"}, func(dir string) bool { return strings.HasPrefix(path.Clean(file), dir) })
}

// judge asks the rules about one exec.
func (s *Session) judge(e *gate.Exec, c *api.Command, profile *policy.Profile) policy.Judgement {
	if e.Truncated {
		return policy.Judgement{Verdict: policy.Ask, Rule: "its arguments are too large to be read whole"}
	}
	j := s.policy.Command(s.facts(e, profile.Peel(e.Argv).Argv))
	if n := len(e.Files); len(e.Prefix) > 0 && n > 1 && len(e.Argv) > 0 {
		// The kernel runs the script's interpreter with its arguments.
		f := s.facts(e, slices.Concat(e.Prefix, e.Argv[1:]))
		f.Program = e.Files[n-1].Path
		if k := s.policy.Command(f); stricter(api.Verdict(k.Verdict), api.Verdict(j.Verdict)) {
			j = k
		}
	}
	for _, p := range j.Parts {
		c.Parts = append(c.Parts, api.Part{Text: api.Escape(p.Text), Verdict: api.Verdict(p.Verdict), Rule: p.Rule})
	}
	if e.Linker != "" && j.Verdict == policy.Allow {
		j.Verdict, j.Rule = policy.Ask, "it starts in the dynamic linker "+api.Escape(e.Linker)+", which the agent can write"
	}
	if len(c.Sources) > 0 && j.Verdict == policy.Allow {
		j.Verdict, j.Rule = policy.Ask, "it reads commands from "+c.Sources[0]+", which the agent can write"
	}
	return j
}

// facts is one exec as the rules see it.
func (s *Session) facts(e *gate.Exec, argv []string) policy.Command {
	return policy.Command{
		Argv: argv, Cwd: e.Cwd, Program: e.Program.Path, Written: s.made(e) || e.Linker != "",
		Project: s.cfg.Workspace, Home: s.cfg.Home, Wrote: s.places.wrote,
		Resolve: func(name string) string {
			f, err := e.Lookup(name)
			if err != nil {
				return ""
			}
			return f.Path
		},
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
	p, k, doubt := s.belongs(e)
	itself := p != nil && p.proc == (proc{e.PID, e.Start})
	switch {
	case itself && s.continues(p.next, e):
		s.goOn(e, p)
	case k != nil && k.action.agent == nil:
		s.nested(k, e)
	case itself && p.agent:
		s.become(e, p)
	default:
		s.arise(e, p, doubt)
	}
}

// arise is an exec by a process that belongs to no action.
func (s *Session) arise(e *gate.Exec, parent *process, doubt string) {
	profile := s.profile
	if parent != nil && parent.profile != nil {
		profile = parent.profile
	}
	c := s.facts(e, e.Argv)
	switch {
	case profile.Root(e.Argv) && !c.Written && shells[path.Base(e.Program.Path)] && !s.places.made(e.Program.Path):
		s.admit(e, &process{}, profile, "a shell that is fed commands: what it starts is judged")
		return
	case !e.Truncated && !c.Written && profile.Self(s.trusted(c)):
		s.admit(e, selfOf(nil, e, profile), profile, "the agent itself: what it starts is judged")
		return
	case !e.Truncated && !c.Written && profile.Housekeeping(c):
		s.housekeep(e, c, profile)
		return
	}
	if a := s.job(e, parent); a != nil {
		s.join(a, e)
		return
	}
	s.form(e, &action{parent: parent, profile: profile, doubt: doubt})
}

// form begins an action.
func (s *Session) form(e *gate.Exec, a *action) {
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
	for _, e := range a.members {
		if p := policy.ProfileFor(e.Argv, e.Program.Path); p.Agent() {
			a.agent = p
		}
	}
	if a.becomes && worst != api.Deny {
		why = becoming(a.commands[0]) + ": " + why
	}
	if a.doubt != "" && worst != api.Deny {
		why = a.doubt + ": " + why
	}
	return worst, why
}

// join adds a member to an action that nobody has seen yet. What joins one that
// runs is shown with it and judged by itself.
func (s *Session) join(a *action, e *gate.Exec) {
	if a.State == api.ActionRunning {
		s.joinRunning(a, e)
		return
	}
	a.add(e)
	if a.forming == nil {
		return
	}
	verdict, rule := s.weigh(a)
	if verdict == api.Deny {
		a.forming.Stop()
		a.forming, a.By = nil, "rule"
		s.deny(a, rule, rule)
		return
	}
	a.Rule = rule
	a.forming.Reset(joinTime)
}

func (s *Session) joinRunning(a *action, e *gate.Exec) {
	c := s.command(e, a.profile)
	j := s.judge(e, &c, a.profile)
	a.seats = append(a.seats, seatOf(e, c.Line))
	a.Title = titleOf(a.seats)
	a.leaders++ // it isn't over before this is decided
	a.atExit = nil
	k := s.kinOf(a)
	k.children = j.NestedAllowed
	verdict, rule := s.verdict(j)
	if a.into && verdict == api.Allow {
		verdict, rule = api.Ask, "step into: every program of this action is held"
	}
	rule = "it joins action " + itoa(a.N) + ", which runs, and is judged by itself: " + rule
	grown := s.actionEvent(a, "counted")
	switch verdict {
	case api.Allow:
		s.start(k, e, c, rule, true, []api.Event{grown})
	case api.Deny:
		s.refuse(a, e, c, rule, j.Rule)
		s.leaderGone(a, nil)
	default:
		s.open(&question{
			Question: api.Question{Action: a.N, Subject: api.SubjectNested, Title: c.Line, Rule: rule, Command: &c},
			execs:    []*gate.Exec{e}, action: a, kin: k, joins: true,
		}, grown)
	}
}

// add puts a member where it stands in its job: a shell forks them in order.
func (a *action) add(e *gate.Exec) {
	a.members = append(a.members, e)
	slices.SortStableFunc(a.members, func(x, y *gate.Exec) int { return cmp.Compare(x.Start, y.Start)*2 + cmp.Compare(x.PID, y.PID) })
}

// nested is a program that a kin starts.
func (s *Session) nested(k *kin, e *gate.Exec) {
	a := k.action
	a.Execs++
	c := s.command(e, a.profile)
	j := s.judge(e, &c, a.profile)
	verdict, rule := api.Allow, "part of action "+itoa(a.N)
	switch {
	case j.Verdict == policy.Deny:
		verdict, rule = api.Deny, j.Rule
	case a.into:
		verdict, rule = api.Ask, "step into: every program of this action is held"
	case a.Housekeeping && k.children && (s.places.holds(e.Program.Path) || s.places.holds(named(e))):
		verdict, rule = api.Ask, "the agent's housekeeping starts a program that the agent can write"
	case a.Housekeeping && k.children && (len(e.Argv) == 0 || !a.starts(e.Program.Path, e.Argv[0])):
		verdict, rule = api.Ask, "the agent's housekeeping starts what it isn't known to start"
	case s.info.Mode == api.ModeWatch || k.person || k.children:
	case slices.ContainsFunc(a.shown, func(o shown) bool { return o.is(e) }):
	case s.info.Mode == api.ModeStep:
		verdict, rule = api.Ask, "step mode: nobody approved what starts this"
	default:
		verdict, rule = api.Verdict(j.Verdict), j.Rule
	}
	switch verdict {
	case api.Allow:
		s.start(k, e, c, rule, false, nil)
	case api.Deny:
		s.refuse(a, e, c, rule, rule)
	default:
		s.open(&question{
			Question: api.Question{Action: a.N, Subject: api.SubjectNested, Title: c.Line, Rule: rule, Command: &c},
			execs:    []*gate.Exec{e}, action: a, kin: k,
		})
	}
}

// named is the path that an exec was given, before its links are followed.
func named(e *gate.Exec) string {
	if path.IsAbs(e.Path) {
		return e.Path
	}
	return path.Join(e.Cwd, e.Path)
}

// admit lets a root start: it is recorded, but belongs to no action, unless it
// is an agent that another started.
func (s *Session) admit(e *gate.Exec, p *process, profile *policy.Profile, rule string) {
	c := s.command(e, profile)
	p.proc, p.pgid, p.profile = proc{e.PID, e.Start}, e.PGID, profile
	if p.agent {
		p.next = s.chainOf(e)
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
	more := []api.Event{s.actionEvent(a, "released")}
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
	p := &process{
		proc: proc{e.PID, e.Start}, pgid: e.PGID, kin: k, action: a, profile: a.profile,
		leader: counted, agent: counted && a.agent != nil,
	}
	if p.agent {
		p.next = s.chainOf(e)
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

// actionEvent is the event that says how an action stands.
func (s *Session) actionEvent(a *action, kind string) api.Event {
	if !a.EndedAt.IsZero() {
		s.files.bump() // the checkpoints that its changes lie between may be others now
	}
	s.sum(a)
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

func stricter(a, b api.Verdict) bool {
	rank := map[api.Verdict]int{api.Allow: 0, api.Ask: 1, api.Deny: 2}
	return rank[a] > rank[b]
}
