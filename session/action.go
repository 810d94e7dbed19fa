package session

import (
	"slices"
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
	kins     []*kin          // that may have processes
	leaders  int             // those that it waits for
	shown    []shown         // what a person saw and approved
	children bool            // a rule allows what it starts
	itself   bool            // the agent's own program started it, and not a shell
	launched bool            // the agent's launcher started it as the agent
	reached  bool            // it tried to connect
	person   bool            // a person approved it
	into     bool            // hold each program that it starts
	over     bool            // the person lets it start what it likes
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
	untold   bool         // it has ended, and what it changed is being found out: nobody is told before
	proc     proc         // where it formed
	beside   bool         // another has begun since
	lingers  bool         // its leader is gone, but not all that it started
	undone   bool         // a roll back killed all of it
	spans    []files.Span // between which its changes were made
	alone    []files.Span // of them those that aren't another's as well
	answered time.Time    // when what it waited for last was answered
	toldTo   int64        // the last checkpoint whose changes are counted
	tells    int64        // the last one whose changes are counted or about to be, for a person who may keep them
	moves    []move       // in which it alone was taken back, or came again
	unseen   bool         // it changed more than its open question shows
	tally    tally
	used     used // of its limits
}

// move is a checkpoint at which an action's changes, and not those of later ones,
// were taken out, or put in again.
type move struct {
	at  int64
	out bool
}

// shown is a program start that was approved, as far as a second one is the same:
// in another folder or environment the same words do something else.
type shown struct {
	exec     *gate.Exec
	digest   [32]byte // of path, arguments and environment
	cwd      string
	contents [32]byte // of all files behind it, by identity too
}

func (s shown) is(e *judge.Exec) bool {
	return s.digest == e.Digest && s.cwd == e.Cwd && s.contents == e.Cover()
}

// approved says whether this start of a program was approved within the action.
func (a *action) approved(x *judge.Exec) bool {
	return slices.ContainsFunc(a.shown, func(o shown) bool { return o.exec == x.Exec })
}

// again says whether the same was.
func (a *action) again(x *judge.Exec) bool {
	return slices.ContainsFunc(a.shown, func(o shown) bool { return o.is(x) })
}

func shownOf(e *judge.Exec) shown { return shown{e.Exec, e.Digest, e.Cwd, e.Contents()} }

// joinTime is how long a held action waits for the rest of its job. A shell
// forks the members of a pipeline one after the other.
const joinTime = 50 * time.Millisecond

// apart says whether an action is none of a person's: housekeeping, or an agent
// of its own. It owns no changes and isn't rolled back.
func (a *action) apart() bool { return a.Housekeeping || a.agent != nil }

// alive says whether an action is a command that can make changes.
func (a *action) alive() bool {
	return a.Kind == api.KindCommand && !a.apart() && (a.State == api.ActionRunning || a.lingers)
}

// seat is where a program that started an action stands in its job.
type seat struct {
	proc
	pgid          int
	stdin, stdout uint64 // inodes of the pipes that they are, else 0
	line          string
}

func seatOf(x *judge.Exec) seat {
	return seat{proc: procOf(x), pgid: x.PGID, stdin: x.Stdin, stdout: x.Stdout, line: x.Command.Line}
}

// sit gives an exec its seat. Programs that nobody holds come in any order; a shell
// forks them in that of the line, and says of the last one how the line ended.
func (a *action) sit(x *judge.Exec) {
	a.seats = append(a.seats, seatOf(x))
	slices.SortStableFunc(a.seats, func(m, n seat) int { return m.forked(n.proc) })
}

// maxSeats bounds a job: what joins one that is full is an action of its own.
const maxSeats = 16

// titleOf is an action's, of all that stand in its job.
func titleOf(seats []seat) string {
	var lines []string
	for _, m := range seats {
		lines = append(lines, m.line)
	}
	return strings.Join(lines, " | ")
}

// verdictOf is what the mode makes of the rules' judgement for an action that
// begins. Hold says that the next action is held whatever the mode.
func verdictOf(x *judge.Exec, mode api.Mode, hold bool) (api.Verdict, string) {
	j := x.Judgement
	switch {
	case j.Verdict == policy.Deny:
		return api.Deny, api.Escape(j.Denial())
	case hold:
		return api.Ask, "step over: hold the next action"
	case mode == api.ModeStep:
		return api.Ask, "step mode holds every action"
	case mode == api.ModeWatch:
		return api.Allow, api.WatchMode
	}
	return api.Verdict(j.Verdict), j.Rule
}

// weigh puts the judgements of an action's members together; the strictest
// verdict counts.
func (a *action) weigh(mode api.Mode, hold bool) (api.Verdict, string) {
	a.children = true
	worst, why, again := api.Allow, "", false
	var lines []string
	for i, x := range a.members {
		v, rule := verdictOf(x, mode, hold)
		if i == 0 || policy.Verdict(v).Stricter(policy.Verdict(worst)) {
			worst, why = v, rule
		}
		a.children = a.children && x.Judgement.NestedAllowed
		lines = append(lines, x.Command.Title())
		if x.Agent != nil {
			a.agent = x.Agent
		} else if !a.becomes && a.parent != nil && (a.launched || a.parent.is.Is(x)) {
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

// standing is the event that says how an action stands; none as long as it has ended
// untold, since its end will say all of it.
func (s *Session) standing(a *action, kind string) []api.Event {
	if a.untold {
		return nil
	}
	return []api.Event{s.actionEvent(a, kind)}
}

// actionEvent is the event that says how an action stands.
func (s *Session) actionEvent(a *action, kind string) api.Event {
	if !a.EndedAt.IsZero() {
		s.files.Bump() // the checkpoints that its changes lie between may be others now
	}
	s.actions.noted(a)
	s.sum(a)
	copied := a.Action
	for _, span := range a.spans {
		copied.Spans = append(copied.Spans, api.Span(span))
	}
	return api.Event{Kind: "action." + kind, Action: &copied}
}
