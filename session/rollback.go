package session

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/zeebo/blake3"

	"stepbox/runner"
	"stepbox/runner/overlay"
	"stepbox/session/api"
)

// rollback is a plan with what carries it out.
type rollback struct {
	plan   api.RollbackPlan
	target *overlay.Manifest
	source *overlay.Manifest
	root   overlay.Hash // of source
	ends   []*action
	failed []api.Trouble // what couldn't be carried out after all
}

// troubles are problems as they are told, the first of them.
func troubles(ps []overlay.Problem) []api.Trouble {
	var out []api.Trouble
	for _, p := range ps[:min(len(ps), maxListed)] {
		out = append(out, api.Trouble{Path: api.Escape(p.Path), Why: api.Escape(trim(p.Text, maxReason))})
	}
	return out
}

// inPlace are the files whose inode is kept, since a living process holds it. A
// program or library that runs from one is better off with the old one.
func inPlace(o runner.OpenFiles) []string {
	var out []string
	for _, path := range append(o.Open, o.Shared...) {
		if !slices.Contains(o.Private, path) {
			out = append(out, path)
		}
	}
	return out
}

// RollbackPlan says what going back to just before an action would do.
func (s *Session) RollbackPlan(ctx context.Context, toBefore int) (api.RollbackPlan, error) {
	r, err := s.plan(ctx, toBefore)
	if err != nil {
		return api.RollbackPlan{}, err
	}
	return r.plan, nil
}

// plan compares the files as they are with the checkpoint before an action.
func (s *Session) plan(ctx context.Context, toBefore int) (*rollback, error) {
	r := &rollback{plan: api.RollbackPlan{ToBefore: toBefore, Actions: []int{}, Files: []api.Change{}}}
	var before int64
	var bad error
	err := s.call(ctx, func() {
		a := s.action(toBefore)
		switch {
		case a == nil:
			bad = problem(api.CodeNotFound, "there is no action %d", toBefore)
			return
		case a.Before == 0:
			bad = problem(api.CodeInvalid, "action %d has no checkpoint: it is housekeeping", toBefore)
			return
		}
		before = a.Before
		for _, o := range s.actions[toBefore-1:] {
			if o.Housekeeping || o.Review == api.ReviewRolledBack {
				continue
			}
			switch {
			case o.agent == nil && (o.State == api.ActionRunning || o.lingers):
				r.ends = append(r.ends, o)
				r.plan.Ends = append(r.plan.Ends, o.N)
				r.plan.Actions = append(r.plan.Actions, o.N)
			case o.State == api.ActionEnded && o.Files > 0:
				r.plan.Actions = append(r.plan.Actions, o.N)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if bad != nil {
		return nil, bad
	}
	if r.target, err = s.files.at(ctx, before); err != nil {
		return nil, err
	}
	if r.source, err = s.files.scan(ctx); err != nil {
		return nil, err
	}
	if r.root, err = s.files.save(ctx, r.source); err != nil {
		return nil, err
	}
	changed, err := s.files.between(ctx, r.source, r.target)
	if err != nil {
		return nil, err
	}
	r.plan.Files = s.files.list(changed, maxListed)
	r.plan.More = len(changed) - len(r.plan.Files)
	steps, err := overlay.PlanRestore(ctx, s.files.lower, r.source, r.target, overlay.RestoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot plan the roll back: %w", err)
	}
	r.plan.Problems = troubles(steps.Problems)
	r.plan.Hash = r.digest(before, changed)
	return r, nil
}

// digest covers what a person was shown: which files are put back to what, and
// which actions end. What a file holds that is put back may change meanwhile: a
// program that writes on and on doesn't keep it from being rolled back.
func (r *rollback) digest(before int64, changed []overlay.Change) string {
	h := blake3.New()
	_, _ = fmt.Fprintf(h, "%d %d %v", r.plan.ToBefore, before, r.plan.Ends) // a hash never fails
	for _, c := range changed {
		_, _ = fmt.Fprintf(h, " %q %s %s", c.Path, c.Status, c.Kind())
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Rollback carries out the plan that was shown.
func (s *Session) Rollback(ctx context.Context, req api.RollbackRequest) (api.Rollback, error) {
	r, err := s.plan(ctx, req.ToBefore)
	if err != nil {
		return api.Rollback{}, err
	}
	if r.plan.Hash != req.Hash {
		return api.Rollback{}, problem(api.CodeStale, "the files have changed since the plan was made; look at it again")
	}
	// Once it has begun it isn't stopped halfway by a client that goes away.
	return s.carryOut(context.WithoutCancel(ctx), r, req.By)
}

// takeBack answers an edit's question with a roll back to just before it.
func (s *Session) takeBack(ctx context.Context, q *question, d api.Decision) error {
	r, err := s.plan(ctx, q.Action)
	if err != nil {
		return err
	}
	if len(r.plan.Actions) > 1 {
		return problem(api.CodeBusy, "later actions changed files too (%v); roll back to before action %d to take them back as well, or keep its changes",
			r.plan.Actions[1:], q.Action)
	}
	if _, err := s.carryOut(ctx, r, d.By); err != nil {
		return err
	}
	done := make(chan error, 1)
	if err := s.call(ctx, func() {
		if q.state == questionClosed { // the roll back closed it, as it does all that it covers
			done <- nil
			return
		}
		s.close(q, d, func(err error) { done <- err })
	}); err != nil {
		return err
	}
	return s.wait(ctx, done)
}

// carryOut restores files through the merged view while the agent is frozen.
func (s *Session) carryOut(ctx context.Context, r *rollback, by string) (api.Rollback, error) {
	rec := api.Rollback{ToBefore: r.plan.ToBefore, Actions: r.plan.Actions, Files: len(r.plan.Files) + r.plan.More, By: api.Escape(trim(by, 64))}
	done := make(chan error, 1)
	if err := s.request(ctx, func() {
		s.rollbacks++
		rec.ID, rec.At, rec.Checkpoint = s.rollbacks, time.Now().UTC(), s.actions[r.plan.ToBefore-1].Before
		copied := rec
		s.record(func(err error) { done <- err }, api.Event{Kind: "rollback.started", Rollback: &copied})
	}); err != nil {
		return rec, err
	}
	if err := s.wait(ctx, done); err != nil {
		return rec, err
	}
	done = make(chan error, 1)
	if err := s.request(ctx, func() {
		s.alone(func() error { return s.restore(ctx, r) }, func(err error, next func()) {
			s.rolledBack(r, &rec, err, func(late error) {
				next()
				done <- errors.Join(err, late)
			})
		})
	}); err != nil {
		return rec, err
	}
	if err := s.wait(ctx, done); err != nil {
		rec.Failure = err.Error()
		return rec, err
	}
	return rec, nil
}

// restore ends what has to end and then writes the files. It is a job of the
// worker's: no checkpoint is taken meanwhile.
func (s *Session) restore(ctx context.Context, r *rollback) error {
	for _, a := range r.ends {
		if err := s.killTree(ctx, a); err != nil {
			return fmt.Errorf("cannot end action %d first: %w", a.N, err)
		}
	}
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
	plan, err := overlay.PlanRestore(ctx, s.files.lower, cur, r.target, overlay.RestoreOptions{InPlace: inPlace(open)})
	if err != nil {
		return fmt.Errorf("cannot plan the roll back: %w", err)
	}
	report, err := s.box.Restore(ctx, plan, overlay.NewSource(s.files.lower, bodies{s.store}))
	if err != nil {
		return fmt.Errorf("cannot roll back: %w", err)
	}
	if failed := report.Failed; len(failed) > 0 {
		r.failed = troubles(failed)
		return fmt.Errorf("cannot roll back all files: %d failed, the first is %s: %s", len(failed), api.Escape(failed[0].Path), failed[0].Text)
	}
	m, err := s.files.scan(ctx)
	if err != nil {
		return err
	}
	r.source = m
	r.root, err = s.files.save(ctx, m)
	return err
}

// rolledBack records how a roll back went. The state that it left is a
// checkpoint of its own, so that it can be undone by another.
func (s *Session) rolledBack(r *rollback, rec *api.Rollback, err error, then func(error)) {
	copied := *rec
	var closing []*question
	events := []api.Event{{Kind: "rollback.done", Rollback: &copied}}
	if err != nil {
		copied.Failure, copied.Failed = api.Escape(err.Error()), r.failed
		events[0].Kind = "rollback.failed"
	} else {
		cp := s.newCheckpoint(r.root, r.source, rec.Checkpoint)
		s.lastFiles, s.watch.base = cp, nil
		events = append(events, api.Event{Kind: "checkpoint", Checkpoint: &api.Checkpoint{
			ID: cp.id, At: time.Now().UTC(), Root: r.root.String(), Files: r.source.Len(),
		}})
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
	}
	if err == nil {
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
