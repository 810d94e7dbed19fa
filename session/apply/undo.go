package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/project"
	"stepbox/store"
)

// UndoPlan says what undoing an apply would do.
func (a *Applier) UndoPlan(ctx context.Context, id string, n int64) (api.ApplyPlan, error) {
	p, _, err := a.undoing(ctx, id, n)
	if err != nil {
		return api.ApplyPlan{}, err
	}
	return p.ApplyPlan, nil
}

// undoing plans undoing an apply: each path goes back to what it was, if it still
// is as the apply left it. All of it goes back, or none.
func (a *Applier) undoing(ctx context.Context, id string, n int64) (*plan, api.Apply, error) {
	rec, err := ledger.Doc[api.Apply](ctx, a.Store, id, store.KindApply, n)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, rec, api.Problemf(api.CodeNotFound, "there is no apply %d of session %s", n, api.Escape(api.Trim(id, 80)))
	case err != nil:
		return nil, rec, err
	case rec.State != api.ApplyDone:
		return nil, rec, api.Problemf(api.CodeInvalid, "apply %d can't be undone: it is %s", n, rec.State)
	}
	s, err := a.History.Session(ctx, id)
	if err != nil {
		return nil, rec, err
	}
	if rec.Journal == "" {
		return nil, rec, api.Problemf(api.CodeInvalid, "apply %d wrote no files: there is nothing to be undone", n)
	}
	j, err := a.Journals.Read(rec.Journal)
	if err != nil {
		return nil, rec, fmt.Errorf("cannot undo apply %d: %w", n, err)
	}
	folder, err := a.open(s)
	if err != nil {
		return nil, rec, err
	}
	defer folder.Close()
	b := a.planner(ctx, s, folder, files.Selected{Scope: files.Scope{Files: files.Recorded(a.Store, id)}, Checkpoint: rec.Checkpoint})
	for _, step := range j.Steps {
		if err := b.back(step); err != nil {
			return nil, rec, err
		}
	}
	b.order()
	if err := b.list(); err != nil {
		return nil, rec, err
	}
	b.p.Hash = b.p.digest(0)
	switch c := b.p.Conflicts; {
	case len(c) > 0:
		b.p.Blocked = fmt.Sprintf("%d of its files were changed since: put them back as they were, or undo the rest by hand", len(c))
	case len(b.p.steps) == 0:
		b.p.Blocked = "there is nothing to be put back"
	}
	return b.p, rec, nil
}

// back plans to take a step back.
func (b *planner) back(step project.Step) error {
	has, err := b.look(step.Path)
	if err != nil && b.fatal(err) {
		return err
	}
	c := between(step.Path, step.New, fileOf(step.Path, step.Old))
	switch {
	case err != nil:
		b.conflicts(&c, api.Escape(api.Trim(err.Error(), maxReason)))
	case has.Same(step.Old):
		b.p.There++
	case has.Same(step.New):
		s := project.Step{Path: step.Path, Old: has, New: step.Old}
		b.steps[step.Path] = s
		if what := s.Beyond(); what != "" {
			b.left(step.Path, "its content and permissions come back, and not "+what)
		}
		if c.Kind() != manifest.KindDir || c.Status == diff.Modified || c.Status == diff.Retyped {
			b.applied = append(b.applied, c)
		}
	case has.Absent():
		b.conflicts(&c, "it was deleted in the project since the apply")
	default:
		b.conflicts(&c, "it was changed in the project since the apply")
	}
	return nil
}

// conflicts notes that a change is in conflict.
func (b *planner) conflicts(c *diff.Change, why string) *api.Conflict {
	listed := b.sel.Files.List([]diff.Change{*c})[0]
	b.p.Conflicts = append(b.p.Conflicts, api.Conflict{Key: listed.Key, Path: listed.Path, Why: why})
	return &b.p.Conflicts[len(b.p.Conflicts)-1]
}

// Undo undoes an apply whose plan was shown.
func (a *Applier) Undo(ctx context.Context, id string, n int64, r api.UndoRequest, tell func(api.Progress)) (api.Apply, error) {
	if r.Hash == "" {
		return api.Apply{}, api.Problemf(api.CodeInvalid, "undoing an apply names the hash of the plan that was shown")
	}
	o, release, err := a.hold(ctx, id)
	if err != nil {
		return api.Apply{}, err
	}
	defer release()
	p, rec, err := a.undoing(ctx, id, n)
	switch {
	case err != nil:
		return rec, err
	case p.Hash != r.Hash:
		return rec, ErrStale
	case p.Blocked != "":
		return rec, api.Problemf(api.CodeBusy, "nothing was undone: %s", p.Blocked)
	}
	f, err := a.open(p.session)
	if err != nil {
		return rec, err
	}
	defer f.Close()
	rec.State, rec.Failure = api.ApplyUndoing, ""
	if err := o.Record(ctx, eventUndoing, rec, a.counting(ctx, id, eventUndoing)); err != nil {
		return rec, err
	}
	left, err := f.Undo(ctx, a.Journals, rec.Journal, throttled("undo", tell))
	rec.Left = files.Troubles(left[:min(len(left), maxPaths)])
	if err != nil {
		err = inWords(err)
		rec.State, rec.Failure = api.ApplyDone, "it couldn't be undone: "+api.Escape(api.Trim(err.Error(), maxReason))
		return rec, errors.Join(err, o.Record(context.WithoutCancel(ctx), eventStays, rec, a.counting(ctx, id, eventStays)))
	}
	rec.State, rec.UndoneAt = api.ApplyUndone, time.Now().UTC()
	return rec, o.Record(context.WithoutCancel(ctx), eventUndone, rec, a.counting(ctx, id, eventUndone))
}
