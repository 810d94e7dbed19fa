package project

import (
	"context"
	"errors"
	"fmt"
)

// Progress is how far long work is.
type Progress struct {
	Stage       string // "check", "write", "place", "take back", "clean up"
	Part, Whole int64  // bytes of "check" and "write", else steps
}

// Note names a path that isn't as was asked for, and says why in words.
type Note struct {
	Path string
	Why  string
}

// Result is what was done.
type Result struct {
	Written int // files, folders and links
	Removed int
	Left    []Note // what is otherwise than it should be, and where its bytes are
}

// Conflict is a path that isn't what its step expects, or can't become what it
// should. Its bytes were left alone.
type Conflict struct {
	Path string
	Why  string // in words
	Now  State  // what is there
}

// RefusedError says why steps weren't carried out. The project is as it was.
type RefusedError struct{ Conflicts []Conflict }

func (e *RefusedError) Error() string {
	c := e.Conflicts[0]
	if n := len(e.Conflicts) - 1; n > 0 {
		return fmt.Sprintf("%q %s (and %d more)", c.Path, c.Why, n)
	}
	return fmt.Sprintf("%q %s", c.Path, c.Why)
}

// Carry carries steps out, all of them or none, under a new journal of that name
// (letters, digits, dots and dashes). What a step wants and is so already is left
// out, of the journal too. A RefusedError, like any other, means that the project
// is as it was, but for what the Result's Left names; that is also so when ctx
// ends meanwhile. told, which may be nil, is called from this goroutine, often.
func (f *Folder) Carry(ctx context.Context, j Journals, name string, steps []Step, told func(Progress)) (Result, error) {
	return Result{}, errors.ErrUnsupported
}

// Undo takes back what Carry did under a journal that is Done, all of it or
// nothing: a path that isn't as Carry left it is a conflict. Folders stay in which
// there is something else by now.
func (f *Folder) Undo(ctx context.Context, j Journals, name string, told func(Progress)) (Result, error) {
	return Result{}, errors.ErrUnsupported
}
