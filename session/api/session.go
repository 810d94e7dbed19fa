package api

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Mode says which actions wait for a person.
type Mode string

const (
	ModeStep   Mode = "step"   // every action is held, but for what the person lets the agent's own program start
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
	Stepbox     string       `json:"stepbox,omitempty"` // the Build that runs it, or ran it
	Agent       string       `json:"agent"`             // the profile's name
	Command     string       `json:"command"`           // what was asked for, escaped
	Workspace   string       `json:"workspace"`         // absolute host path, escaped
	Folder      string       `json:"folder"`            // the same, exact
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
	Asking      Asking       `json:"asking,omitzero"`        // what becomes of its questions
	Warnings    []string     `json:"warnings,omitempty"`     // protections that are weaker than usual here, in words
	Hidden      []string     `json:"hidden,omitempty"`       // project files that the agent can't see
	HiddenPaths []string     `json:"hidden_paths,omitempty"` // the same, exact
	Redacted    []string     `json:"redacted,omitempty"`     // project files that the agent sees without their secrets
	Home        HomeKind     `json:"home,omitempty"`         // what home folder the agent has
	Lacks       []string     `json:"lacks,omitempty"`        // variables of the person's that an agent like it would read, and doesn't get
	Asks        []string     `json:"asks,omitempty"`         // arguments that would turn off the agent's own questions, while the person hasn't decided about them
	Brought     *Brought     `json:"brought,omitempty"`      // what came along to it of the person's
	HomeLeft    *HomeLeft    `json:"home_left,omitempty"`    // what it had changed in a home of its own at its end
	Hosts       []string     `json:"hosts,omitempty"`        // hosts that may be dialled, as NAME or NAME:PORT
	Dirs        []Dir        `json:"dirs,omitempty"`         // what it has of the host besides the project and tools
	Ports       []Port       `json:"ports,omitempty"`        // of the agent's servers, that this machine reaches, or did at its end
	Servers     []Server     `json:"servers,omitempty"`      // of the agent's, that this machine could reach: while it runs
	Pages       []WebPage    `json:"pages,omitempty"`        // that it wants opened, the newest last: while it runs
	Caches      []string     `json:"caches,omitempty"`       // the person's build caches that it began with, escaped
	Variables   []string     `json:"variables,omitempty"`    // that the person gave it, NAME=value, secrets as NAME=•••
	Rules       []Rule       `json:"rules,omitempty"`        // that were made in this session, the newest first, those that files keep as well
	Credentials []Credential `json:"credentials,omitempty"`  // that are put into requests, and that the agent never has
	Spend       []Spend      `json:"spend,omitempty"`        // what was spent where those are put in, by host
	Policy      []PolicyFile `json:"policy,omitempty"`       // files with rules that are in force
	Beside      []Neighbour  `json:"beside,omitempty"`       // other live sessions over the same files

	// A session that had ended, or was interrupted, can go on over its files.
	Resumed     int           `json:"resumed,omitempty"` // how often it did
	ResumedAt   time.Time     `json:"resumed_at,omitzero"`
	ResumedWith string        `json:"resumed_with,omitempty"` // the command since then, if it is another than the first
	RanBefore   time.Duration `json:"ran_before,omitempty"`   // how long it had run until then, in nanoseconds
	Printed     int64         `json:"printed,omitempty"`      // bytes of its output that are from before it was last resumed

	// What the project's repository had checked out when the session started;
	// empty without one. Files may have differed from it: of those that the
	// session changed the record has what they were.
	Commit    string `json:"commit,omitempty"`    // in hexadecimal
	Branch    string `json:"branch,omitempty"`    // refs/heads/NAME, escaped
	Git       string `json:"git,omitempty"`       // how the project's git is another than the session's by now, in words
	Unfetched string `json:"unfetched,omitempty"` // commits that only the session has, in words; told when it is over, and not in lists
	Undone    string `json:"undone,omitempty"`    // files that it put back of what it had committed and that the project has, in words; told as Unfetched is
	Base      *Base  `json:"base,omitempty"`      // all that it was, once that was looked at
	Bases     []Base `json:"bases,omitempty"`     // the same of the times that the session was resumed; the newest of them

	// Of an interrupted session: the roll back that was under way, so that some files may
	// have gone back and others not.
	CutOff *RollbackTarget `json:"cut_off,omitempty"`

	By string `json:"by,omitempty"` // who made the change that an event tells of: the mode, a pause, going on

	// AgentSession is what the agent calls its own session, as it says itself: its
	// command to go on takes that.
	AgentSession string `json:"agent_session,omitempty"`

	// Counts, for lists.
	Actions    int    `json:"actions"`
	Held       int    `json:"held"`       // open questions
	Unreviewed int    `json:"unreviewed"` // ended actions whose changes were neither kept nor rolled back
	Attempts   int    `json:"attempts"`
	Applies    int    `json:"applies,omitempty"`   // that are in the project folder: done and not undone
	Unapplied  int    `json:"unapplied,omitempty"` // changed files that no apply wrote to the project folder; counted at the end or the interruption, and by each apply after it
	LastAction string `json:"last_action,omitempty"`

	// What a person says of it, see Label, and isn't in its events.
	Tags    []string  `json:"tags,omitempty"`
	Note    string    `json:"note,omitempty"`
	Pinned  bool      `json:"pinned,omitempty"`
	Trashed time.Time `json:"trashed,omitzero"`

	// Counted for lists.
	Denials   int `json:"denials,omitempty"`     // actions that never ran because a rule or a person said so
	Rollbacks int `json:"rolled_back,omitempty"` // that were carried out
	Changed   int `json:"changed,omitempty"`     // files that differ from the project as it was first seen

	// Of a fork: what it began as. The record of it is its own.
	Parent *Parent `json:"parent,omitempty"`

	Screen string `json:"screen,omitempty"` // hash of the body that draws the last screen, once it has ended
}

// Dir is a folder, or a file, that a session has besides the project, at its own path.
type Dir struct {
	Path  string `json:"path"`            // absolute host path, exact
	Write bool   `json:"write,omitempty"` // what is written there stays in the session, and isn't under review
}

// Only says in words what would go with a session that is over: files that weren't applied,
// commits that weren't fetched; "" for nothing.
func (s *Session) Only() string {
	var out []string
	if s.Unapplied > 0 {
		out = append(out, fmt.Sprintf("changed files that were never applied: %d", s.Unapplied))
	}
	if s.Unfetched != "" {
		out = append(out, "what was never fetched: "+s.Unfetched)
	}
	if s.Undone != "" {
		out = append(out, "what it put back of what it had committed, and didn't commit: "+s.Undone)
	}
	return strings.Join(out, "; ")
}

// Ran is how long the session has run by now, without the time between an end and a
// resume, as far as anybody recorded when it ended.
func (s Session) Ran(now time.Time) time.Duration {
	began := s.Began()
	switch {
	case !s.EndedAt.IsZero():
		now = s.EndedAt
	case !s.Live() || began.IsZero():
		return s.RanBefore
	}
	return s.RanBefore + max(0, now.Sub(began))
}

// Began is when it was started, or resumed last.
func (s Session) Began() time.Time {
	if s.Resumed > 0 {
		return s.ResumedAt
	}
	return s.StartedAt
}

// Last is when it ended or, as long as that isn't known, began.
func (s Session) Last() time.Time {
	if s.EndedAt.IsZero() {
		return s.StartedAt
	}
	return s.EndedAt
}

// Undecided says on one line what the person may decide about the agent's own questions;
// "" where there is nothing, or was decided.
func (s *Session) Undecided() string {
	if len(s.Asks) == 0 {
		return ""
	}
	return fmt.Sprintf("%s asks questions, too: own-questions: on or off in the settings (off: %s)", s.Agent, strings.Join(s.Asks, " "))
}

// Ending says how it ended and what brought that about.
func (s Session) Ending() string {
	why := s.Reason
	if s.EndedBy == ByAgent {
		how := "by itself"
		if s.Exit != nil && s.Exit.Signal != "" {
			how = "a signal ended the agent"
		}
		why = strings.TrimSuffix(how+"; "+why, "; ")
	}
	return strings.Trim(s.Exit.Words()+", "+why, ", ")
}

// Runs is the command that it runs, or ran last.
func (s Session) Runs() string { return cmp.Or(s.ResumedWith, s.Command) }

// Neighbour is a live session whose project folder is another session's as well,
// or inside it, or around it. Neither sees what the other changes before that is
// applied.
type Neighbour struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Folder string `json:"folder"` // absolute host path, exact
}

// NewsKind is what a session tells its neighbours.
type NewsKind string

const (
	NewsStarted NewsKind = "started"
	NewsEnded   NewsKind = "ended"
	NewsApplied NewsKind = "applied" // it wrote to the project folder
)

// News is what a session tells a neighbour.
type News struct {
	Kind  NewsKind  `json:"kind"`
	From  Neighbour `json:"from"`
	Paths [][]byte  `json:"paths,omitempty"` // of NewsApplied: files that were written, below From's folder, exact; the first of them
	More  int       `json:"more,omitempty"`  // further ones
}

// Base tells what the project folder was when the session started, or was resumed. It
// is found out while the agent runs already.
type Base struct {
	Resumed int `json:"resumed,omitempty"` // how often the session had been, by then

	// Kind is what it goes by: "git" for the index of the repository and what
	// differed from that, "names" for the names of all files.
	Kind     string `json:"kind"`
	Hash     string `json:"hash"`             // of the body that has it
	Files    int    `json:"files"`            // paths that it lists
	Complete bool   `json:"complete"`         // all of the project was looked at
	Reason   string `json:"reason,omitempty"` // why not, in words
}

// BaseOf is what the project was when the session had been resumed so often; nil: that
// isn't in the record.
func (s *Session) BaseOf(resumed int) *Base {
	if resumed == 0 {
		return s.Base
	}
	for i := range s.Bases {
		if s.Bases[i].Resumed == resumed {
			return &s.Bases[i]
		}
	}
	return nil
}

// EndedBy is what brought about a session's end.
type EndedBy string

const (
	ByAgent   EndedBy = "agent"   // it ended by itself
	ByPerson  EndedBy = "person"  // someone killed it
	ByLimit   EndedBy = "limit"   // its time was over, or its memory too little
	ByFailure EndedBy = "failure" // Stepbox couldn't go on: nothing runs that can't be supervised and recorded
)

// Live says whether a supervisor owns the session, so that it can be decided on.
func (s Session) Live() bool {
	return s.State == SessionStarting || s.State == SessionRunning || s.State == SessionPaused
}

// Credential is one that is put into requests to a host. Its value is nowhere here.
type Credential struct {
	Name      string   `json:"name"`
	Host      string   `json:"host"`                // NAME:PORT
	Carrier   string   `json:"carrier"`             // what carries it, in words
	From      string   `json:"from"`                // where it comes from, in words
	Variables []string `json:"variables,omitempty"` // in which the agent has a placeholder
}

// Words say what is put in where.
func (c Credential) Words() string {
	return fmt.Sprintf("%s: %s to %s, from %s", c.Name, c.Carrier, c.Host, c.From)
}

// Spend is what was spent at one host, as its answers say.
type Spend struct {
	Host     string `json:"host"`
	Requests int64  `json:"requests"`
	Input    int64  `json:"input,omitempty"`  // tokens, those from a cache too
	Output   int64  `json:"output,omitempty"` // tokens
	Cached   int64  `json:"cached,omitempty"` // tokens of Input that came from a cache
}

// Spent is what was spent at all hosts.
func (s Session) Spent() (all Spend) {
	for _, one := range s.Spend {
		all.Requests += one.Requests
		all.Input += one.Input
		all.Output += one.Output
		all.Cached += one.Cached
	}
	return all
}

// Limits are the bounds in force; zero means none.
type Limits struct {
	Source    string        `json:"source"` // what enforces them: "systemd user manager", "cgroup v2", "cgroup v1", "rlimits"
	Memory    int64         `json:"memory,omitempty"`
	CPUs      float64       `json:"cpus,omitempty"`
	Pids      int64         `json:"pids,omitempty"`
	Terminals int           `json:"terminals,omitempty"` // pseudo-terminals
	Disk      int64         `json:"disk,omitempty"`      // bytes that the session may write
	WallTime  time.Duration `json:"wall_time,omitempty"` // nanoseconds
	// Rules are the limits that policies set, those of the network and of one action
	// too, in words and with where they stand.
	Rules []string `json:"rules,omitempty"`
}

// Usage is what the agent uses now; it passes by in the event stream and isn't recorded.
type Usage struct {
	CPU    float64 `json:"cpu"`    // of one processor, 1.0 = all of it
	Memory int64   `json:"memory"` // bytes
	Pids   int     `json:"pids"`

	Sent      int64  `json:"sent,omitempty"`      // bytes out of the sandbox since it was started, or resumed last
	Received  int64  `json:"received,omitempty"`  // bytes into it
	Unapplied int    `json:"unapplied,omitempty"` // changed files that the project doesn't have, as of the last checkpoint
	Printed   int64  `json:"printed,omitempty"`   // bytes of its output: the screen is another once this is
	Last      string `json:"last,omitempty"`      // the last line of the screen that has words, escaped; at most LastMost bytes
}

// LastMost bounds Usage.Last, in bytes.
const LastMost = 240

// Exit is how a process ended: by Code, or by Signal when that isn't empty.
type Exit struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"` // SIGKILL and so on
}

// Words say how it ended; "" when that isn't known.
func (e *Exit) Words() string {
	switch {
	case e == nil:
		return ""
	case e.Signal != "":
		return e.Signal
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// Failed says whether it ended as what failed does.
func (e *Exit) Failed() bool { return e != nil && (e.Code != 0 || e.Signal != "") }

// Marked are its words, with a mark where it failed.
func (e *Exit) Marked() string {
	if e.Failed() {
		return "✗ " + e.Words()
	}
	return e.Words()
}

// Parent is what a session was forked from.
type Parent struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`                // as it is called; in the record, as it was then
	At         Moment    `json:"at"`                  // as the person named it
	Checkpoint int64     `json:"checkpoint"`          // of the parent: the state it began with; 0: the project as the parent first saw it
	Others     int       `json:"others,omitempty"`    // files that the parent didn't write, and that are others in the project by now: the fork has them as they were when the parent began
	Inexact    []Trouble `json:"not_exact,omitempty"` // what isn't surely as it was then; the first of them
	More       int       `json:"more,omitempty"`      // further ones
}
