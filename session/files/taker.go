package files

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"stepbox/runner"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
)

// Box is what of the sandbox has to do with its files.
type Box interface {
	Activity() ([]runner.Activity, error)
	OpenFiles() runner.OpenFiles
	Restore(ctx context.Context, plan *restore.Plan, source restore.Source) (restore.Report, error)
}

// Taker takes checkpoints. Its methods read files and take their time; only one
// of them may run at a time.
type Taker struct {
	Files   *Files
	Freezer *Freezer
	Box     Box
	Log     *slog.Logger
	// Commands says whether something runs that could have made changes besides
	// the agent: only then does it matter who ran.
	Commands atomic.Bool
}

// Taken is what taking a checkpoint found out.
type Taken struct {
	Manifest *manifest.Manifest
	Root     content.Hash
	Same     bool // nothing moved: the last checkpoint stands
	Changed  []diff.Change
	Torn     error // why the agent ran on while it was taken

	// What the processes had run when this was taken, and when what came
	// after it began; nil: not known, so that anyone may have run.
	Until, Since []runner.Activity

	// Froze says that Until is from when all were frozen. What is woken to be frozen
	// may have been about to write: a command isn't said to have, but the agent may.
	Froze bool
}

// Take looks at the files. Nothing is frozen when nothing moved, or nothing ran
// while it looked; else a first scan does most of the work while the agent runs,
// and a second one the rest while it is frozen, so that the state is one that
// really was.
func (t *Taker) Take(ctx context.Context, last *Checkpoint) (Taken, error) {
	watching := t.Commands.Load()
	var before []runner.Activity
	if watching {
		before = t.activity()
	}
	moved, err := t.Files.Moved(ctx)
	if err != nil {
		return Taken{}, err
	}
	if !moved {
		// Someone who looked at the changes may have scanned since the last
		// checkpoint: what that found isn't in one yet.
		out := Taken{Manifest: last.Manifest, Root: last.Root, Same: true}
		if m := t.Files.Scanned(); m != nil && m != last.Manifest {
			out, err = t.since(ctx, last, m)
		}
		out.Until, out.Since = before, before
		return out, err
	}
	m, err := t.Files.Scan(ctx)
	if err != nil {
		return Taken{}, err
	}
	after := before
	if watching {
		// Whoever slept has mapped nothing since.
		if after = t.activity(); idle(before, after) && !t.Files.mapped() && len(t.Box.OpenFiles().Shared) == 0 {
			out, err := t.since(ctx, last, m)
			out.Until, out.Since = after, after
			return out, err
		}
	}
	thaw, torn := t.Freezer.Freeze(ctx)
	if torn == nil {
		defer t.thaw(thaw)
	}
	shared := t.Box.OpenFiles().Shared
	var until []runner.Activity
	if watching && torn == nil && len(shared) == 0 && !t.Files.mapped() {
		until = asleep(after, t.activity())
	}
	if m, err = t.Files.ScanStill(ctx, shared, nil, false); err != nil {
		return Taken{}, err
	}
	out, err := t.since(ctx, last, m)
	out.Torn, out.Until, out.Froze = torn, until, until != nil
	if watching && torn == nil && err == nil {
		t.thaw(thaw)
		out.Since = t.awake(ctx)
	}
	return out, err
}

// thaw may be called again for the same freeze, and does nothing then.
func (t *Taker) thaw(thaw func() error) {
	if err := thaw(); err != nil {
		t.Log.Error("cannot thaw the agent", "error", err)
	}
}

// awake looks at the processes once they have come to rest after a thaw, which
// makes each of them run a little: a look before anything was written is as good
// as one while all were frozen. It is nil when something is written at once.
func (t *Taker) awake(ctx context.Context) []runner.Activity {
	var since []runner.Activity
	for _, wait := range []time.Duration{time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond} {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return since
		}
		now := t.activity()
		if moved, err := t.Files.Moved(ctx); moved || err != nil {
			break
		}
		since = now
	}
	return since
}

// since saves a manifest and says how it differs from the last checkpoint.
func (t *Taker) since(ctx context.Context, last *Checkpoint, m *manifest.Manifest) (Taken, error) {
	root, err := t.Files.Save(ctx, m)
	if err != nil {
		return Taken{}, err
	}
	if root == last.Root {
		return Taken{Manifest: m, Root: root, Same: true}, nil
	}
	changed, err := t.Files.Between(ctx, last.Manifest, m)
	return Taken{Manifest: m, Root: root, Changed: changed}, err
}

// Unmoved is what the processes have run by now, if all that was written is in
// the last checkpoint; else nil.
func (t *Taker) Unmoved(last *Checkpoint) []runner.Activity {
	now := t.activity()
	if moved, err := t.Files.Moved(context.Background()); err != nil || moved || t.Files.Scanned() != last.Manifest {
		return nil
	}
	return now
}

// activity is what the processes have run by now; nil when that can't be told.
func (t *Taker) activity() []runner.Activity {
	list, err := t.Box.Activity()
	if err != nil {
		t.Log.Warn("cannot tell what the sandbox's processes run", "error", err)
		return nil
	}
	return list
}
