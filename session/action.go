package session

import (
	"cmp"
	"path"
	"slices"
	"strconv"
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
	beside   bool       // what started it has started something else since
	lingers  bool       // its leader is gone, but not all that it started
	undone   bool       // a roll back killed all of it
	spans    []stretch  // between which its changes were made
	toldTo   int64      // the last checkpoint whose changes are counted
	reviewed api.Review // what it was before it was taken back
	unseen   bool       // it changed more than its open question shows
	tally    tally
}

// shown is a program start that was approved, as far as a second one is the same:
// in another folder or environment the same words do something else.
type shown struct {
	digest   [32]byte // of path, arguments and environment
	cwd      string
	contents [32]byte // of all files behind it, by identity too
}

func (s shown) is(e *gate.Exec) bool {
	return s.digest == e.Digest && s.cwd == e.Cwd && s.contents == e.Cover()
}

func shownOf(e *gate.Exec) shown { return shown{e.Digest, e.Cwd, e.Contents()} }

// joinTime is how long a held action waits for the rest of its job. A shell
// forks the members of a pipeline one after the other.
const joinTime = 50 * time.Millisecond

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
	case k != nil && k.action.agent == nil && policy.ProfileFor(e.Argv, e.Program.Path).Agent():
		// As npx and other launchers start it. Covered, nothing that it ever does
		// would be judged.
		s.form(e, &action{parent: p, profile: k.action.profile, doubt: "an agent within action " + strconv.Itoa(k.action.N) + " is an action of its own"})
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
	c.Written = c.Written || s.loadsMore(e)
	switch {
	case profile.Root(asItsFile(e)) && !c.Written && shells[path.Base(e.Program.Path)] && !s.places.made(e.Program.Path):
		s.admit(e, &process{}, profile, "a shell that is fed commands: what it starts is judged")
		return
	case !e.Truncated && !c.Written && profile.Self(s.trusted(c)):
		s.admit(e, selfOf(nil, e, profile), profile, "the agent itself: what it starts is judged")
		return
	case !e.Truncated && !c.Written && profile.Housekeeping(s.trusted(c)):
		s.housekeep(e, c, profile)
		return
	}
	if a := s.job(e, parent); a != nil {
		s.join(a, e)
		return
	}
	s.form(e, &action{parent: parent, profile: profile, doubt: doubt})
}

// asItsFile is what a program is told, called as its file is: the agent chooses
// what its programs call themselves. A file of many programs goes by that.
func asItsFile(e *gate.Exec) []string {
	name := path.Base(e.Program.Path)
	if len(e.Argv) == 0 || name == "busybox" {
		return e.Argv
	}
	return append([]string{name}, e.Argv[1:]...)
}

// form begins an action.
func (s *Session) form(e *gate.Exec, a *action) {
	a.Kind, a.StartedAt = api.KindCommand, time.Now().UTC()
	a.members = []*gate.Exec{e}
	s.forming = append(s.forming, a)
	s.goesOn(a.parent)
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
	rule = "it joins action " + strconv.Itoa(a.N) + ", which runs, and is judged by itself: " + rule
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
	verdict, rule := api.Allow, "part of action "+strconv.Itoa(a.N)
	switch {
	case j.Verdict == policy.Deny:
		verdict, rule = api.Deny, j.Rule
	case a.into:
		verdict, rule = api.Ask, "step into: every program of this action is held"
	case a.Housekeeping && k.children && (s.places.holds(e.Program.Path) || s.places.holds(named(e))):
		verdict, rule = api.Ask, "the agent's housekeeping starts a program that the agent can write"
	case a.Housekeeping && k.children && (len(e.Argv) == 0 || !a.starts(e.Program.Path, e.Argv[0])):
		verdict, rule = api.Ask, "the agent's housekeeping starts what it isn't known to start"
	case s.info.Mode == api.ModeWatch || k.children || k.person && !a.fedFromOutside(e):
	case slices.ContainsFunc(a.shown, func(o shown) bool { return o.is(e) }):
	case s.info.Mode == api.ModeStep && k.person:
		verdict, rule = api.Ask, "step mode: it runs what others write to the standard input of action "+strconv.Itoa(a.N)
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

// actionEvent is the event that says how an action stands.
func (s *Session) actionEvent(a *action, kind string) api.Event {
	if !a.EndedAt.IsZero() {
		s.files.bump() // the checkpoints that its changes lie between may be others now
	}
	s.sum(a)
	copied := a.Action
	return api.Event{Kind: "action." + kind, Action: &copied}
}
