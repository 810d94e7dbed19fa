package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/loop"
	"stepbox/store"
)

// maxShown is how many plans can be confirmed: those shown last.
const maxShown = 8

// maxLeft bounds the names of files that a roll back left, in its result.
const maxLeft = 100

// RollbackPlan says what a roll back would do.
func (s *Session) RollbackPlan(ctx context.Context, req api.RollbackRequest) (api.RollbackPlan, error) {
	if req.Home != nil {
		return s.homePlan(ctx, req)
	}
	p, err := s.plan(ctx, req)
	if err != nil {
		return api.RollbackPlan{}, err
	}
	err = s.loop.Call(ctx, func() {
		same := func(o *files.Plan) bool { return o.Shown.Hash == p.Shown.Hash }
		s.shown = append(slices.DeleteFunc(s.shown, same), p)
		s.shown = s.shown[max(len(s.shown)-maxShown, 0):]
	})
	return p.Shown, err
}

// plan plans a roll back, as the session stands now.
func (s *Session) plan(ctx context.Context, req api.RollbackRequest) (*files.Plan, error) {
	now := files.Standing{ToBefore: req.ToBefore, Selection: req.Selection, Resolve: req.Resolve}
	if err := s.catchTurn(ctx); err != nil {
		return nil, err
	}
	switch {
	case req.ToBefore != 0 && req.Selection == nil && req.Redo == 0:
	case req.ToBefore == 0 && (req.Selection == nil) != (req.Redo == 0):
		// First it has to be known whose all changes are that were made so far.
		if err := s.loop.Do(ctx, func(done func(error)) {
			s.checkpoint(func(_ *files.Checkpoint, err error) { done(err) })
		}); err != nil {
			return nil, err
		}
	default:
		return nil, api.Problemf(api.CodeInvalid, "a rollback goes to before an action, takes a selection back, or has what an earlier one took come again: one of these")
	}
	if req.Redo != 0 {
		r, err := ledger.Doc[api.Rollback](ctx, s.store, s.cfg.ID, store.KindRollback, req.Redo)
		if errors.Is(err, store.ErrNotFound) {
			return nil, api.Problemf(api.CodeNotFound, "there is no rollback %d", req.Redo)
		}
		if err != nil {
			return nil, err
		}
		now.Redo = &r
	}
	var bad error
	if err := s.loop.Call(ctx, func() {
		now.Newest, now.Rollbacks = s.line.Newest(), s.rollbacks
		if req.ToBefore == 0 {
			now.Actions, now.Turned = s.actions.since(1), s.line.Turns(0)
			if now.Redo != nil {
				s.actions.were(now.Actions, s.line.There(now.Redo.Before))
			}
			return
		}
		switch a := s.actions.at(req.ToBefore); {
		case a == nil:
			bad = api.Problemf(api.CodeNotFound, "there is no #%d", req.ToBefore)
		case a.Before == 0:
			bad = api.Problemf(api.CodeInvalid, "#%d has no checkpoint: it is housekeeping", req.ToBefore)
		default:
			now.Checkpoint, now.Actions, now.Turned = a.Before, s.actions.since(req.ToBefore), s.line.Turns(a.Before)
		}
	}); err != nil {
		return nil, err
	}
	if bad != nil {
		return nil, bad
	}
	return s.restorer.Plan(ctx, now)
}

// catchTurn asks the project for what shows through, in a session that let go of files as
// it was resumed: an apply may have been undone since, or a person have gone on.
func (s *Session) catchTurn(ctx context.Context) error {
	turned := false
	if err := s.loop.Call(ctx, func() { turned = len(s.line.Turns(0)) > 0 }); err != nil || !turned {
		return err
	}
	return s.files.ScanThrough(ctx)
}

// Rollback carries out the plan that was shown. Once it has begun it isn't
// stopped halfway by a client that goes away.
func (s *Session) Rollback(ctx context.Context, req api.RollbackRequest) (api.Rollback, error) {
	if req.Home != nil {
		return s.homeRollback(ctx, req)
	}
	var p *files.Plan
	if err := s.loop.Request(ctx, func() {
		for _, o := range s.shown {
			if o.Shown.Hash == req.Hash && reflect.DeepEqual(o.Shown.RollbackTarget, req.RollbackTarget) {
				p = o
			}
		}
	}); err != nil {
		return api.Rollback{}, err
	}
	if p == nil {
		return api.Rollback{}, files.ErrStale
	}
	return s.carryOut(context.WithoutCancel(ctx), p, req.By, req.Reason)
}

// takeBack answers an edit's question with a roll back to just before it.
func (s *Session) takeBack(ctx context.Context, q *question, d api.Decision) error {
	p, err := s.plan(ctx, api.RollbackRequest{RollbackTarget: api.Before(q.Action)})
	if err != nil {
		return err
	}
	if len(p.Shown.Actions) > 1 { // later ones changed files too: those stay
		only := api.RollbackTarget{Selection: &api.Selection{Actions: []int{q.Action}}}
		if p, err = s.plan(ctx, api.RollbackRequest{RollbackTarget: only}); err != nil {
			return err
		}
		if n := len(p.Shown.Conflicts) + len(p.Shown.Problems); n > 0 {
			return api.Problemf(api.CodeBusy, "#%d can't be rolled back alone: %d of its files were changed by later ones too (%s); roll it back with stepbox rollback --action %d, which shows them, or keep its changes",
				q.Action, n, firstOf(p.Shown), q.Action)
		}
	}
	if _, err := s.carryOut(context.WithoutCancel(ctx), p, d.By, d.Reason); err != nil {
		return err
	}
	return s.loop.Do(ctx, func(done func(error)) {
		if q.state == questionClosed { // the roll back closed it, as it does all that it covers
			done(nil)
			return
		}
		s.close(q, d, done)
	})
}

// firstOf names a file that a plan doesn't put back.
func firstOf(p api.RollbackPlan) string {
	if len(p.Conflicts) > 0 {
		return p.Conflicts[0].Path
	}
	return p.Problems[0].Path
}

// carryOut is a job of the worker's: no checkpoint is taken meanwhile, but for
// the roll back's own.
func (s *Session) carryOut(ctx context.Context, p *files.Plan, by, reason string) (api.Rollback, error) {
	rec := api.Rollback{RollbackTarget: p.Target(), Away: p.Shown.Away, Checkpoint: p.Checkpoint, Files: p.Files(), By: api.Escape(api.Trim(by, 64)), Reason: api.Escape(api.Trim(strings.TrimSpace(reason), maxReason))}
	return loop.Ask(ctx, s.loop, func(reply func(api.Rollback, error)) {
		var o *files.Outcome
		s.loop.Alone(func() error {
			var err error
			o, err = s.restorer.CarryOut(ctx, p, &desk{s, &rec})
			return err
		}, func(err error, next func()) {
			if !o.Begun {
				next()
				reply(rec, err)
				return
			}
			s.rolledBack(o, &rec, err, func(late error) {
				next()
				reply(rec, errors.Join(err, late))
			})
		})
	})
}

// desk answers what is asked while a roll back is carried out.
type desk struct {
	s   *Session
	rec *api.Rollback
}

// Last is files.Desk's.
func (d *desk) Last() *files.Checkpoint { return d.s.line.Last } // nobody else has the worker's turn

// Account is files.Desk's.
func (d *desk) Account(ctx context.Context, t files.Taken) error {
	return d.s.loop.Do(ctx, func(done func(error)) {
		d.s.account(t, d.s.accountant.Ran(t.Until, t.Froze, d.s.roster.ownerOf), true, func(_ *files.Checkpoint, err error) { done(err) })
	})
}

// Since is files.Desk's.
func (d *desk) Since(ctx context.Context, action int) (out []files.Past, err error) {
	err = d.s.loop.Call(ctx, func() { out = d.s.actions.since(action) })
	return out, err
}

// Begin is files.Desk's. The plan is the last that can be carried out: those
// that others were shown are of another state.
func (d *desk) Begin(ctx context.Context, o *files.Outcome) error {
	s := d.s
	return s.loop.Do(ctx, func(done func(error)) {
		if o.Rollbacks != s.rollbacks {
			done(files.ErrStale)
			return
		}
		if d.rec.By == byAgent { // a person may have been asked meanwhile, or have answered
			for _, n := range o.Actions {
				if err := s.takesBack(s.actions.at(n)); err != nil {
					done(err)
					return
				}
			}
		}
		s.shown, o.Begun = nil, true
		s.rollbacks++
		d.rec.Before = s.line.Last.ID
		d.rec.ID, d.rec.At, d.rec.Actions = s.rollbacks, time.Now().UTC(), o.Actions
		for _, p := range o.Left[:min(len(o.Left), maxLeft)] {
			d.rec.Left = append(d.rec.Left, api.Escape(p))
		}
		d.rec.LeftMore = len(o.Left) - len(d.rec.Left)
		started := *d.rec
		started.Open = true
		s.record(done, api.Event{Kind: "rollback.started", Rollback: &started})
	})
}

// End is files.Desk's.
func (d *desk) End(ctx context.Context, n int) error {
	var a *action
	if err := d.s.loop.Call(ctx, func() { a = d.s.actions.at(n) }); err != nil {
		return err
	}
	return d.s.killTree(ctx, a)
}

// rolledBack records how a roll back went. The state that it left is a
// checkpoint of its own, so that it can be undone by another.
func (s *Session) rolledBack(o *files.Outcome, rec *api.Rollback, err error, then func(error)) {
	if err != nil {
		rec.Failure, rec.Failed = api.Escape(err.Error()), files.Troubles(o.Failed)
	}
	copied := *rec
	var closing []*question
	events := []api.Event{{Kind: "rollback.done", Rollback: &copied}}
	if err != nil {
		events[0].Kind = "rollback.failed"
	}
	for _, n := range o.Killed {
		s.actions.at(n).undone = true
	}
	if o.After != nil {
		from := rec.Checkpoint
		if err != nil || o.ToBefore == 0 { // a selection's state goes on from the one before it
			from = s.line.Last.ID
		}
		s.line.Last = s.newCheckpoint(o.After.Root, o.After.Manifest, from)
		s.accountant.Begin(nil, nil)
		events = append(events, s.line.Event(s.line.Last, 0))
		copied.After, rec.After = s.line.Last.ID, s.line.Last.ID
	}
	if err == nil {
		s.info.Rollbacks++
		for _, n := range o.Actions {
			a := s.actions.at(n)
			if o.PutsIn() {
				continue
			}
			if was := a.Review; a.review(api.ReviewRolledBack) == nil {
				a.Reviewed = was
				events = append(events, s.standing(a, "rolledback")...)
			}
			for _, q := range s.questions {
				if q.edit() && q.action == a && q.to(questionClosed, rec.By, "rollback") == nil {
					events = append(events, q.event("closed"))
					closing = append(closing, q)
				}
			}
		}
		s.actions.moved(rec)
		if o.Files() > 0 && rec.By != byAgent {
			s.word = tellOf(o, &s.actions)
			if rec.Reason != "" {
				s.word += "; the reason: " + rec.Reason
			}
			s.note(false, "the agent is told with its next command: %s", s.word)
		}
		for _, a := range s.actions.restored(s.line.There(s.line.Last.ID)) {
			if err := a.review(a.Reviewed); err != nil {
				s.fail(err)
				break
			}
			a.Reviewed = api.ReviewNone
			events = append(events, s.standing(a, "restored")...)
		}
		if o.Redo != nil {
			again := *o.Redo
			again.Redone = true
			events = append(events, api.Event{Kind: "rollback.redone", Rollback: &again})
		}
	}
	events = append(events, s.changed("counted"))
	s.files.Bump()
	s.record(func(err error) {
		for _, q := range closing {
			s.forget(q)
			s.unfreeze(q)
		}
		then(err)
	}, events...)
}

// killTree ends an action's processes and all that they started.
func (s *Session) killTree(ctx context.Context, a *action) error {
	var tree []proc
	if err := s.loop.Call(ctx, func() { tree = s.roster.tree(a) }); err != nil {
		return err
	}
	for _, p := range tree {
		if err := s.box.KillTree(ctx, p.pid, p.start); err != nil && !errors.Is(err, runner.ErrGone) {
			return fmt.Errorf("cannot kill process %s: %w", strconv.Itoa(p.pid), err)
		}
	}
	return nil
}
