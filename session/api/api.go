// Package api is what a program may say to Stepbox and what it gets back: the
// resources, the decisions and the event stream of a session, as JSON over
// HTTP on a unix socket, and a client for them.
//
// A supervisor serves its own session under /v1/sessions/{id}; the stepbox
// command serves the same paths for recorded sessions and passes requests for
// a live one on to its supervisor. The same JSON is what the record keeps, so
// a field is never renamed or given another meaning: new ones are added.
//
// Text that came out of the sandbox (commands, paths, names, reasons, titles)
// is hostile. It has been through Escape before it is put into a value of this
// package, so that it is one line of printable characters. Exact bytes are
// covered by a Hash instead.
//
// Values are plain data, safe to copy and to read from several goroutines.
package api

import "time"

// Mode says which actions wait for a person.
type Mode string

const (
	ModeStep   Mode = "step"   // every action that isn't housekeeping is held
	ModePolicy Mode = "policy" // rules decide: allow, ask or deny
	ModeWatch  Mode = "watch"  // all pass, all is recorded
)

// Valid says whether there is such a mode.
func (m Mode) Valid() bool { return m == ModeStep || m == ModePolicy || m == ModeWatch }

// SessionState is where a session is in its life.
type SessionState string

const (
	SessionStarting    SessionState = "starting"
	SessionRunning     SessionState = "running"
	SessionPaused      SessionState = "paused" // every process of the agent is frozen
	SessionEnded       SessionState = "ended"
	SessionInterrupted SessionState = "interrupted" // its supervisor died; the record is intact
)

// Session is one agent run in one sandbox over one project folder.
type Session struct {
	ID          string       `json:"id"`               // random, [a-z2-7]{8}
	Number      int64        `json:"number,omitempty"` // counts up in one store
	Name        string       `json:"name"`
	Agent       string       `json:"agent"`     // the profile's name
	Command     string       `json:"command"`   // what was asked for, escaped
	Workspace   string       `json:"workspace"` // absolute host path, escaped
	Folder      string       `json:"folder"`    // the same, exact
	Mode        Mode         `json:"mode"`
	State       SessionState `json:"state"`
	StartedAt   time.Time    `json:"started_at"`
	EndedAt     time.Time    `json:"ended_at,omitzero"`
	Exit        *Exit        `json:"exit,omitempty"`
	EndedBy     EndedBy      `json:"ended_by,omitempty"` // set as soon as the end begins
	Reason      string       `json:"reason,omitempty"`   // why it was ended, in words, when it wasn't by the agent
	Cols        int          `json:"cols,omitempty"`     // the agent's terminal
	Rows        int          `json:"rows,omitempty"`
	Limits      Limits       `json:"limits"`
	Warnings    []string     `json:"warnings,omitempty"`     // protections that are weaker than usual here, in words
	Hidden      []string     `json:"hidden,omitempty"`       // project files that the agent can't see
	HiddenPaths []string     `json:"hidden_paths,omitempty"` // the same, exact
	Redacted    []string     `json:"redacted,omitempty"`     // project files that the agent sees without their secrets
	Hosts       []string     `json:"hosts,omitempty"`        // hosts that may be dialled, as NAME or NAME:PORT

	// What the project's repository had checked out when the session started;
	// empty without one. Files may have differed from it: of those that the
	// session changed the record has what they were.
	Commit string `json:"commit,omitempty"` // in hexadecimal
	Branch string `json:"branch,omitempty"` // refs/heads/NAME, escaped
	Base   *Base  `json:"base,omitempty"`   // all that it was, once that was looked at

	// Of an interrupted session: a roll back to before this action was under way,
	// so that some files may have gone back and others not; 0: none was.
	CutOff int `json:"cut_off,omitempty"`

	// Counts, for lists.
	Actions    int    `json:"actions"`
	Held       int    `json:"held"`       // open questions
	Unreviewed int    `json:"unreviewed"` // ended actions whose changes were neither kept nor rolled back
	Attempts   int    `json:"attempts"`
	LastAction string `json:"last_action,omitempty"`

	Screen string `json:"screen,omitempty"` // hash of the body that draws the last screen, once it has ended
}

// Base tells what the project folder was when the session started. It is found
// out while the agent runs already.
type Base struct {
	// Kind is what it goes by: "git" for the index of the repository and what
	// differed from that, "names" for the names of all files.
	Kind     string `json:"kind"`
	Hash     string `json:"hash"`             // of the body that has it
	Files    int    `json:"files"`            // paths that it lists
	Complete bool   `json:"complete"`         // all of the project was looked at
	Reason   string `json:"reason,omitempty"` // why not, in words
}

// EndedBy is what brought about a session's end.
type EndedBy string

const (
	ByAgent   EndedBy = "agent"   // it ended by itself
	ByPerson  EndedBy = "person"  // someone killed it
	ByLimit   EndedBy = "limit"   // its time was over
	ByFailure EndedBy = "failure" // Stepbox couldn't go on: nothing runs that can't be supervised and recorded
)

// Live says whether a supervisor owns the session, so that it can be decided on.
func (s Session) Live() bool {
	return s.State == SessionStarting || s.State == SessionRunning || s.State == SessionPaused
}

// Limits are the bounds in force; zero means none.
type Limits struct {
	Source   string        `json:"source"` // what enforces them: "systemd user manager", "cgroup v2", "cgroup v1", "rlimits"
	Memory   int64         `json:"memory,omitempty"`
	CPUs     float64       `json:"cpus,omitempty"`
	Pids     int64         `json:"pids,omitempty"`
	WallTime time.Duration `json:"wall_time,omitempty"` // nanoseconds
}

// Usage is what the agent uses now; it passes by in the event stream and isn't recorded.
type Usage struct {
	CPU    float64 `json:"cpu"`    // of one processor, 1.0 = all of it
	Memory int64   `json:"memory"` // bytes
	Pids   int     `json:"pids"`
}

// Exit is how a process ended: by Code, or by Signal when that isn't empty.
type Exit struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"` // SIGKILL and so on
}

// ActionKind is what an agent did.
type ActionKind string

const (
	KindCommand ActionKind = "command"
	KindEdit    ActionKind = "edit"
)

// ActionState is where an action is in its life. See session's transition table.
type ActionState string

const (
	ActionHeld      ActionState = "held"      // waits for a verdict before it runs
	ActionRunning   ActionState = "running"   // released
	ActionEnded     ActionState = "ended"     // its leader exited
	ActionDenied    ActionState = "denied"    // never ran
	ActionAbandoned ActionState = "abandoned" // its process went away while held
)

// Review is what a person said of an action's changes.
type Review string

const (
	ReviewNone       Review = ""           // nothing changed, or it hasn't ended
	ReviewOpen       Review = "unreviewed" // changes wait to be kept or rolled back
	ReviewKept       Review = "kept"
	ReviewRolledBack Review = "rolled back"
)

// Action is one thing the agent did that a person may judge.
type Action struct {
	N            int         `json:"n"` // counts up in the session from 1; housekeeping counts too
	Kind         ActionKind  `json:"kind"`
	State        ActionState `json:"state"`
	Review       Review      `json:"review,omitempty"`
	Title        string      `json:"title"`                  // the command as a person would write it, or what was edited
	Housekeeping bool        `json:"housekeeping,omitempty"` // the agent's own upkeep, folded away
	Verdict      Verdict     `json:"verdict,omitempty"`
	Rule         string      `json:"rule,omitempty"` // what gave the verdict, or asked
	By           string      `json:"by,omitempty"`   // who decided: "rule", or what the client called itself
	Reason       string      `json:"reason,omitempty"`
	StartedAt    time.Time   `json:"started_at"` // when it was first seen
	ReleasedAt   time.Time   `json:"released_at,omitzero"`
	EndedAt      time.Time   `json:"ended_at,omitzero"`
	Exit         *Exit       `json:"exit,omitempty"`
	Execs        int         `json:"execs,omitempty"`
	LeftRunning  int         `json:"left_running,omitempty"` // descendants that outlived the leader
	Files        int         `json:"files,omitempty"`        // changed by it
	Kept         string      `json:"kept,omitempty"`         // why its changes were kept without a question
	Added        int         `json:"added,omitempty"`        // lines
	Removed      int         `json:"removed,omitempty"`
	Shared       bool        `json:"shared,omitempty"`      // others ran meanwhile, so some changes may be theirs
	SharedWith   []int       `json:"shared_with,omitempty"` // of an edit: the actions that may have made some of it
	Before       int64       `json:"before,omitempty"`      // checkpoint it can be rolled back to
	After        int64       `json:"after,omitempty"`       // checkpoint at its end
}

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

// Exec is one program start.
type Exec struct {
	ID      int64     `json:"id"`
	Action  int       `json:"action,omitempty"` // 0: a root, like the agent itself
	Pid     int       `json:"pid"`              // on the host
	Parent  int       `json:"parent"`
	Argv    []string  `json:"argv"` // escaped; bounded
	Program string    `json:"program"`
	Cwd     string    `json:"cwd"`
	Verdict Verdict   `json:"verdict"`
	Rule    string    `json:"rule,omitempty"`
	At      time.Time `json:"at"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	Exit    *Exit     `json:"exit,omitempty"`
	Failure string    `json:"failure,omitempty"` // why it didn't run: not found, killed because the image changed, …
}

// Attempt is one network connection or datagram flow that the agent tried.
type Attempt struct {
	ID       int64         `json:"id"`
	At       time.Time     `json:"at"`
	Action   int           `json:"action,omitempty"`
	Pid      int           `json:"pid,omitempty"`
	Program  string        `json:"program,omitempty"`
	Protocol string        `json:"protocol"`       // tcp, udp, dns, icmp, multicast, …
	Name     string        `json:"name,omitempty"` // the host name that was asked for
	Address  string        `json:"address"`        // what the program connected to (synthetic when there is a name)
	Port     int           `json:"port,omitempty"`
	Resolved string        `json:"resolved,omitempty"` // what was really dialled
	Verdict  Verdict       `json:"verdict"`
	Rule     string        `json:"rule"`
	Sent     int64         `json:"sent"`     // bytes out of the sandbox
	Received int64         `json:"received"` // bytes into it
	Duration time.Duration `json:"duration"` // nanoseconds
	Open     bool          `json:"open"`
	Failure  string        `json:"failure,omitempty"` // why an allowed one didn't connect, or a refused one's guard
}

// Checkpoint is the state of the session's files at a moment.
type Checkpoint struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	Action int       `json:"action,omitempty"` // it has that action's changes alone, on top of its Before; 0: the state of all files
	Root   string    `json:"root"`             // hash of the manifest
	Files  int       `json:"files"`            // entries in the manifest
	Bytes  int64     `json:"bytes"`
}

// Change is one path that differs between two states of the files.
type Change struct {
	Path    string `json:"path"`            // relative to the project, escaped
	Key     string `json:"key"`             // names the path in requests, whatever its bytes are
	Status  string `json:"status"`          // A, M, D, R, T (type) as git uses them
	From    string `json:"from,omitempty"`  // the old path of a rename
	Kind    string `json:"kind"`            // file, dir, symlink, fifo, socket
	Words   string `json:"words,omitempty"` // mode and symlink changes, said in words
	Binary  bool   `json:"binary,omitempty"`
	OldSize int64  `json:"old_size"`
	NewSize int64  `json:"new_size"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
	Counted bool   `json:"counted"` // whether Added and Removed are known
}

// Page says which part of a list is asked for.
type Page struct {
	After string // the Next of the page before; "" for the first
	Limit int    // at most so many; 0 leaves it to the server
}

// Changes is what differs in a scope.
type Changes struct {
	Version int64    `json:"version"`         // as of when this is; the event stream tells the newest, and what is older is to be fetched again
	Final   bool     `json:"final,omitempty"` // the session has ended: nothing newer will come
	Scope   string   `json:"scope"`           // "session" or "action N"
	Files   []Change `json:"files"`           // by path; one page of them
	More    int      `json:"more,omitempty"`  // changed paths beyond those listed
	Next    string   `json:"next,omitempty"`  // Page.After of the page that follows; "" when there is none
	Total   int      `json:"total"`           // changed paths, on all pages
	Added   int      `json:"added"`           // lines, on all pages
	Removed int      `json:"removed"`
	Apart   []string `json:"apart,omitempty"` // changes outside the project, which can't be rolled back exactly
}

// FileDiff is one file's difference.
type FileDiff struct {
	Change Change `json:"change"`
	Hunks  []Hunk `json:"hunks,omitempty"`
	Note   string `json:"note,omitempty"` // why there are no hunks: binary, too large, too different
}

// Hunk is a run of lines of a unified diff.
type Hunk struct {
	OldLine  int    `json:"old_line"`
	OldCount int    `json:"old_count"`
	NewLine  int    `json:"new_line"`
	NewCount int    `json:"new_count"`
	Section  string `json:"section,omitempty"`
	Lines    []Line `json:"lines"`
}

// Line is one line of a hunk, escaped; tabs are kept.
type Line struct {
	Op   string `json:"op"` // " ", "+" or "-"
	Text string `json:"text"`
}

// RollbackPlan says what going back to just before an action would do.
type RollbackPlan struct {
	ToBefore int       `json:"to_before"`
	Hash     string    `json:"hash"`           // the request to carry it out must name it
	Actions  []int     `json:"actions"`        // whose changes are taken back
	Ends     []int     `json:"ends,omitempty"` // running actions that will be killed first
	Files    []Change  `json:"files"`
	More     int       `json:"more,omitempty"`
	Problems []Trouble `json:"problems,omitempty"` // what can't be put back; all else can
}

// Trouble is a file that can't be put back, and why.
type Trouble struct {
	Path string `json:"path"` // escaped
	Why  string `json:"why"`
}

// Rollback is one that was carried out, or is.
type Rollback struct {
	ID         int64     `json:"id"`
	At         time.Time `json:"at"`
	ToBefore   int       `json:"to_before"`
	Checkpoint int64     `json:"checkpoint"`
	Actions    []int     `json:"actions"`
	Files      int       `json:"files"`
	By         string    `json:"by,omitempty"`
	Failure    string    `json:"failure,omitempty"`
	Failed     []Trouble `json:"failed,omitempty"` // exactly what isn't as it should be
	Open       bool      `json:"open,omitempty"`   // it has begun, and its end isn't recorded

	// What changed after the plan was shown and isn't part of it stays as it is.
	Left     []string `json:"left,omitempty"`      // escaped; the first of them
	LeftMore int      `json:"left_more,omitempty"` // further ones
}

// Note is something Stepbox wants its person to know.
type Note struct {
	ID   int64     `json:"id"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
	Warn bool      `json:"warn,omitempty"`
}

// Event is one thing that happened. Exactly one of the pointers is set, and it
// holds the resource as it is after the event. Events with a Seq are recorded
// before they are sent; those without pass by.
type Event struct {
	Seq        uint64      `json:"seq,omitempty"`
	At         time.Time   `json:"at"`
	Kind       string      `json:"kind"` // session.*, action.*, question.*, decision, exec.*, attempt.*, checkpoint, rollback, note, usage, changes
	Session    *Session    `json:"session,omitempty"`
	Action     *Action     `json:"action,omitempty"`
	Question   *Question   `json:"question,omitempty"`
	Decision   *Decision   `json:"decision,omitempty"`
	Exec       *Exec       `json:"exec,omitempty"`
	Attempt    *Attempt    `json:"attempt,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Rollback   *Rollback   `json:"rollback,omitempty"`
	Note       *Note       `json:"note,omitempty"`
	Usage      *Usage      `json:"usage,omitempty"`   // passing
	Changes    *int64      `json:"changes,omitempty"` // passing: the newest version of Changes
}

// Problem is the body of every answer that isn't a success.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return p.Message }

// Codes of Problem that a caller can act on.
const (
	CodeNotFound = "not_found"
	CodeInvalid  = "invalid"  // the request's own words are off
	CodeDecided  = "decided"  // another client answered first
	CodeStale    = "stale"    // what is held isn't what was shown
	CodeGone     = "gone"     // nothing is held any more
	CodeNotLive  = "not_live" // the session has ended
	CodeBusy     = "busy"     // cannot be done now, but may be later
	CodeInternal = "internal"
)
