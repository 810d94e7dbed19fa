package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stepbox/runner/overlay"
	"stepbox/session/api"
)

// checkpoint is the state of the session's files at a moment. It is never
// changed: many goroutines read it.
type checkpoint struct {
	id       int64
	root     overlay.Hash
	manifest *overlay.Manifest
}

// quietTime is how long the files must rest before changes that the agent made
// by itself become an edit.
const quietTime = 200 * time.Millisecond

// taken is what taking a checkpoint found out.
type taken struct {
	manifest *overlay.Manifest
	root     overlay.Hash
	same     bool // nothing moved: the last checkpoint stands
	changed  []overlay.Change
	torn     error // why the agent ran on while it was taken
}

// checkpoint makes sure that all changes so far are in a checkpoint and are
// accounted for, and then goes on in the loop: with the checkpoint, or with the
// error that kept it from being taken or recorded. The session stops then:
// without it nothing could be taken back.
func (s *Session) checkpoint(then func(*checkpoint, error)) {
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

// take looks at the files. Nothing is frozen when nothing moved; else a first
// scan does most of the work while the agent runs, and a second one the rest
// while it is frozen, so that the state is one that really was.
func (s *Session) take(ctx context.Context, last *checkpoint) (taken, error) {
	moved, err := s.files.moved(ctx)
	if err != nil {
		return taken{}, err
	}
	if !moved {
		// Someone who looked at the changes may have scanned since the last
		// checkpoint: what that found isn't in one yet.
		if m := s.files.scanned(); m != nil && m != last.manifest {
			return s.settle(ctx, last, m)
		}
		return taken{manifest: last.manifest, root: last.root, same: true}, nil
	}
	if _, err := s.files.scan(ctx); err != nil {
		return taken{}, err
	}
	thaw, torn := s.freezer.freeze(ctx)
	if torn == nil {
		defer func() {
			if err := thaw(); err != nil {
				s.log.Error("cannot thaw the agent", "error", err)
			}
		}()
	}
	m, err := s.files.scan(ctx)
	if err != nil {
		return taken{}, err
	}
	t, err := s.settle(ctx, last, m)
	t.torn = torn
	return t, err
}

// settle saves a manifest and says how it differs from the last checkpoint.
func (s *Session) settle(ctx context.Context, last *checkpoint, m *overlay.Manifest) (taken, error) {
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

// account records a checkpoint and says whose the changes since the last one
// are: those of all actions that ran meanwhile, or else an edit by the agent itself.
func (s *Session) account(t taken, then func(*checkpoint, error)) {
	last := s.lastFiles
	if t.same {
		if t.manifest != last.manifest { // read again, to the same end
			s.lastFiles = &checkpoint{id: last.id, root: last.root, manifest: t.manifest}
		}
		then(s.lastFiles, nil)
		return
	}
	cp := &checkpoint{id: last.id + 1, root: t.root, manifest: t.manifest}
	s.lastFiles = cp
	s.files.remember(cp)
	rec := api.Checkpoint{ID: cp.id, At: time.Now().UTC(), Root: t.root.String(), Files: t.manifest.Len(), Bytes: t.manifest.Bytes()}
	events := []api.Event{{Kind: "checkpoint", Checkpoint: &rec}}

	var alive []*action
	for _, a := range s.actions {
		if a.Kind == api.KindCommand && !a.Housekeeping && a.agent == nil && (a.State == api.ActionRunning && a.atExit == nil || a.lingers) {
			alive = append(alive, a)
		}
	}
	switch {
	case len(t.changed) == 0:
	case len(alive) == 0:
		events = append(events, s.edited(last, cp, t.changed)...)
	default:
		for _, a := range alive {
			a.Shared = a.Shared || len(alive) > 1
			if a.lingers {
				// Its leader is gone: the end checkpoint moves on with
				// what it left running.
				a.After = cp.id
			}
		}
	}
	s.record(func(err error) { then(cp, err) }, events...)
}

// edited makes an edit action out of changes that no command can have made.
func (s *Session) edited(before, after *checkpoint, changed []overlay.Change) []api.Event {
	a := &action{profile: s.profile}
	now := time.Now().UTC()
	a.N, a.Kind, a.StartedAt, a.EndedAt = len(s.actions)+1, api.KindEdit, now, now
	a.Before, a.After = before.id, after.id
	a.Verdict, a.By = api.Allow, "rule"
	a.Files = len(changed)
	var names []string
	for _, c := range changed[:min(len(changed), 4)] {
		names = append(names, api.Escape(c.Path))
	}
	a.Title = "edit " + listed(names, len(changed), 3)
	if err := a.to(api.ActionEnded); err != nil {
		s.fail(err)
		return nil
	}
	if err := a.review(api.ReviewOpen); err != nil {
		s.fail(err)
		return nil
	}
	s.actions = append(s.actions, a)
	s.count(a, before.manifest, after.manifest)
	events := []api.Event{s.actionEvent(a, "edited"), s.changed("counted")}
	if s.info.Mode == api.ModeStep {
		s.review(a, changed, true)
	}
	return events
}

// review asks in step mode what becomes of an action's changes. The agent is
// frozen meanwhile when it made them by itself: nothing else holds it.
func (s *Session) review(a *action, changed []overlay.Change, freeze bool) {
	q := &question{
		Question: api.Question{
			Action: a.N, Subject: api.SubjectEdit, Title: a.Title,
			Rule: "step mode: changes are kept or taken back before the agent goes on",
		},
		action: a,
	}
	q.Changes = s.files.list(changed, maxListed)
	if !freeze {
		s.open(q)
		return
	}
	s.aside(func() func() {
		thaw, err := s.freezer.freeze(context.Background())
		return func() {
			if err != nil && s.life.now < phaseStopping {
				s.note(true, "the agent runs on while action %d waits: it can't be frozen: %v", a.N, err)
			}
			q.thaw = thaw
			s.open(q)
		}
	})
}

// touched is the wake-up of the watcher: files moved. When they rest, and no
// command can have done it, it was the agent itself.
func (s *Session) touched() {
	s.files.bump()
	if s.quiet == nil {
		s.quiet = time.AfterFunc(quietTime, func() { s.submit(s.rested) })
		return
	}
	s.quiet.Reset(quietTime)
}

func (s *Session) rested() {
	if s.life.now != phaseRunning {
		return
	}
	for _, a := range s.actions {
		if a.State == api.ActionRunning && !a.Housekeeping && a.agent == nil && a.atExit == nil && a.Kind == api.KindCommand {
			return // it will be accounted for at that action's end
		}
	}
	s.checkpoint(func(*checkpoint, error) {}) // a failure ends the session
}

// finish ends an action whose leaders have exited: what it changed is settled
// before it is shown as done.
func (s *Session) finish(a *action, exit *api.Exit) {
	if a.Housekeeping {
		a.EndedAt, a.Exit = time.Now().UTC(), exit
		s.upkeep = append(s.upkeep, span{a.StartedAt, a.EndedAt})
		if err := a.to(api.ActionEnded); err != nil {
			s.fail(err)
			return
		}
		s.shed(a)
		s.record(nil, s.actionEvent(a, "ended"))
		return
	}
	ended := time.Now().UTC()
	left := s.leftRunning(a)
	done := func(cp *checkpoint, err error) {
		if err != nil || a.State != api.ActionRunning {
			return // the session ends, and ends the action with it
		}
		if err := a.to(api.ActionEnded); err != nil {
			s.fail(err)
			return
		}
		a.EndedAt, a.Exit, a.After, a.LeftRunning, a.lingers = ended, exit, cp.id, left, left > 0
		before := a.Before
		s.aside(func() func() {
			t := s.tell(before, cp)
			return func() { s.settled(a, t) }
		})
	}
	if a.atExit != nil {
		done(a.atExit, nil)
		return
	}
	s.checkpoint(done)
}

// told is what an action changed.
type told struct {
	changed        []overlay.Change
	added, removed int // lines
	err            error
}

// tell compares an action's two checkpoints. It reads files and so runs outside
// the loop.
func (s *Session) tell(before int64, after *checkpoint) (t told) {
	ctx := context.Background()
	if t.changed, t.err = s.files.betweenIDs(ctx, before, after); t.err == nil && len(t.changed) > 0 {
		t.added, t.removed = s.files.lines(ctx, t.changed)
	}
	return t
}

// settled records the end of an action whose changes are known.
func (s *Session) settled(a *action, t told) {
	if t.err != nil {
		s.note(true, "cannot tell what action %d changed: %v", a.N, t.err)
	}
	s.own(a, t)
	s.keepByRule(a, t.changed)
	s.shed(a)
	s.record(nil, s.actionEvent(a, "ended"), s.changed("counted"))
	if a.Review == api.ReviewOpen && s.info.Mode == api.ModeStep && s.life.now == phaseRunning {
		s.review(a, t.changed, false)
	}
}

// own gives an action its changes, which then wait for a review.
func (s *Session) own(a *action, t told) {
	if a.agent != nil || len(t.changed) == 0 || a.Review != api.ReviewNone {
		return
	}
	a.Files, a.Added, a.Removed = len(t.changed), t.added, t.removed
	if err := a.review(api.ReviewOpen); err != nil {
		s.fail(err)
	}
}

// count fills in an edit's line counts, later.
func (s *Session) count(a *action, before, after *overlay.Manifest) {
	s.aside(func() func() {
		changed, err := s.files.between(context.Background(), before, after)
		if err != nil {
			return nil // they stay uncounted
		}
		added, removed := s.files.lines(context.Background(), changed)
		return func() {
			a.Added, a.Removed = added, removed
			s.record(nil, s.actionEvent(a, "counted"))
		}
	})
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
		done <- result[api.Action]{err: problem(api.CodeNotFound, "there is no action %d", n)}
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
		reply(problem(api.CodeInvalid, "action %d has no changes that wait for a review", n))
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
