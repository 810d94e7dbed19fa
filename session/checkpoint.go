package session

import (
	"context"
	"fmt"
	"time"

	"stepbox/runner/overlay"
	"stepbox/session/api"
)

// checkpoint is the state of the session's files at a moment.
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
	err      error
}

// checkpoint makes sure that all changes so far are in a checkpoint and are
// accounted for, and then goes on in the loop. Checkpoints are taken one after
// the other. When one can't be taken the session stops: without it nothing
// could be taken back.
func (s *Session) checkpoint(then func(*checkpoint)) {
	if s.checking {
		s.waiting = append(s.waiting, func() { s.checkpoint(then) })
		return
	}
	s.checking = true
	last := s.lastFiles
	go func() {
		t := s.take(context.Background(), last)
		s.post(func() {
			if t.err != nil {
				s.checking = false
				s.fail(fmt.Errorf("cannot take a checkpoint: %w", t.err))
				if s.ending { // the last one stands, and the end has to be told
					then(s.lastFiles)
				}
				return
			}
			if t.torn != nil && !s.ending && !s.tornSaid {
				// The state may be one that never was; that is said, once.
				s.tornSaid = true
				s.note(true, "checkpoints are taken while the agent runs: it can't be frozen: %v", t.torn)
			}
			s.account(t, func(cp *checkpoint) {
				s.checking = false
				then(cp)
				if len(s.waiting) > 0 && !s.checking {
					next := s.waiting[0]
					s.waiting = s.waiting[1:]
					next()
				}
			})
		})
	}()
}

// take looks at the files. Nothing is frozen when nothing moved; else a first
// scan does most of the work while the agent runs, and a second one the rest
// while it is frozen, so that the state is one that really was.
func (s *Session) take(ctx context.Context, last *checkpoint) taken {
	moved, err := s.files.moved(ctx)
	if err != nil {
		return taken{err: err}
	}
	if !moved {
		// Someone who looked at the changes may have scanned since the last
		// checkpoint: what that found isn't in one yet.
		if m := s.files.scanned(); m != nil && m != last.manifest {
			return s.settle(ctx, last, m)
		}
		return taken{manifest: last.manifest, root: last.root, same: true}
	}
	if _, err := s.files.scan(ctx); err != nil {
		return taken{err: err}
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
		return taken{err: err}
	}
	t := s.settle(ctx, last, m)
	t.torn = torn
	return t
}

// settle saves a manifest and says how it differs from the last checkpoint.
func (s *Session) settle(ctx context.Context, last *checkpoint, m *overlay.Manifest) taken {
	root, err := s.files.save(ctx, m)
	if err != nil {
		return taken{err: err}
	}
	if root == last.root {
		return taken{manifest: m, root: root, same: true}
	}
	changed, err := s.files.between(ctx, last.manifest, m)
	return taken{manifest: m, root: root, changed: changed, err: err}
}

// account records a checkpoint and says whose the changes since the last one
// are: those of all actions that ran meanwhile, or else an edit by the agent itself.
func (s *Session) account(t taken, then func(*checkpoint)) {
	last := s.lastFiles
	if t.same {
		last.manifest = t.manifest
		then(last)
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
	s.record(func() { then(cp) }, events...)
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
	go func() {
		thaw, err := s.freezer.freeze(context.Background())
		s.post(func() {
			if err != nil {
				s.note(true, "the agent runs on while action %d waits: it can't be frozen: %v", a.N, err)
			}
			q.thaw = thaw
			s.open(q)
		})
	}()
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
	if s.stopping {
		return
	}
	for _, a := range s.actions {
		if a.State == api.ActionRunning && !a.Housekeeping && a.agent == nil && a.atExit == nil && a.Kind == api.KindCommand {
			return // it will be accounted for at that action's end
		}
	}
	s.checkpoint(func(*checkpoint) {})
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
		s.record(nil, s.actionEvent(a, "ended"))
		return
	}
	ended := time.Now().UTC()
	left := s.leftRunning(a)
	done := func(cp *checkpoint) {
		if err := a.to(api.ActionEnded); err != nil {
			s.fail(err)
			return
		}
		a.EndedAt, a.Exit, a.After, a.LeftRunning, a.lingers = ended, exit, cp.id, left, left > 0
		before, after := a.Before, cp
		go func() {
			changed, err := s.files.betweenIDs(context.Background(), before, after)
			s.post(func() { s.settled(a, changed, err) })
		}()
	}
	if a.atExit != nil {
		done(a.atExit)
		return
	}
	s.checkpoint(done)
}

func (s *Session) settled(a *action, changed []overlay.Change, err error) {
	if err != nil {
		s.note(true, "cannot tell what action %d changed: %v", a.N, err)
	}
	if a.agent == nil && len(changed) > 0 && a.Review == api.ReviewNone {
		a.Files = len(changed)
		if err := a.review(api.ReviewOpen); err != nil {
			s.fail(err)
			return
		}
		a.Added, a.Removed = s.files.lines(context.Background(), changed)
	}
	s.record(nil, s.actionEvent(a, "ended"), s.changed("counted"))
	if a.Review == api.ReviewOpen && s.info.Mode == api.ModeStep && !s.stopping {
		s.review(a, changed, false)
	}
}

// count fills in an edit's line counts, later.
func (s *Session) count(a *action, before, after *overlay.Manifest) {
	go func() {
		changed, err := s.files.between(context.Background(), before, after)
		if err != nil {
			return
		}
		added, removed := s.files.lines(context.Background(), changed)
		s.post(func() {
			a.Added, a.Removed = added, removed
			s.record(nil, s.actionEvent(a, "counted"))
		})
	}()
}

// Keep marks an action's changes as reviewed.
func (s *Session) Keep(ctx context.Context, n int) (api.Action, error) {
	var out api.Action
	var q *question
	done := make(chan error, 1)
	err := s.call(ctx, func() {
		a := s.action(n)
		if a == nil {
			done <- problem(api.CodeNotFound, "there is no action %d", n)
			return
		}
		for _, o := range s.questions {
			if o.Open() && o.Subject == api.SubjectEdit && o.action == a {
				q = o
			}
		}
		if q != nil {
			s.close(q, api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerKeep, By: "keep", At: time.Now().UTC(), Action: n},
				func() { out = a.Action; done <- nil })
			return
		}
		if a.Review == api.ReviewKept {
			out = a.Action
			done <- nil
			return
		}
		if a.Review != api.ReviewOpen {
			done <- problem(api.CodeInvalid, "action %d has no changes that wait for a review", n)
			return
		}
		if err := a.review(api.ReviewKept); err != nil {
			done <- err
			return
		}
		s.record(func() { out = a.Action; done <- nil }, s.actionEvent(a, "kept"), s.changed("counted"))
	})
	if err != nil {
		return out, err
	}
	return out, s.wait(ctx, done)
}

// wait waits for a result that the loop sends.
func (s *Session) wait(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-s.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) action(n int) *action {
	if n < 1 || n > len(s.actions) {
		return nil
	}
	return s.actions[n-1]
}
