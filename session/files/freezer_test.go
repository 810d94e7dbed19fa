package files

import (
	"context"
	"errors"
	"testing"

	"stepbox/runner"
)

// restless is a sandbox that comes to rest at the last of some tries.
type restless struct {
	left   int
	frozen bool
}

func (r *restless) Freeze(context.Context) error {
	if r.left > 0 {
		r.left--
		return runner.ErrFreeze
	}
	r.frozen = true
	return nil
}

func (r *restless) Thaw() error {
	r.frozen = false
	return nil
}

func TestFreezerTriesAgain(t *testing.T) {
	box := &restless{left: freezeTries - 1}
	f := &Freezer{box: box}
	thaw, err := f.Freeze(t.Context())
	if err != nil || !box.frozen {
		t.Fatalf("it isn't frozen: %v", err)
	}
	if err := thaw(); err != nil || box.frozen {
		t.Errorf("it isn't thawed: %v", err)
	}
	box.left = freezeTries
	if _, err := f.Freeze(t.Context()); !errors.Is(err, runner.ErrFreeze) {
		t.Errorf("a sandbox that never rests gives %v", err)
	}
}
