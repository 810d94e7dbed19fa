package files

import (
	"context"
	"errors"
	"sync"

	"stepbox/runner"
)

// freezeTries is how often a freeze is tried that didn't come to rest in time:
// a busy machine mustn't let an edit go on unreviewed.
const freezeTries = 4

// Freezer lets several reasons to freeze the agent overlap: the first freezes,
// the last to go thaws.
type Freezer struct {
	box interface {
		Freeze(ctx context.Context) error
		Thaw() error
	}
	// mu is held across freezing and thawing on purpose: whoever asks second
	// must find the agent frozen when it is told so.
	mu      sync.Mutex
	reasons int  // guarded by mu
	frozen  bool // guarded by mu
}

// NewFreezer makes one for a sandbox.
func NewFreezer(box interface {
	Freeze(ctx context.Context) error
	Thaw() error
}) *Freezer {
	return &Freezer{box: box}
}

// Freeze stops every process of the agent until the returned function is
// called, which must happen once. An error says that the agent isn't frozen;
// there is nothing to undo then.
func (f *Freezer) Freeze(ctx context.Context) (thaw func() error, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.frozen {
		err := f.box.Freeze(ctx)
		for tries := 1; tries < freezeTries && errors.Is(err, runner.ErrFreeze); tries++ {
			err = f.box.Freeze(ctx)
		}
		if err != nil {
			return nil, err
		}
		f.frozen = true
	}
	f.reasons++
	var once sync.Once
	return func() error {
		var err error
		once.Do(func() { err = f.release() })
		return err
	}, nil
}

func (f *Freezer) release() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reasons--
	if f.reasons > 0 {
		return nil
	}
	f.frozen = false
	return f.box.Thaw()
}
