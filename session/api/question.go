package api

import (
	"cmp"
	"time"
)

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
	// SubjectConnection is connections of one program to one destination, or many
	// destinations at once.
	SubjectConnection Subject = "connection"
	// SubjectLimit is an action that has used all that it may, and stands still: approve
	// lets it use as much once more, deny ends it.
	SubjectLimit Subject = "limit"
	// SubjectRequest is something that a program in the sandbox wants of the person's, as
	// the use of a key, and that is neither a program nor a connection.
	SubjectRequest Subject = "request"
	// SubjectCall is what the agent itself asks: whether it may call a tool, as its own
	// prompt would, or a question in words. The answer is told to the agent, with its
	// reason, and lets nothing run.
	SubjectCall Subject = "call"
)

// Question is something held. It stands until it is answered once, or until
// what it asks about went away.
type Question struct {
	ID      int64   `json:"id"`     // counts up in the session
	Action  int     `json:"action"` // the action it belongs to
	Subject Subject `json:"subject"`
	Title   string  `json:"title"`
	Hash    string  `json:"hash"` // of all that a decision covers, exact bytes included; a decision must name it
	// Same is the like of Hash without what each question has of its own, as its process, or each
	// sandbox, as its devices; "" is of one that has no equals.
	Same    string    `json:"same,omitempty"`
	Rule    string    `json:"rule"` // why it is asked
	HeldAt  time.Time `json:"held_at"`
	Command *Command  `json:"command,omitempty"` // for commands and nested ones
	Changes []Change  `json:"changes,omitempty"` // for edits
	// Connection is for connections. It may move on (tries, who waits) while the
	// question stands; the Hash doesn't cover that.
	Connection *Connection `json:"connection,omitempty"`
	Request    *Request    `json:"request,omitempty"` // for requests
	// Offer is set when the same was answered the same several times, each time for once:
	// one answer can hold for longer. It may come while the question stands; the Hash
	// doesn't cover it.
	Offer *Offer `json:"offer,omitempty"`
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

// Apart says whether it is about something beside the actions, whatever action it
// belongs to.
func (q Question) Apart() bool { return q.Connection != nil || q.Request != nil }

// Command is what a person needs to see to judge a program before it runs.
type Command struct {
	Line      string    `json:"line"`                // as a person would write it, wrappers peeled off, whole
	Argv      []string  `json:"argv"`                // what is really executed, each escaped
	Truncated bool      `json:"truncated,omitempty"` // Argv or Env are too large to be shown whole
	Unclear   bool      `json:"unclear,omitempty"`   // Argv, Cwd, Program or Env have what is shown as escapes; else a backslash is one
	Clear     bool      `json:"clear,omitempty"`     // although Unclear: what a person is shown at first has no escapes, for a wrapper's aren't shown and line breaks are marked
	Script    string    `json:"script,omitempty"`    // Line with each line break as Break; "": there is none, nor what looks like one
	Parts     []Part    `json:"parts,omitempty"`     // simple commands in Line, each with its own verdict
	Cwd       string    `json:"cwd"`                 // in the sandbox
	Program   string    `json:"program"`             // resolved path of the file that will run
	Written   bool      `json:"written,omitempty"`   // this session wrote that file
	Sends     []string  `json:"sends,omitempty"`     // what it would send out, and to where, as far as the project's files tell
	Uncounted string    `json:"uncounted,omitempty"` // why no rule that allows counts for it; "": they do
	Sources   []string  `json:"sources,omitempty"`   // files sourced by a wrapper that the agent can write
	Unpinned  []string  `json:"unpinned,omitempty"`  // what may be another when it runs than when it was shown, in sentences
	Env       []string  `json:"env,omitempty"`       // variables that differ from the session's, NAME=value
	EnvUsual  []string  `json:"env_usual,omitempty"` // further ones, that a person has approved a command with, or that only say where it runs
	LastTime  string    `json:"last_time,omitempty"` // what the last action with this line did
	Pid       int       `json:"pid"`                 // on the host
	Before    int64     `json:"before,omitempty"`    // checkpoint it can be rolled back to
	Pipeline  []Command `json:"pipeline,omitempty"`  // others that start with it as one job; the decision covers them
	Itself    bool      `json:"itself,omitempty"`    // the agent's own program started it, and it is no shell
	Parents   []string  `json:"parents,omitempty"`   // names of the processes above it, nearest first
}

// Connection is what a person needs to see to judge a connection before it opens.
type Connection struct {
	Host     string    `json:"host"`              // the name, or the address; "" for many
	Port     int       `json:"port,omitempty"`    // 0: the protocol has none
	Protocol string    `json:"protocol"`          // tcp, udp, icmp
	Rule     string    `json:"rule"`              // exactly this destination, as a rule has it: HOST[:PORT][/PROTOCOL]
	Program  string    `json:"program"`           // path of what connects; "" isn't known
	Written  bool      `json:"written,omitempty"` // this session wrote that file
	Sends    []string  `json:"sends,omitempty"`   // what the command that it is of was seen to send, and to where, see Command
	Pid      int       `json:"pid,omitempty"`     // on the host, of the newest try
	Tries    int       `json:"tries"`             // so far
	Waiting  int       `json:"waiting"`           // programs that wait now; 0: they gave up, and the answer serves the next try
	LastTry  time.Time `json:"last_try"`
	LastTime string    `json:"last_time,omitempty"` // what became of the last connection there
	// Limit is what is used up, in words, when the question is whether as much may be
	// used once more: by what is above and others, those that are open included.
	Limit string `json:"limit,omitempty"`
	// Many lists destinations beyond those that are asked about one by one, as rules
	// have them; they can be denied together, or be allowed by rules.
	Many []string `json:"many,omitempty"`
}

// Sent is what a connection's command was seen to send; nil for none.
func (c *Connection) Sent() []string {
	if c == nil {
		return nil
	}
	return c.Sends
}

// Request is what a person needs to see to judge a request.
type Request struct {
	Facts   []Fact   `json:"facts"`           // what a decision covers, the most telling first
	Warn    []string `json:"warn,omitempty"`  // what speaks against it, in sentences
	Lasts   bool     `json:"lasts,omitempty"` // the answer can hold for the session: it is known well enough what it is for
	Program string   `json:"program"`         // path of what asks; "" isn't known
	Pid     int      `json:"pid,omitempty"`   // on the host
}

// Fact is one thing that is known of something.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Title is the command as a person is shown it: its line, with line breaks that can be
// told from what was typed.
func (c *Command) Title() string { return cmp.Or(c.Script, c.Line) }

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
	AnswerStepOver    Answer = "over"     // let it run, hold the next action; of a nested program, let its action start what it likes
	AnswerKeep        Answer = "keep"     // an edit: keep it
	AnswerRollback    Answer = "rollback" // an edit: roll it back
)

// Decision answers a question. It is refused unless the question is open and
// its hash is the one that was shown.
type Decision struct {
	Question int64  `json:"question"`
	Hash     string `json:"hash"`
	Answer   Answer `json:"answer"`
	// With is another question whose answer this is, too: who answers several that read the
	// same decides once.
	With int64 `json:"with,omitempty"`
	// For is how long the answer holds. But for once it is made a rule, which approve,
	// approve-keep and deny can be.
	For Extent `json:"for,omitempty"`
	// Pattern is the commands or destinations that such a rule is for, see Proposal; ""
	// is exactly what was asked about.
	Pattern string    `json:"pattern,omitempty"`
	Reason  string    `json:"reason,omitempty"` // handed to the agent with a denial; one line, at most 500 bytes
	By      string    `json:"by,omitempty"`     // names the client: "tui", "cli", …
	At      time.Time `json:"at,omitzero"`      // set by the supervisor
	Action  int       `json:"action,omitempty"` // set by the supervisor
}

// Extent is for how long an answer holds.
type Extent string

const (
	// ExtentOnce is for what waits, for what the same action tries again while it runs,
	// and for ten minutes where no action does. It is what "" means.
	ExtentOnce    Extent = "once"
	ExtentSession Extent = "session" // a rule of this session, also when it is resumed
	ExtentProject Extent = "project" // a rule in the project's policy
	ExtentAlways  Extent = "always"  // a rule in the person's own
)

// Valid says whether it is one of them.
func (s Extent) Valid() bool {
	return s == "" || s == ExtentOnce || s == ExtentSession || s == ExtentProject || s == ExtentAlways
}

// Rule is one that a person made in a session, on commands or on connections.
type Rule struct {
	Verdict Verdict   `json:"verdict"`           // allow, deny or ask
	Command string    `json:"command,omitempty"` // words of a rule on commands
	Host    string    `json:"host,omitempty"`    // HOST[:PORT[-PORT]][/PROTOCOL]
	Why     string    `json:"why,omitempty"`     // as a policy's rules have it: one line
	Itself  string    `json:"itself,omitempty"`  // path of the program that it is about, where the agent's own program starts that itself, in step mode; see Command
	For     Extent    `json:"for,omitempty"`     // session, project or always
	By      string    `json:"by,omitempty"`      // names the client
	At      time.Time `json:"at,omitzero"`       // set by the supervisor
}

// Kept says whether the rule is in a file, and not in the session.
func (r Rule) Kept() bool { return r.For == ExtentProject || r.For == ExtentAlways }

// Words is what the rule says, in words.
func (r Rule) Words() string {
	words := Escape(string(r.Verdict) + " " + r.Command + r.Host)
	if r.Itself != "" {
		words += " of the agent's own"
	}
	return words
}

// Same says whether two rules are about the same, whatever they say of it.
func (r Rule) Same(o Rule) bool { return r.Command == o.Command && r.Host == o.Host }

// Proposal is a rule that the answer to a question may be made, see Decision.Pattern.
type Proposal struct {
	Pattern  string   `json:"pattern"`            // as a rule has it: words of a command, or HOST[:PORT][/PROTOCOL]
	Means    string   `json:"means"`              // what it covers, in words
	Matched  int      `json:"matched"`            // past actions, or attempts, of this folder's sessions that it covers
	Denied   int      `json:"denied,omitempty"`   // of those, what a person denied
	Examples []string `json:"examples,omitempty"` // the newest different ones, at most 5
	Once     []string `json:"once,omitempty"`     // other commands of the question, which answering it so approves once
	Waiting  []int64  `json:"waiting,omitempty"`  // other questions that wait, which it would answer
}

// Offer is a rule that a question proposes by itself.
type Offer struct {
	Answer  Answer `json:"answer"`            // that was given: approve or deny
	Times   int    `json:"times"`             // so often, in sessions of this folder
	Pattern string `json:"pattern,omitempty"` // see Decision; "": exactly what is asked about
	Means   string `json:"means"`             // what that covers, in words
}
