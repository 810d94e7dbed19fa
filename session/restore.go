package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
)

// maxLeft bounds the names of files that a roll back left, in its result.
const maxLeft = 100

// carryOut restores files through the merged view while the agent is frozen.
func (s *Session) carryOut(ctx context.Context, r *rollback, by string) (api.Rollback, error) {
	rec := api.Rollback{ToBefore: r.plan.ToBefore, Checkpoint: r.before, Files: len(r.changed), By: api.Escape(api.Trim(by, 64))}
	done := make(chan error, 1)
	if err := s.request(ctx, func() {
		s.alone(func() error { return s.restore(ctx, r, &rec) }, func(err error, next func()) {
			if !r.begun {
				next()
				done <- err
				return
			}
			s.rolledBack(r, &rec, err, func(late error) {
				next()
				done <- errors.Join(err, late)
			})
		})
	}); err != nil {
		return rec, err
	}
	return rec, s.wait(ctx, done)
}

// restore carries the plan out. It is a job of the worker's: no checkpoint is
// taken meanwhile, but for its own. All that belongs together is done under one
// freeze: the files are looked at, what moved since the last checkpoint gets one
// of its own, what has to end is killed, and the files are written. So nothing
// is lost that is written over, and nothing that ends can write any more: even
// where a frozen process dies only when it is thawed, it runs nothing before.
func (s *Session) restore(ctx context.Context, r *rollback, rec *api.Rollback) error {
	thaw, err := s.freezer.freeze(ctx)
	if err != nil {
		return fmt.Errorf("cannot freeze the agent, so nothing was rolled back: %w", err)
	}
	defer func() {
		if err := thaw(); err != nil {
			s.log.Error("cannot thaw the agent", "error", err)
		}
	}()
	open := s.box.OpenFiles()
	cur, err := s.files.scanStill(ctx, open.Shared, nil)
	if err != nil {
		return err
	}
	if r.left, err = s.meanwhile(ctx, r, cur); err != nil {
		return err
	}
	if err := s.settleFirst(ctx, cur); err != nil {
		return err
	}
	if err := s.takenBack(ctx, r); err != nil {
		return err
	}
	plan, err := restore.NewPlan(ctx, s.files.lower, cur, r.target, restore.Options{InPlace: inPlace(open), Leave: r.left})
	if err != nil {
		return fmt.Errorf("cannot plan the roll back: %w", err)
	}
	if err := s.beginRollback(ctx, r, rec); err != nil {
		return err
	}
	for _, a := range r.ends {
		if err := s.killTree(ctx, a); err != nil {
			return fmt.Errorf("cannot end action %d first: %w", a.N, err)
		}
		r.killed = append(r.killed, a)
	}
	report, err := s.box.Restore(ctx, plan, restore.NewSource(s.files.lower, bodies{s.store}))
	if err != nil {
		err = fmt.Errorf("cannot roll back: %w", err)
	} else if r.failed = report.Failed; len(r.failed) > 0 {
		err = fmt.Errorf("cannot roll back all files: %d failed, the first is %s: %s", len(r.failed), api.Escape(r.failed[0].Path), r.failed[0].Text)
	}
	// Even what a failure left isn't the agent's doing.
	m, late := s.files.scanStill(ctx, open.Shared, touchedBy(plan))
	if late != nil {
		return errors.Join(err, late)
	}
	root, late := s.files.save(ctx, m)
	if late == nil {
		r.after = &checkpoint{root: root, manifest: m}
	}
	return errors.Join(err, late)
}

// settleFirst puts what changed since the last checkpoint into one, and says
// whose it is, before any of it is written over. The agent is frozen.
func (s *Session) settleFirst(ctx context.Context, cur *manifest.Manifest) error {
	t, err := s.settle(ctx, s.lastFiles, cur)
	if err != nil {
		return err
	}
	t.until = s.looked()
	done := make(chan error, 1)
	if err := s.call(ctx, func() {
		s.account(t, func(_ *checkpoint, err error) { done <- err })
	}); err != nil {
		return err
	}
	return s.wait(ctx, done)
}

// beginRollback records that the roll back begins. Its plan is the last that can
// be carried out: those that others were shown are of another state.
func (s *Session) beginRollback(ctx context.Context, r *rollback, rec *api.Rollback) error {
	done := make(chan error, 1)
	if err := s.call(ctx, func() {
		if r.rollbacks != s.rollbacks {
			done <- errStale
			return
		}
		s.shown, r.begun = nil, true
		s.rollbacks++
		rec.ID, rec.At, rec.Actions = s.rollbacks, time.Now().UTC(), r.plan.Actions
		for _, p := range r.left[:min(len(r.left), maxLeft)] {
			rec.Left = append(rec.Left, api.Escape(p))
		}
		rec.LeftMore = len(r.left) - len(rec.Left)
		started := *rec
		started.Open = true
		s.record(func(err error) { done <- err }, api.Event{Kind: "rollback.started", Rollback: &started})
	}); err != nil {
		return err
	}
	return s.wait(ctx, done)
}

// touchedBy lists the directories whose entries a plan may have changed: those
// above what it writes, since they are made in the upper, and its own.
func touchedBy(p *restore.Plan) []string {
	set := map[string]bool{"": true}
	for _, at := range p.Paths() {
		for ; at != "." && !set[at]; at = path.Dir(at) {
			set[at] = true
		}
	}
	var out []string
	for at := range set {
		out = append(out, at)
	}
	return out
}

// rolledBack records how a roll back went. The state that it left is a
// checkpoint of its own, so that it can be undone by another.
func (s *Session) rolledBack(r *rollback, rec *api.Rollback, err error, then func(error)) {
	if err != nil {
		rec.Failure, rec.Failed = api.Escape(err.Error()), troubles(r.failed)
	}
	copied := *rec
	var closing []*question
	events := []api.Event{{Kind: "rollback.done", Rollback: &copied}}
	if err != nil {
		events[0].Kind = "rollback.failed"
	}
	for _, a := range r.killed {
		a.undone = true
	}
	if r.after != nil {
		from := rec.Checkpoint
		if err != nil {
			from = s.lastFiles.id
		}
		s.lastFiles, s.watch.base = s.newCheckpoint(r.after.root, r.after.manifest, from), nil
		events = append(events, checkpointEvent(s.lastFiles, 0))
	}
	if err == nil {
		for _, n := range r.plan.Actions {
			a := s.actions[n-1]
			if was := a.Review; a.review(api.ReviewRolledBack) == nil {
				a.reviewed = was
				events = append(events, s.actionEvent(a, "rolledback"))
			}
			for _, q := range s.questions {
				if q.Subject == api.SubjectEdit && q.action == a && q.to(questionClosed, rec.By, "rollback") == nil {
					closed := q.Question
					events = append(events, api.Event{Kind: "question.closed", Question: &closed})
					closing = append(closing, q)
				}
			}
		}
		events = append(events, s.restored()...)
	}
	events = append(events, s.changed("counted"))
	s.files.bump()
	s.record(func(err error) {
		for _, q := range closing {
			s.forget(q)
			s.unfreeze(q)
		}
		then(err)
	}, events...)
}

// restored are the actions whose changes are back, since the files went forward
// again: an action's changes are there if the state of the files goes on from
// the checkpoint after them. Its review is what it was before it was taken back.
func (s *Session) restored() []api.Event {
	there := make(map[int64]bool)
	for id := s.lastFiles.id; id != 0 && !there[id]; id = s.line[id] {
		there[id] = true
	}
	var events []api.Event
	for _, a := range s.actions {
		if a.Review != api.ReviewRolledBack || len(a.spans) == 0 || !there[a.spans[len(a.spans)-1].to] {
			continue
		}
		if err := a.review(a.reviewed); err != nil {
			s.fail(err)
			return events
		}
		events = append(events, s.actionEvent(a, "restored"))
	}
	return events
}

// killTree ends an action's processes and all that they started.
func (s *Session) killTree(ctx context.Context, a *action) error {
	var tree []proc
	if err := s.call(ctx, func() { tree = s.tree(a) }); err != nil {
		return err
	}
	for _, p := range tree {
		if err := s.box.KillTree(ctx, p.pid, p.start); err != nil && !errors.Is(err, runner.ErrGone) {
			return fmt.Errorf("cannot kill process %s: %w", strconv.Itoa(p.pid), err)
		}
	}
	return nil
}
