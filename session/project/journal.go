package project

import (
	"context"
	"errors"
	"time"

	"stepbox/runner/overlay/content"
)

// Journals is a folder of journals, one for each time that steps were carried
// out. It must be of this user alone, and on the file system that keeps the
// bodies: what was in the project before is given up only after both are on disk.
type Journals struct {
	Dir    string // absolute
	Bodies content.Bodies
}

// Journal is one of them.
type Journal struct {
	Name    string
	Project string // the folder's path
	At      time.Time
	Phase   Phase
	Steps   []Step // those that weren't so already
}

// Phase is what became of a journal's steps.
type Phase string

const (
	Begun   Phase = "begun"   // a process is at it, or left it half-way: Recover mends that
	Done    Phase = "done"    // all of it is in the project
	Failed  Phase = "failed"  // the project is as it was
	Undoing Phase = "undoing" // like Begun, the other way
	Undone  Phase = "undone"  // it was done, and taken back
)

// Recovered is a journal that a process left half-way, and what became of it.
type Recovered struct {
	Journal
	Result
	Err error // why it couldn't be mended; the next Recover tries again
}

// ErrBusy says that another process is writing the project.
var ErrBusy = errors.New("another apply or undo is writing this project; try again when it is through")

// ErrUnfinished says that a journal of the project has to be recovered first.
var ErrUnfinished = errors.New("an earlier apply was interrupted and must be finished or taken back first")

// Read reads the journal of that name.
func (j Journals) Read(name string) (Journal, error) {
	return Journal{}, errors.ErrUnsupported
}

// Remove forgets a journal whose steps are neither Begun nor Undoing.
func (j Journals) Remove(name string) error { return errors.ErrUnsupported }

// Recover finishes what processes that died left half-way in any project, or
// takes it back, and says which. What another process is at is left alone.
func (j Journals) Recover(ctx context.Context) ([]Recovered, error) {
	return nil, errors.ErrUnsupported
}
