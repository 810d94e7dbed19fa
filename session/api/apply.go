package api

import (
	"strings"
	"time"
)

// ApplyRequest says what is written from a session to the project folder. To
// plan, Hash is empty; to carry a plan out, the request is the planned one with
// the plan's Hash.
type ApplyRequest struct {
	Selection
	Hash    string       `json:"hash,omitempty"`
	Resolve []Resolution `json:"resolve,omitempty"`
	// Checks are shell commands that must succeed, in a sandbox of their own that
	// has the project as it would be; nil: those configured for the project.
	Checks   []string `json:"checks,omitempty"`
	NoChecks bool     `json:"no_checks,omitempty"`
	// Looked says that the changes which aren't reviewed, and which the
	// plan lists, have been looked at.
	Looked  bool   `json:"looked,omitempty"`
	Commits bool   `json:"commits,omitempty"` // fetch the agent's commits as well
	By      string `json:"by,omitempty"`
}

// ApplyPlan says what an apply would do.
type ApplyPlan struct {
	Hash       string      `json:"hash"`
	Checkpoint int64       `json:"checkpoint"` // the state that would be applied; what is written later isn't
	Files      []ApplyFile `json:"files"`      // by path
	More       int         `json:"more,omitempty"`

	// Counts of all files.
	Written   int `json:"written"`
	Deleted   int `json:"deleted"`
	Renamed   int `json:"renamed"`
	Retyped   int `json:"retyped"`
	Dangerous int `json:"dangerous"`
	There     int `json:"there,omitempty"` // the project has them as they would be: nothing is done for them

	Conflicts  []Conflict `json:"conflicts,omitempty"`  // with what the project folder has by now
	Unreviewed []Open     `json:"unreviewed,omitempty"` // they block until they have been looked at
	Left       []Trouble  `json:"left,omitempty"`       // what isn't applied, and why: below .git, devices, not kept
	Commits    []Commit   `json:"commits,omitempty"`    // the agent's
	Unfetched  int        `json:"unfetched,omitempty"`  // repositories whose commits can't be fetched; Left says why
	Git        string     `json:"git,omitempty"`        // how the project's git is another than the session's, in words
	Checks     []string   `json:"checks,omitempty"`     // that would run
	Blocked    string     `json:"blocked,omitempty"`    // why it can't be carried out as it is, in words; "" when it can
}

// ApplyFile is one change that an apply makes to the project folder as it is now.
type ApplyFile struct {
	Change
	Dangers []string `json:"dangers,omitempty"` // in words: what runs by itself, leads out, or lies over something hidden
	Undoes  bool     `json:"undoes,omitempty"`  // what an apply wrote: the session has no change there any more
	Hunks   []Hunk   `json:"hunks,omitempty"`   // of text that this undoes
}

// Open is a change that isn't all reviewed.
type Open struct {
	Change
	Why string `json:"why"` // in words, escaped
}

// Commit is one that the agent made.
type Commit struct {
	Hash    string    `json:"hash"` // hexadecimal
	Ref     string    `json:"ref"`  // in the session, as refs/heads/main; escaped
	Subject string    `json:"subject"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
	Folder  string    `json:"folder,omitempty"` // of the repository, below the project; "" for the project's own
	Danger  string    `json:"danger,omitempty"` // what merging it would take from the project's branch, in words, where it is a branch's newest
}

// IsStash says whether a reference is a stash.
func IsStash(ref string) bool { return strings.HasPrefix(ref, "refs/stash@{") }

// IsNotes says whether a reference is one of git notes.
func IsNotes(ref string) bool { return strings.HasPrefix(ref, "refs/notes/") }

// Apply is one that was carried out, or is.
type Apply struct {
	ID         int64         `json:"id"` // counts up in the session
	At         time.Time     `json:"at"`
	Selection  Selection     `json:"selection"`
	Checkpoint int64         `json:"checkpoint"`
	Files      int           `json:"files"`
	Paths      []string      `json:"paths,omitempty"` // escaped; the first of them
	Checks     []CheckResult `json:"checks,omitempty"`
	Commits    bool          `json:"commits,omitempty"` // the agent's were to be fetched as well
	Fetched    []Commit      `json:"fetched,omitempty"`
	Ref        string        `json:"ref,omitempty"` // below which they are in the real repository: refs/stepbox/ID/
	How        []string      `json:"how,omitempty"` // commands with which a person merges or picks them
	By         string        `json:"by,omitempty"`
	State      ApplyState    `json:"state"`
	Merged     []string      `json:"merged"`            // keys of files in which it put the session's and the project's changes together
	Failure    string        `json:"failure,omitempty"` // in words
	Left       []Trouble     `json:"left,omitempty"`    // what is otherwise than it should be, and where its bytes are
	Journal    string        `json:"journal,omitempty"` // names the journal that undoes it
	UndoneAt   time.Time     `json:"undone_at,omitzero"`
}

// ApplyState is where an apply is in its life.
type ApplyState string

const (
	ApplyOpen    ApplyState = "open"    // begun; the project folder may be half written, and the next start mends it
	ApplyDone    ApplyState = "done"    // all of it is in the project folder
	ApplyFailed  ApplyState = "failed"  // the project folder is as it was
	ApplyUndoing ApplyState = "undoing" // like open, the other way
	ApplyUndone  ApplyState = "undone"  // the project folder is as it was
)

// CheckResult is how a check went.
type CheckResult struct {
	Command  string        `json:"command"`
	Exit     *Exit         `json:"exit,omitempty"`
	Duration time.Duration `json:"duration"`          // nanoseconds
	Output   string        `json:"output"`            // the end of what it printed, escaped line by line
	Failure  string        `json:"failure,omitempty"` // why it didn't run
}

// Passed says whether a check ran and succeeded.
func (c CheckResult) Passed() bool {
	return c.Failure == "" && c.Exit != nil && c.Exit.Code == 0 && c.Exit.Signal == ""
}

// UndoRequest undoes an apply. To plan, Hash is empty.
type UndoRequest struct {
	Hash string `json:"hash,omitempty"`
	By   string `json:"by,omitempty"`
}

// Progress is a line of the answer to long work. The last line has Done or
// Problem set. Who closes the connection cancels the work, which then ends with
// everything as it was before it.
type Progress struct {
	Stage   string   `json:"stage,omitempty"` // "check", "write", "undo", "fetch"
	Text    string   `json:"text,omitempty"`
	Part    int64    `json:"part,omitempty"` // of Whole
	Whole   int64    `json:"whole,omitempty"`
	Done    *Apply   `json:"done,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}
