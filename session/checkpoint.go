package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stepbox/runner"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// checkpoint is the state of the session's files at a moment. It is never
// changed: many goroutines read it.
type checkpoint struct {
	id       int64
	root     content.Hash
	manifest *manifest.Manifest
}

// taken is what taking a checkpoint found out.
type taken struct {
	manifest *manifest.Manifest
	root     content.Hash
	same     bool // nothing moved: the last checkpoint stands
	changed  []diff.Change
	torn     error // why the agent ran on while it was taken

	// What the processes had run when this was taken, and when what came
	// after it began; nil: not known, so that anyone may have run.
	until, since []runner.Activity
}

// checkpoint makes sure that all changes so far are in a checkpoint and are
// accounted for, and then goes on in the loop: with the checkpoint, or with the
// error that kept it from being taken or recorded. The session stops then:
// without it nothing could be taken back.
func (s *Session) checkpoint(then func(*checkpoint, error)) {
	s.watch.wanted.Store(len(s.alive()) > 0)
	var t taken
	s.alone(func() error {
		var err error
		t, err = s.take(context.Background(), s.lastFiles)
		return err
	}, func(err error, next func()) {
		if err != nil {
			err = fmt.Errorf("cannot take a checkpoint: %w", err)
			s.fail(err)
			then(nil, err)
			next()
			return
		}
		if t.torn != nil && s.life.now < phaseDraining && !s.tornSaid {
			// The state may be one that never was; that is said, once.
			s.tornSaid = true
			s.note(true, "checkpoints are taken while the agent runs: it can't be frozen: %v", t.torn)
		}
		s.account(t, func(cp *checkpoint, err error) {
			then(cp, err)
			next()
		})
	})
}

// take looks at the files. Nothing is frozen when nothing moved, or nothing ran
// while it looked; else a first scan does most of the work while the agent runs,
// and a second one the rest while it is frozen, so that the state is one that
// really was.
func (s *Session) take(ctx context.Context, last *checkpoint) (taken, error) {
	watching := s.watch.wanted.Load()
	var before []runner.Activity
	if watching {
		before = s.looked()
	}
	moved, err := s.files.moved(ctx)
	if err != nil {
		return taken{}, err
	}
	if !moved {
		// Someone who looked at the changes may have scanned since the last
		// checkpoint: what that found isn't in one yet.
		t := taken{manifest: last.manifest, root: last.root, same: true}
		if m := s.files.scanned(); m != nil && m != last.manifest {
			t, err = s.settle(ctx, last, m)
		}
		t.until, t.since = before, before
		return t, err
	}
	m, err := s.files.scan(ctx)
	if err != nil {
		return taken{}, err
	}
	if after := before; watching {
		if after = s.looked(); idle(before, after) && !s.files.mapped() {
			t, err := s.settle(ctx, last, m)
			t.until, t.since = after, after
			return t, err
		}
	}
	thaw, torn := s.freezer.freeze(ctx)
	if torn == nil {
		defer func() {
			if err := thaw(); err != nil {
				s.log.Error("cannot thaw the agent", "error", err)
			}
		}()
	}
	if m, err = s.files.scanStill(ctx, s.box.OpenFiles().Shared, nil); err != nil {
		return taken{}, err
	}
	t, err := s.settle(ctx, last, m)
	t.torn = torn
	if watching && torn == nil && err == nil {
		if err := thaw(); err != nil {
			s.log.Error("cannot thaw the agent", "error", err)
		}
		t.since = s.awake(ctx)
	}
	return t, err
}

// awake looks at the processes once they have settled after a thaw, which makes
// each of them run a little: a look before anything was written is as good as
// one while all were frozen. It is nil when something is written at once.
func (s *Session) awake(ctx context.Context) []runner.Activity {
	var since []runner.Activity
	for _, wait := range []time.Duration{time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond} {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return since
		}
		now := s.looked()
		if moved, err := s.files.moved(ctx); moved || err != nil {
			break
		}
		since = now
	}
	return since
}

// settle saves a manifest and says how it differs from the last checkpoint.
func (s *Session) settle(ctx context.Context, last *checkpoint, m *manifest.Manifest) (taken, error) {
	root, err := s.files.save(ctx, m)
	if err != nil {
		return taken{}, err
	}
	if root == last.root {
		return taken{manifest: m, root: root, same: true}, nil
	}
	changed, err := s.files.between(ctx, last.manifest, m)
	return taken{manifest: m, root: root, changed: changed}, err
}

// Keep marks an action's changes as reviewed.
func (s *Session) Keep(ctx context.Context, n int) (api.Action, error) {
	done := make(chan result[api.Action], 1)
	err := s.request(ctx, func() { s.keep(n, done) })
	if err != nil {
		return api.Action{}, err
	}
	r, err := await(ctx, s, done)
	return r.value, errors.Join(r.err, err)
}

func (s *Session) keep(n int, done chan<- result[api.Action]) {
	a := s.action(n)
	if a == nil {
		done <- result[api.Action]{err: api.Problemf(api.CodeNotFound, "there is no action %d", n)}
		return
	}
	reply := func(err error) { done <- result[api.Action]{a.Action, err} }
	for _, q := range s.questions {
		if q.Subject != api.SubjectEdit || q.action != a || q.Closed != "" {
			continue
		}
		d := api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerKeep, By: "keep"}
		if _, err := s.decidable(d); err != nil {
			reply(err)
			return
		}
		d.At, d.Action = time.Now().UTC(), n
		s.close(q, d, reply)
		return
	}
	switch a.Review {
	case api.ReviewKept:
		reply(nil)
		return
	case api.ReviewOpen:
	default:
		reply(api.Problemf(api.CodeInvalid, "action %d has no changes that wait for a review", n))
		return
	}
	if err := a.review(api.ReviewKept); err != nil {
		reply(err)
		return
	}
	s.record(reply, s.actionEvent(a, "kept"), s.changed("counted"))
}

// result is what a request comes to.
type result[T any] struct {
	value T
	err   error
}

// await waits for what the loop sends; done holds one.
func await[T any](ctx context.Context, s *Session, done <-chan T) (T, error) {
	var none T
	select {
	case v := <-done:
		return v, nil
	case <-s.Done():
		select {
		case v := <-done: // the end came after it
			return v, nil
		default:
			return none, ErrEnded
		}
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// wait waits for what came of a request that has no other result.
func (s *Session) wait(ctx context.Context, done <-chan error) error {
	err, late := await(ctx, s, done)
	return errors.Join(err, late)
}

func (s *Session) action(n int) *action {
	if n < 1 || n > len(s.actions) {
		return nil
	}
	return s.actions[n-1]
}
