package api

import "time"

// Verdict is what was said of a command or a connection.
type Verdict string

const (
	Allow Verdict = "allow"
	Deny  Verdict = "deny"
	Ask   Verdict = "ask"
)

// Subject is what a question is about.
type Subject string

const (
	SubjectCommand Subject = "command" // the first program of an action
	SubjectNested  Subject = "nested"  // a program that a released action starts
	SubjectEdit    Subject = "edit"    // changes to be kept or rolled back before the agent's next command
)

// Question is something held. It stands until it is answered once, or until
// what it asks about went away.
type Question struct {
	ID      int64     `json:"id"`     // counts up in the session
	Action  int       `json:"action"` // the action it belongs to
	Subject Subject   `json:"subject"`
	Title   string    `json:"title"`
	Hash    string    `json:"hash"` // of all that a decision covers, exact bytes included; a decision must name it
	Rule    string    `json:"rule"` // why it is asked
	HeldAt  time.Time `json:"held_at"`
	Command *Command  `json:"command,omitempty"` // for commands and nested ones
	Changes []Change  `json:"changes,omitempty"` // for edits
	// Answering names who answers while that is carried out, as a roll back
	// is; it may still fail, and then the question stands again.
	Answering string `json:"answering,omitempty"`
	// Closed is set once it can no longer be answered: "allow", "deny",
	// "keep", "rollback" or "withdrawn".
	Closed   string `json:"closed,omitempty"`
	ClosedBy string `json:"closed_by,omitempty"` // what the one who answered called itself
}

// Open says whether the question waits for an answer.
func (q Question) Open() bool { return q.Closed == "" }

// Command is what a person needs to see to judge a program before it runs.
type Command struct {
	Line      string    `json:"line"`                // as a person would write it, wrappers peeled off, whole
	Argv      []string  `json:"argv"`                // what is really executed, each escaped
	Truncated bool      `json:"truncated,omitempty"` // Argv or Env are too large to be shown whole
	Unclear   bool      `json:"unclear,omitempty"`   // Argv, Cwd, Program or Env have what is shown as escapes; else a backslash is one
	Parts     []Part    `json:"parts,omitempty"`     // simple commands in Line, each with its own verdict
	Cwd       string    `json:"cwd"`                 // in the sandbox
	Program   string    `json:"program"`             // resolved path of the file that will run
	Written   bool      `json:"written,omitempty"`   // this session wrote that file
	Sources   []string  `json:"sources,omitempty"`   // files sourced by a wrapper that the agent can write
	Unpinned  []string  `json:"unpinned,omitempty"`  // what may be another when it runs than when it was shown, in sentences
	Env       []string  `json:"env,omitempty"`       // variables that differ from the session's, NAME=value
	LastTime  string    `json:"last_time,omitempty"` // what the last action with this line did
	Pid       int       `json:"pid"`                 // on the host
	Before    int64     `json:"before,omitempty"`    // checkpoint it can be rolled back to
	Pipeline  []Command `json:"pipeline,omitempty"`  // others that start with it as one job; the decision covers them
	Parents   []string  `json:"parents,omitempty"`   // names of the processes above it, nearest first
}

// All lists a command and those that start with it, which a decision covers all.
func (c *Command) All() []*Command {
	out := []*Command{c}
	for i := range c.Pipeline {
		out = append(out, &c.Pipeline[i])
	}
	return out
}

// Part is one simple command of a line.
type Part struct {
	Text    string  `json:"text"`
	Verdict Verdict `json:"verdict"`
	Rule    string  `json:"rule"`
}

// Answer is a person's word on a Question.
type Answer string

const (
	AnswerApprove Answer = "approve" // let it run
	// AnswerApproveKeep lets it run and keeps what it changes, unread. What
	// the person's own programs trust, as a repository's hooks, is asked about.
	AnswerApproveKeep Answer = "approve-keep"
	AnswerDeny        Answer = "deny"     // it seems to run, prints the reason and exits with 126
	AnswerStepInto    Answer = "into"     // let it run, hold each program that it starts
	AnswerStepOver    Answer = "over"     // let it run, hold the next action
	AnswerKeep        Answer = "keep"     // an edit: keep it
	AnswerRollback    Answer = "rollback" // an edit: roll it back
)

// Decision answers a question. It is refused unless the question is open and
// its hash is the one that was shown.
type Decision struct {
	Question int64     `json:"question"`
	Hash     string    `json:"hash"`
	Answer   Answer    `json:"answer"`
	Reason   string    `json:"reason,omitempty"` // handed to the agent with a denial; one line, at most 500 bytes
	By       string    `json:"by,omitempty"`     // names the client: "tui", "cli", …
	At       time.Time `json:"at,omitzero"`      // set by the supervisor
	Action   int       `json:"action,omitempty"` // set by the supervisor
}
