package project

import (
	"context"
	"errors"
	"fmt"
	"os"

	"stepbox/runner/overlay/manifest"
)

// Recovered is a journal that a process left half-way, and what became of it:
// Done or Failed, or when it was being undone, Undone or Done.
type Recovered struct {
	Journal
	Left []manifest.Problem // as from Carry
	Err  error              // why it couldn't be mended; the next Recover tries again
}

// ErrBusy says that another process is writing the project.
var ErrBusy = errors.New("another apply or undo is writing this project; try again when it is through")

// ErrUnfinished says that a journal of the project has to be recovered first.
var ErrUnfinished = errors.New("an earlier apply was interrupted and must be finished or undone first")

// Recover finishes what processes that died left half-way in any project, or
// takes it back, and says which. What another process is at is left alone.
func (j Journals) Recover(ctx context.Context) ([]Recovered, error) {
	found, err := j.find()
	if err != nil {
		return nil, err
	}
	var out []Recovered
	for _, r := range found {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if !r.open() {
			continue
		}
		left, err := r.recover(ctx)
		if errors.Is(err, ErrBusy) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("cannot recover %q in project %q: %w", r.name, r.path, err)
		}
		info, rerr := j.Read(r.name)
		if rerr != nil {
			info = Journal{Name: r.name, Project: r.path, Phase: Begun}
		}
		out = append(out, Recovered{info, left, errors.Join(err, rerr)})
	}
	return out, nil
}

// recover mends one journal. Before anything was moved, or when it was already
// being taken back, it is taken back; else it is finished, or taken back if that
// meets a conflict.
func (r *record) recover(ctx context.Context) ([]manifest.Problem, error) {
	if err := r.load(); err != nil {
		return nil, err
	}
	f, err := Open(r.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !f.is(r) {
		return nil, fmt.Errorf("%w: what is there now isn't the folder that was written to", ErrMoved)
	}
	unlock, err := f.lock(r.in)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := r.load(); errors.Is(err, os.ErrNotExist) { // its process has gone on until it let go of the lock
		return nil, ErrBusy
	} else if err != nil {
		return nil, err
	}
	x := newExecutor(ctx, f, r, nil)
	defer x.close()
	x.again, x.begun = true, len(x.moves)
	switch r.stage {
	case stageMaking:
		err = x.reverse(true)
	case stageReversing:
		err = x.reverse(false)
	case stageMoving:
		if err = x.moveAll(); err == nil {
			err = x.settle()
		}
		if err != nil {
			if ctx.Err() == nil {
				err = x.reverse(false)
			}
			break
		}
		fallthrough
	default:
		x.finish()
	}
	return x.left, err
}
