package api

import (
	"fmt"
	"strings"
	"time"
)

// Checkpoint is the state of the session's files at a moment.
type Checkpoint struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	From   int64     `json:"from,omitempty"`   // the one that it goes on from: the one before it, or what a roll back went back to; 0: none, or not recorded
	Action int       `json:"action,omitempty"` // it has that action's changes alone, on top of its Before; 0: the state of all files
	Root   string    `json:"root"`             // hash of the manifest
	Files  int       `json:"files"`            // entries in the manifest
	Bytes  int64     `json:"bytes"`

	// Turned is the checkpoint before it when the project's files have come to show
	// through again since, as after a resume, and aren't what they were: that one
	// still knows what was below. 0: all is as it was.
	Turned int64 `json:"turned,omitempty"`
}

// Change is one path that differs between two states of the files.
type Change struct {
	Path    string `json:"path"`               // relative to the project, escaped
	Key     string `json:"key"`                // names the path in requests, whatever its bytes are
	Status  string `json:"status"`             // A, M, D, R, T (type) as git uses them
	From    string `json:"from,omitempty"`     // the old path of a rename
	FromKey string `json:"from_key,omitempty"` // of one that was edited too: both keys are needed to choose it, and it has no hunks
	Kind    string `json:"kind"`               // file, dir, symlink, fifo, socket
	Words   string `json:"words,omitempty"`    // mode and symlink changes, said in words
	Binary  bool   `json:"binary,omitempty"`
	OldSize int64  `json:"old_size"`
	NewSize int64  `json:"new_size"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
	Counted bool   `json:"counted"` // whether Added and Removed are known

	// Groups are what a reader may want folded away: "git" (internals of a
	// repository), "lock", "generated", "ignored"; "" is none of these.
	Group string `json:"group,omitempty"`
	Type  string `json:"type,omitempty"` // of binaries: what they are, as "PNG image, 640×480"
	// Host says in words that the file in the project folder has changed since
	// the session first saw it; "" when it hasn't, or isn't looked at.
	Host    string `json:"host,omitempty"`
	Applied bool   `json:"applied,omitempty"` // an apply that stands wrote it to the project folder as it is here
	// Inherited says of a fork's change that it began with it, and has it as it was.
	Inherited bool `json:"inherited,omitempty"`
}

// Page says which part of a list is asked for.
type Page struct {
	After string // the Next of the page before; "" for the first
	Limit int    // at most so many; 0 leaves it to the server

	// Grouped asks for changes by Group first, those of none before all others,
	// and within each by path. Older servers give them by path.
	Grouped bool
}

// Group is how much of what differs is in one of the groups of Change.Group.
type Group struct {
	Name    string `json:"name"`
	Files   int    `json:"files"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
}

// Changes is what differs in a scope.
type Changes struct {
	Version int64 `json:"version"`         // as of when this is; the event stream tells the newest, and what is older is to be fetched again
	Final   bool  `json:"final,omitempty"` // the session has ended: nothing newer will come

	// Checkpoint is one that was there before this was looked at: nothing that
	// changed up to it is missing. 0 when there was none, or isn't said.
	Checkpoint int64 `json:"checkpoint,omitempty"`

	Scope   string   `json:"scope"`          // "session" or "action N"
	Files   []Change `json:"files"`          // by path; one page of them
	More    int      `json:"more,omitempty"` // changed paths beyond those listed
	Next    string   `json:"next,omitempty"` // Page.After of the page that follows; "" when there is none
	Total   int      `json:"total"`          // changed paths, on all pages
	Added   int      `json:"added"`          // lines, on all pages
	Removed int      `json:"removed"`
	// Counting says that not all lines are counted yet, and so not all groups known:
	// asked again, it has more.
	Counting bool `json:"counting,omitempty"`

	Groups []Group  `json:"groups,omitempty"` // on all pages: of those asked for Grouped, what each group has
	Apart  []string `json:"apart,omitempty"`  // changes outside the project, which can't be rolled back exactly

	// Returned are files that an apply wrote and the session has as it first saw them
	// again, while the project doesn't: an apply undoes that there. On the last page of
	// all that the session changed; escaped, the first of them.
	Returned []string `json:"returned,omitempty"`
}

// FileDiff is one file's difference.
type FileDiff struct {
	Change Change `json:"change"`
	Hash   string `json:"hash,omitempty"` // of both contents: names the hunks in a Choice
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
	Op    string `json:"op"` // " ", "+" or "-"
	Text  string `json:"text"`
	NoEnd bool   `json:"no_end,omitempty"` // the last line of its file, without a newline
}

// RollbackTarget says what a roll back takes back. Exactly one field is set.
type RollbackTarget struct {
	ToBefore  int        `json:"to_before,omitempty"` // all that changed since just before this action
	Selection *Selection `json:"selection,omitempty"` // these changes alone: later ones of other files, and of other lines, stay
	Redo      int64      `json:"redo,omitempty"`      // a Rollback's ID: what it took back comes again, or what it had come again goes
	Home      *HomePaths `json:"home,omitempty"`      // what was changed in a home of the session's own, for good
}

// Words says what it is to do, and again the arguments of stepbox rollback that do so,
// after the session's; "" where paths, files or hunks were chosen.
func (t RollbackTarget) Words() (words, again string) {
	switch {
	case t.Home != nil && len(t.Home.Paths) > 0:
		return "a rollback of some of the home", ""
	case t.Home != nil:
		return "a rollback of the home", "--home"
	case t.ToBefore != 0:
		return fmt.Sprintf("a rollback to before #%d", t.ToBefore), fmt.Sprintf("--to-before %d", t.ToBefore)
	case t.Redo != 0:
		return fmt.Sprintf("undoing rollback %d", t.Redo), fmt.Sprintf("--redo %d", t.Redo)
	case t.Selection != nil && len(t.Selection.Actions) > 0:
		numbers := strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Selection.Actions), " ", ","), "[]")
		if len(t.Selection.Without)+len(t.Selection.Globs)+len(t.Selection.Files) == 0 {
			again = "--action " + numbers
		}
		return "rolling back " + Numbered(t.Selection.Actions), again
	}
	return "rolling back some of the session's changes", ""
}

// Before is the target of going back to just before an action.
func Before(action int) RollbackTarget { return RollbackTarget{ToBefore: action} }

// RollbackPlan says what a roll back would do. ToBefore is set for one to just before an action.
type RollbackPlan struct {
	RollbackTarget
	Away      bool       `json:"away,omitempty"`  // as a Rollback has it
	Hash      string     `json:"hash"`            // the request to carry it out must name it
	Actions   []int      `json:"actions"`         // whose changes are taken back, or come again
	Ends      []int      `json:"ends,omitempty"`  // running actions that will be killed first
	Lives     []int      `json:"lives,omitempty"` // actions taken back that still run, or left something running: they live on, and may write again
	Files     []Change   `json:"files"`           // from how they are to how they will be
	More      int        `json:"more,omitempty"`
	Restores  int        `json:"restores,omitempty"`  // of all files: those that are put back or written over
	Removes   int        `json:"removes,omitempty"`   // of all files: those that go
	Conflicts []Conflict `json:"conflicts,omitempty"` // with later changes; they stay as they are unless resolved
	Problems  []Trouble  `json:"problems,omitempty"`  // what can't be put back; all else can
}

// RollbackRequest asks for a plan, without a Hash, or carries one out that was shown.
type RollbackRequest struct {
	RollbackTarget
	Resolve []Resolution `json:"resolve,omitempty"` // planned with, and named again
	Hash    string       `json:"hash,omitempty"`
	By      string       `json:"by,omitempty"`
	Reason  string       `json:"reason,omitempty"` // one line that the agent is told
}

// Trouble is a path that isn't, or can't be, as it should, and why.
type Trouble struct {
	Path string `json:"path"` // escaped; "": the project itself
	Why  string `json:"why"`  // in words
}

// String is what is told of it; of what no path is left out for ("…"), why.
func (t Trouble) String() string {
	if t.Path == "…" {
		return t.Why
	}
	return t.Path + ": " + t.Why
}

// Rollback is one that was carried out, or is.
type Rollback struct {
	ID int64     `json:"id"`
	At time.Time `json:"at"`
	RollbackTarget
	Away       bool      `json:"away,omitempty"`   // a Redo that takes away again what an earlier one had put in
	Checkpoint int64     `json:"checkpoint"`       // that the files, or the chosen ones, went back to; 0: to none
	Before     int64     `json:"before,omitempty"` // checkpoint of the state that it found
	After      int64     `json:"after,omitempty"`  // checkpoint of the state that it left
	Redone     bool      `json:"redone,omitempty"` // by a later Redo
	Actions    []int     `json:"actions"`          // of which nothing is left; when it puts in: of which something is there again
	Files      int       `json:"files"`
	By         string    `json:"by,omitempty"`
	Reason     string    `json:"reason,omitempty"` // that the agent is told
	Failure    string    `json:"failure,omitempty"`
	Failed     []Trouble `json:"failed,omitempty"` // exactly what isn't as it should be
	Open       bool      `json:"open,omitempty"`   // it has begun, and its end isn't recorded

	// What changed after the plan was shown and isn't part of it stays as it is.
	Left     []string `json:"left,omitempty"`      // escaped; the first of them
	LeftMore int      `json:"left_more,omitempty"` // further ones

	Took []string `json:"took,omitempty"` // of a Home: what went back, escaped; the first of them
}

// PutsIn says whether a roll back has something come again, rather than taking it out.
func (r *Rollback) PutsIn() bool { return r.Redo != 0 && !r.Away }
