package session

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/zeebo/blake3"

	"stepbox/runner"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
)

// rollback is a plan with what carries it out.
type rollback struct {
	plan      api.RollbackPlan
	before    int64 // the checkpoint that it goes back to
	target    *manifest.Manifest
	source    *manifest.Manifest // what there was when it was made
	asOf      int64              // the newest checkpoint then
	rollbacks int64              // how many there were then
	changed   []diff.Change      // from source to target
	ends      []*action

	// What carrying it out comes to.
	left   []string           // what changed since it was shown, and stays
	killed []*action          // of ends
	begun  bool               // it is in the record, and files may have been written
	after  *checkpoint        // the state that it left, without a number; nil: not known
	failed []manifest.Problem // what couldn't be carried out after all
}

var errStale = api.Problemf(api.CodeStale, "the files have changed since the plan was made; look at it again (while the session is paused they stay as they are)")

// maxShown is how many plans can be confirmed: those shown last.
const maxShown = 8

// troubles are problems as they are told, the first of them.
func troubles(ps []manifest.Problem) []api.Trouble {
	var out []api.Trouble
	for _, p := range ps[:min(len(ps), maxListed)] {
		out = append(out, api.Trouble{Path: api.Escape(p.Path), Why: api.Escape(api.Trim(p.Text, maxReason))})
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
	err = s.call(ctx, func() {
		same := func(o *rollback) bool { return o.plan.Hash == r.plan.Hash }
		s.shown = append(slices.DeleteFunc(s.shown, same), r)
		s.shown = s.shown[max(len(s.shown)-maxShown, 0):]
	})
	return r.plan, err
}

// plan compares the files as they are with the checkpoint before an action.
func (s *Session) plan(ctx context.Context, toBefore int) (*rollback, error) {
	r := &rollback{plan: api.RollbackPlan{ToBefore: toBefore, Actions: []int{}, Files: []api.Change{}}}
	var bad error
	err := s.call(ctx, func() {
		a := s.action(toBefore)
		switch {
		case a == nil:
			bad = api.Problemf(api.CodeNotFound, "there is no action %d", toBefore)
			return
		case a.Before == 0:
			bad = api.Problemf(api.CodeInvalid, "action %d has no checkpoint: it is housekeeping", toBefore)
			return
		}
		r.before, r.asOf, r.rollbacks = a.Before, s.newest, s.rollbacks
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
	if r.target, err = s.files.at(ctx, r.before); err != nil {
		return nil, err
	}
	if r.source, err = s.scanToShow(ctx); err != nil {
		return nil, err
	}
	if r.changed, err = s.files.between(ctx, r.source, r.target); err != nil {
		return nil, err
	}
	r.plan.Files = s.files.list(r.changed, maxListed)
	r.plan.More = len(r.changed) - len(r.plan.Files)
	steps, err := restore.NewPlan(ctx, s.files.lower, r.source, r.target, restore.Options{})
	if err != nil {
		return nil, fmt.Errorf("cannot plan the roll back: %w", err)
	}
	r.plan.Problems = troubles(steps.Problems)
	r.plan.Hash = r.digest()
	return r, nil
}

// scanToShow takes the state of the files for a plan. What is written while it
// looks may be missed altogether (a folder that becomes a file and a folder again):
// then the agent is frozen for a second look, if it can be.
func (s *Session) scanToShow(ctx context.Context) (*manifest.Manifest, error) {
	m, err := s.files.scan(ctx)
	if err != nil {
		return nil, err
	}
	if moved, err := s.files.moved(ctx); err != nil || !moved {
		return m, err
	}
	thaw, err := s.freezer.freeze(ctx)
	if err != nil {
		return s.files.scan(ctx)
	}
	m, err = s.files.scanStill(ctx, s.box.OpenFiles().Shared, nil)
	return m, errors.Join(err, thaw())
}

// digest names the plan: which files are put back to what, and which actions end.
func (r *rollback) digest() string {
	h := blake3.New()
	_, _ = fmt.Fprintf(h, "%d %d %v", r.plan.ToBefore, r.before, r.plan.Ends) // a hash never fails
	for _, c := range r.changed {
		_, _ = fmt.Fprintf(h, " %q %s %s %q", c.Path, c.Status, c.Kind(), c.From)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Rollback carries out the plan that was shown. Once it has begun it isn't
// stopped halfway by a client that goes away.
func (s *Session) Rollback(ctx context.Context, req api.RollbackRequest) (api.Rollback, error) {
	var r *rollback
	if err := s.request(ctx, func() {
		for _, o := range s.shown {
			if o.plan.Hash == req.Hash && o.plan.ToBefore == req.ToBefore {
				r = o
			}
		}
	}); err != nil {
		return api.Rollback{}, err
	}
	if r == nil {
		return api.Rollback{}, errStale
	}
	copied := *r // it may be asked for twice
	return s.carryOut(context.WithoutCancel(ctx), &copied, req.By)
}

// takeBack answers an edit's question with a roll back to just before it.
func (s *Session) takeBack(ctx context.Context, q *question, d api.Decision) error {
	r, err := s.plan(ctx, q.Action)
	if err != nil {
		return err
	}
	if len(r.plan.Actions) > 1 {
		return api.Problemf(api.CodeBusy, "later actions changed files too (%v); roll back to before action %d to take them back as well, or keep its changes",
			r.plan.Actions[1:], q.Action)
	}
	if _, err := s.carryOut(context.WithoutCancel(ctx), r, d.By); err != nil {
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
