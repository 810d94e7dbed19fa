package session

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/judge"
)

// action is an api.Action with what the session needs to run it.
type action struct {
	api.Action
	members  []*judge.Exec   // held ones that start it together: a job, or joined by pipes
	seats    []seat          // the same, and what joined later, while it runs
	commands []api.Command   // what ran as its members, shown
	profile  *policy.Profile // of the root that started it
	parent   *process        // that root; nil for a stray
	leaders  int             // those that it waits for
	shown    []shown         // what a person saw and approved
	children bool            // a rule allows what it starts
	upkeep   *policy.Upkeep  // of housekeeping
	script   string          // of housekeeping with children, its last argument
	person   bool            // a person approved it
	into     bool            // hold each program that it starts
	keeps    bool            // what it changes was approved with it
	becomes  bool            // an agent's own process becomes another program, and that the agent
	agent    *policy.Profile // it is another agent, which then is a root of its own
	doubt    string          // why it isn't of the action that it looks to be of
	regards  int             // second looks at its members that are under way
	forming  *time.Timer     // runs out when no more members are expected
	question *question
	last     *api.Exit // of the leaders that exited so far
	atExit   *files.Checkpoint
	exiting  bool         // its last leader is about to end
	beside   bool         // what started it has started something else since
	lingers  bool         // its leader is gone, but not all that it started
	undone   bool         // a roll back killed all of it
	spans    []files.Span // between which its changes were made
	toldTo   int64        // the last checkpoint whose changes are counted
	reviewed api.Review   // what it was before it was taken back
	unseen   bool         // it changed more than its open question shows
	tally    tally
}

// shown is a program start that was approved, as far as a second one is the same:
// in another folder or environment the same words do something else.
type shown struct {
	digest   [32]byte // of path, arguments and environment
	cwd      string
	contents [32]byte // of all files behind it, by identity too
}

func (s shown) is(e *judge.Exec) bool {
	return s.digest == e.Digest && s.cwd == e.Cwd && s.contents == e.Cover()
}

func shownOf(e *judge.Exec) shown { return shown{e.Digest, e.Cwd, e.Contents()} }

// joinTime is how long a held action waits for the rest of its job. A shell
// forks the members of a pipeline one after the other.
const joinTime = 50 * time.Millisecond

// onExec is a program that wants to start.
func (s *Session) onExec(x *judge.Exec) {
	if p := s.procs[procOf(x)]; p != nil && p.next.Names(x) {
		chain := p.next
		s.aside(func() func() {
			goesOn := s.judge.Continues(chain, x)
			return func() {
				if x.Valid() { // its process lives
					s.place(x, goesOn && p.next == chain)
				}
			}
		})
		return
	}
	s.place(x, false)
}

// place finds out whose an exec is, and goes on with it as such. In a chain it
// is the interpreter that the agent's script starts.
func (s *Session) place(x *judge.Exec, inChain bool) {
	if s.life.now >= phaseStopping {
		x.Deny("the session is ending")
		return
	}
	p, k, doubt := s.belongs(x)
	covered := k != nil && k.action.agent == nil
	profile := s.profile
	switch {
	case covered:
		profile = k.action.profile
	case p != nil && p.profile != nil:
		profile = p.profile
	}
	if x.Profile != profile { // another agent's
		s.aside(func() func() {
			again := s.judge.Exec(x.Exec, profile)
			return func() {
				if x.Valid() { // its process lives
					s.place(again, inChain)
				}
			}
		})
		return
	}
	x = x.Beside(s.upkeep)
	itself := p != nil && p.proc == procOf(x)
	switch {
	case itself && inChain:
		s.goOn(x, p)
	case covered && x.Agent != nil:
		// As npx and other launchers start it. Covered, nothing that it ever does
		// would be judged.
		s.form(x, &action{parent: p, profile: profile, doubt: "an agent within action " + strconv.Itoa(k.action.N) + " is an action of its own"})
	case covered:
		s.nested(k, x)
	case itself && p.agent:
		s.become(x, p)
	default:
		s.arise(x, p, doubt)
	}
}

// arise is an exec by a process that belongs to no action.
func (s *Session) arise(x *judge.Exec, parent *process, doubt string) {
	switch {
	case x.Root:
		s.admit(x, &process{}, "a shell that is fed commands: what it starts is judged")
		return
	case x.Self:
		s.admit(x, selfOf(nil, x), "the agent itself: what it starts is judged")
		return
	case x.Upkeep != nil:
		s.housekeep(x)
		return
	}
	if a := s.job(x, parent); a != nil {
		s.join(a, x)
		return
	}
	s.form(x, &action{parent: parent, profile: x.Profile, doubt: doubt})
}

// form begins an action.
func (s *Session) form(x *judge.Exec, a *action) {
	a.Kind, a.StartedAt = api.KindCommand, time.Now().UTC()
	a.members = []*judge.Exec{x}
	s.forming = append(s.forming, a)
	s.goesOn(a.parent)
	// Changes that the agent made by itself until now become an edit, with a
	// number before this one, and this state is what the action can be
	// rolled back to.
	s.checkpoint(func(cp *files.Checkpoint, err error) {
		if err != nil {
			s.unformed(a)
			return
		}
		s.regard(a, func() { s.formed(a, cp) })
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
	s.aside(func() func() {
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
					a.members[i] = y.Beside(s.upkeep)
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

// unformed lets go of an action that can't be: the session ends.
func (s *Session) unformed(a *action) {
	s.forming = slices.DeleteFunc(s.forming, func(f *action) bool { return f == a })
	for _, e := range a.members {
		e.Deny(whyUnrecorded)
	}
}

// formed gives an action its number and its verdict.
func (s *Session) formed(a *action, cp *files.Checkpoint) {
	if len(a.members) == 0 { // its processes went away meanwhile
		s.forming = slices.DeleteFunc(s.forming, func(f *action) bool { return f == a })
		return
	}
	a.N = len(s.actions) + 1
	s.actions = append(s.actions, a)
	a.Before = cp.ID
	if err := a.to(api.ActionHeld); err != nil {
		s.fail(err)
		return
	}
	s.weighed(a)
}

// weighed gives an action its verdict. One that is asked about waits for others
// that may join it.
func (s *Session) weighed(a *action) {
	if a.State != api.ActionHeld || len(a.members) == 0 { // its processes went away meanwhile
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
		if a.forming == nil {
			a.forming = time.AfterFunc(joinTime, func() { s.submit(func() { s.ask(a) }) })
		} else {
			a.forming.Reset(joinTime)
		}
	}
}

// join adds a member to an action that nobody has seen yet. What joins one that
// runs is shown with it and judged by itself.
func (s *Session) join(a *action, x *judge.Exec) {
	if a.State == api.ActionRunning {
		s.joinRunning(a, x)
		return
	}
	a.add(x)
	if a.forming != nil {
		a.forming.Stop()
		s.regard(a, func() { s.weighed(a) })
	}
}

func (s *Session) joinRunning(a *action, x *judge.Exec) {
	a.seats = append(a.seats, seatOf(x))
	a.commands = append(a.commands, x.Command)
	a.Title = titleOf(a.seats)
	a.leaders++ // it isn't over before this is decided
	a.atExit = nil
	k := s.kinOf(a)
	k.children = x.Judgement.NestedAllowed
	verdict, rule := s.verdict(x)
	if a.into && verdict == api.Allow {
		verdict, rule = api.Ask, "step into: every program of this action is held"
	}
	rule = "it joins action " + strconv.Itoa(a.N) + ", which runs, and is judged by itself: " + rule
	grown := s.actionEvent(a, "counted")
	switch verdict {
	case api.Allow:
		s.start(k, x, rule, true, []api.Event{grown})
	case api.Deny:
		s.refuse(a, x, rule, x.Judgement.Rule)
		s.leaderGone(a, nil)
	default:
		s.askNested(k, x, rule, true, grown)
	}
}

// askNested asks about a program that an action starts, or that joins it.
func (s *Session) askNested(k *kin, x *judge.Exec, rule string, joins bool, also ...api.Event) {
	c := x.Command
	s.open(&question{
		Question: api.Question{Action: k.action.N, Subject: api.SubjectNested, Title: c.Line, Rule: rule, Command: &c},
		execs:    []*judge.Exec{x}, action: k.action, kin: k, joins: joins,
	}, also...)
}

// add puts a member where it stands in its job: a shell forks them in order.
func (a *action) add(x *judge.Exec) {
	a.members = append(a.members, x)
	slices.SortStableFunc(a.members, func(x, y *judge.Exec) int { return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.PID, y.PID)) })
}

// nested is a program that a kin starts.
func (s *Session) nested(k *kin, x *judge.Exec) {
	a, j := k.action, x.Judgement
	a.Execs++
	verdict, rule := api.Allow, "part of action "+strconv.Itoa(a.N)
	switch {
	case j.Verdict == policy.Deny:
		verdict, rule = api.Deny, j.Rule
	case a.into:
		verdict, rule = api.Ask, "step into: every program of this action is held"
	case a.Housekeeping && k.children && x.Writable:
		verdict, rule = api.Ask, "the agent's housekeeping starts a program that the agent can write"
	case a.Housekeeping && k.children && (len(x.Argv) == 0 || !a.upkeep.Starts(x.Program.Path, x.Argv[0])):
		verdict, rule = api.Ask, "the agent's housekeeping starts what it isn't known to start"
	case s.info.Mode == api.ModeWatch || k.children || k.person && !a.fedFromOutside(x):
	case slices.ContainsFunc(a.shown, func(o shown) bool { return o.is(x) }):
	case s.info.Mode == api.ModeStep && k.person:
		verdict, rule = api.Ask, "step mode: it runs what others write to the standard input of action "+strconv.Itoa(a.N)
	case s.info.Mode == api.ModeStep:
		verdict, rule = api.Ask, "step mode: nobody approved what starts this"
	default:
		verdict, rule = api.Verdict(j.Verdict), j.Rule
	}
	switch verdict {
	case api.Allow:
		s.start(k, x, rule, false, nil)
	case api.Deny:
		s.refuse(a, x, rule, rule)
	default:
		s.askNested(k, x, rule, false)
	}
}

// verdict is what the mode makes of the rules' judgement for an action that begins.
func (s *Session) verdict(x *judge.Exec) (api.Verdict, string) {
	j := x.Judgement
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

// weigh puts the judgements of an action's members together; the strictest
// verdict counts.
func (s *Session) weigh(a *action) (api.Verdict, string) {
	a.children = true
	worst, why, again := api.Allow, "", false
	var lines []string
	for i, x := range a.members {
		v, rule := s.verdict(x)
		if i == 0 || policy.Verdict(v).Stricter(policy.Verdict(worst)) {
			worst, why = v, rule
		}
		a.children = a.children && x.Judgement.NestedAllowed
		lines = append(lines, x.Command.Line)
		if x.Agent != nil {
			a.agent = x.Agent
		} else if !a.becomes && a.parent != nil && a.parent.is.Is(x) {
			a.agent, again = a.profile, true
		}
	}
	a.Title = strings.Join(lines, " | ")
	if worst == api.Deny {
		return worst, why
	}
	if again {
		why = "the agent starts itself again, and what that starts is judged as the agent's: " + why
	}
	if a.becomes {
		why = "the agent becomes " + api.Trim(a.members[0].Command.Program, 200) + ", and what that starts is judged as the agent's: " + why
	}
	if a.doubt != "" {
		why = a.doubt + ": " + why
	}
	return worst, why
}

// actionEvent is the event that says how an action stands.
func (s *Session) actionEvent(a *action, kind string) api.Event {
	if !a.EndedAt.IsZero() {
		s.files.Bump() // the checkpoints that its changes lie between may be others now
	}
	s.sum(a)
	copied := a.Action
	return api.Event{Kind: "action." + kind, Action: &copied}
}
