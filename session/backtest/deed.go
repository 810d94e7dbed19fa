package backtest

import (
	"time"

	"stepbox/policy"
	"stepbox/session/api"
)

// Kind is what a deed is.
type Kind string

const (
	Began     Kind = "command"    // a program, or those of one job, that begin an action
	Joined    Kind = "joined"     // one that joins an action which runs
	Nested    Kind = "nested"     // one that an action starts
	Connected Kind = "connection" // a connection that was tried
	Edited    Kind = "edit"       // files that an agent changed by itself: no rule is about them
	Asked     Kind = "question"   // a question was opened; what it was about follows once it is decided
)

// Deed is one thing that an agent did, or was about to do, and that was judged.
type Deed struct {
	Session *api.Session // as it stood then: its mode and the rules made in it
	Seq     uint64       // of the event that has it
	At      time.Time
	Kind    Kind
	Action  int    // 0: none
	Title   string // escaped

	Starts  []Start            // of commands; several are one job
	To      policy.Destination // of connections
	Program string             // that connects
	Pid     int                // that connects

	About api.Subject // of questions

	// Upkeep says that it belongs to the agent's own housekeeping.
	Upkeep bool
	// Question is the one that was asked about it; 0: none was.
	Question int64
	// Flood says that it was asked about together with all that its program tried.
	Flood bool
	// Answer is a person's, one by making a rule included, and By what they called themselves; "" where nobody answered.
	Answer api.Answer
	By     string
	With   int64 // the question whose answer it is, too; 0: it is its own
	// Verdict is what became of it: allow or deny; ask: it waited, and nobody said.
	Verdict api.Verdict
	Rule    string // in words, as it was said then
}

// Denied says whether a person refused it.
func (d *Deed) Denied() bool { return d.Answer == api.AnswerDeny }

// Approved says whether a person let it pass.
func (d *Deed) Approved() bool { return d.Answer != "" && !d.Denied() }

// Start is a program start as it is recorded.
type Start struct {
	Argv    []string // escaped
	Cwd     string
	Program string
	// Basis is what it was judged on besides; nil where that wasn't recorded.
	Basis *api.Basis

	profile *policy.Profile // of the agent whose it is
}

func startOf(x *api.Exec, p *policy.Profile) Start {
	return Start{Argv: x.Argv, Cwd: x.Cwd, Program: x.Program, Basis: x.Basis, profile: p}
}

// shownStarts are the starts that a question was about, for those that never came to be.
func shownStarts(c *api.Command, p *policy.Profile) (out []Start) {
	for _, c := range c.All() {
		s := Start{Argv: c.Argv, Cwd: c.Cwd, Program: c.Program, profile: p}
		if !c.Unclear || c.Truncated {
			s.Basis = &api.Basis{Cut: c.Truncated}
		}
		out = append(out, s)
	}
	return out
}
