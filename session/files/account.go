package files

import (
	"path"
	"slices"
	"strings"
	"time"

	"stepbox/runner"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
)

// Whose a change is. The kernel doesn't say who wrote a file, but a process that
// ran nothing since the last checkpoint can't have written since. So what the
// processes had run is noted with each checkpoint, and compared:
//
//   - nothing ran but commands and what they left running: the change is theirs;
//   - they ran nothing: it is the agent's own, an edit;
//   - both ran: a command that runs for less than absorbTime, not counting what it
//     waited for an answer before, or that ends right now, is the likely writer and gets it, since its changes are reviewed at its
//     end, soon. Else the change is an edit, which is asked about and reviewed,
//     and says with whom it is shared. It is an edit too when something was started
//     since, as beside a tool server.
//
// What the agent's own program starts by itself, as to look at the project with git, comes after what its shell starts.
//
// So an edit by the agent is never absorbed by something that was approved
// before and lives on. Where edits are asked about, a command takes what the agent may have made
// only as it ends, and then no rule keeps it: until then it is nobody's, and an edit as soon as the command has run for
// that long or another begins.

// absorbTime is how long a command that runs takes changes that could as well be
// the agent's own.
const absorbTime = time.Minute

// Agent stands for the agent where an action's number is meant.
const Agent = 0

// Proc names one process for good: a number alone is used again.
type Proc struct {
	PID   int
	Start uint64 // clock ticks since boot, proc(5)
}

// Command is an action that can make changes: one that runs, or that left
// something running.
type Command struct {
	N        int
	Runs     bool      // and what it changed until its end isn't in a checkpoint yet
	Ending   bool      // its last process is about to end
	Itself   bool      // the agent's own program started it, and not a shell, as to look at the project
	Beside   bool      // another command has begun since
	Released time.Time // when it was let run, or to go on after a question
}

// takes says whether a command takes changes that could be the agent's own.
func (c *Command) takes(now time.Time) bool {
	return c.Runs && (c.Ending || c.Young(now))
}

// Young says whether a command runs that was let run, or to go on, not long ago.
func (c *Command) Young(now time.Time) bool { return c.Runs && now.Sub(c.Released) < absorbTime }

// Owner says whose a process is: the number of a command, or Agent. Of one that is held until it
// becomes a program of the command's, became says whether it has, by now: the agent's code runs there else,
// as where the kernel refused it. It is nil of others.
type Owner func(p runner.Activity) (n int, became func() bool)

// Accountant says who can have made the changes since the last checkpoint. The
// session's loop owns it.
type Accountant struct {
	began *glance // when the changes began that aren't accounted for; nil: not known
}

// glance is what the processes of the sandbox had run at a moment, and whose they
// were.
type glance struct {
	list   []runner.Activity
	owners []whose
}

// whose says so of a process.
type whose struct {
	n      int // of the action
	became func() bool
}

// Ran says who can have run since the changes began until a look; nil means
// anyone, as when there was no look. Froze is Taken's.
func (a *Accountant) Ran(until []runner.Activity, froze bool, of Owner) map[int]bool {
	who := ran(a.began, look(until, of))
	if who != nil && froze {
		who[Agent] = true
	}
	return who
}

// Begin notes a look after which the next changes begin; nil is none.
func (a *Accountant) Begin(since []runner.Activity, of Owner) {
	a.began = look(since, of)
}

// Left counts the processes of each action at the last look; false without one.
func (a *Accountant) Left() (map[int]int, bool) {
	if a.began == nil {
		return nil, false
	}
	left := make(map[int]int)
	for _, o := range a.began.owners {
		left[o.n]++
	}
	return left, true
}

func procOf(p runner.Activity) Proc { return Proc{p.PID, p.Start} }

// look says whose each process is; nil without a look.
func look(list []runner.Activity, of Owner) *glance {
	if list == nil {
		return nil
	}
	g := &glance{list, make([]whose, len(list))}
	for i, p := range list {
		g.owners[i].n, g.owners[i].became = of(p)
	}
	return g
}

// ran says who can have run between two looks; nil means everyone.
func ran(began, now *glance) map[int]bool {
	if began == nil || now == nil {
		return nil
	}
	who := make(map[int]bool)
	index := make(map[Proc]int, len(now.list))
	for i, p := range now.list {
		index[procOf(p)] = i
	}
	for i, b := range began.list {
		j, lives := index[procOf(b)]
		if lives && now.list[j].Still(b, false) {
			delete(index, procOf(b))
		} else {
			o := began.owners[i]
			who[o.n] = true // and the one that it may have become another's
			if o.became != nil && !o.became() {
				who[Agent] = true
			}
		}
	}
	for _, j := range index { // those that ran, or are new
		who[now.owners[j].n] = true
	}
	return who
}

// asleep is a look while all are frozen, in which those that had to run only to be
// frozen are as they were right before.
func asleep(before, frozen []runner.Activity) []runner.Activity {
	were := make(map[Proc]runner.Activity, len(before))
	for _, b := range before {
		were[procOf(b)] = b
	}
	for i, p := range frozen {
		if b, lived := were[procOf(p)]; lived && b.Mark == p.Mark && p.Still(b, true) {
			frozen[i] = b
		}
	}
	return frozen
}

// idle says whether nothing has run from one look to the next.
func idle(before, now []runner.Activity) bool {
	return before != nil && len(before) == len(now) && slices.EqualFunc(before, now, func(b, n runner.Activity) bool {
		return b.PID == n.PID && b.Start == n.Start && n.Still(b, false)
	})
}

// Whose says which commands made the changes since the last checkpoint; none
// means that the agent made them by itself, or may have: shared are the commands
// that may have as well. Ran is who can have run; nil for anyone. Strict says that of what the agent may
// have made only a command that ends takes any.
func Whose(alive []Command, ran map[int]bool, now time.Time, strict bool) (theirs, shared []int) {
	var may []int
	waited := false
	for _, c := range alive {
		if ran != nil && !ran[c.N] {
			continue
		}
		may = append(may, c.N)
		if c.takes(now) {
			theirs = append(theirs, c.N)
			waited = waited || c.Ending || !c.Beside && !strict
		}
	}
	if !mayAgent(ran) {
		if len(may) > 0 || len(ran) > 0 { // or what ran isn't among them, and the change is nobody's
			return may, nil
		}
		for _, c := range alive { // nobody ran: a store that the disk got later
			may = append(may, c.N)
		}
		return may, nil
	}
	if waited {
		return byShell(alive, theirs), nil
	}
	return nil, may
}

// byShell are those of some commands that the agent's own program hasn't started by itself; if there are none, all.
func byShell(alive []Command, some []int) []int {
	var out []int
	for _, c := range alive {
		if !c.Itself && slices.Contains(some, c.N) {
			out = append(out, c.N)
		}
	}
	if out == nil {
		return some
	}
	return out
}

// Undecided is for how long it stays open whose the changes are that the agent may have made: a command may end meanwhile
// that takes them. 0: it is known now.
func Undecided(alive []Command, ran map[int]bool, now time.Time) (wait time.Duration) {
	if !mayAgent(ran) {
		return 0
	}
	for _, c := range alive {
		switch {
		case c.Ending:
			return 0
		case c.takes(now) && !c.Beside && (ran == nil || ran[c.N]):
			wait = max(wait, absorbTime-now.Sub(c.Released))
		}
	}
	return wait
}

// mayAgent says whether the agent is among those that can have run.
func mayAgent(ran map[int]bool) bool { return ran == nil || ran[Agent] }

// Halfway says whether all that changed is files that have nothing in them now, or new ones
// that are called as temporary ones are. Many programs write a file beside the one that it
// shall be, and then rename it, and others empty it first: what they do is one change,
// though the machine may take its time in between.
func Halfway(changed []diff.Change) bool {
	return len(changed) > 0 && !slices.ContainsFunc(changed, func(c diff.Change) bool {
		if c.New == nil || c.New.Kind != manifest.KindFile {
			return true
		}
		temporary := c.Status == diff.Added && strings.Contains(strings.ToLower(path.Base(c.Path)), "tmp")
		emptied := c.New.Size == 0 && (c.Status == diff.Added || c.Content)
		return !temporary && !emptied
	})
}
