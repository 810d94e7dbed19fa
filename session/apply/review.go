package apply

import (
	"context"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/session/api"
	"stepbox/session/files"
)

// unreviewed lists those of some changes that belong to no reviewed action. An
// action's changes are reviewed when they were kept; while it runs, all that
// changed since it began may be its own.
func (a *Applier) unreviewed(ctx context.Context, s api.Session, r api.Selection, sel files.Selected, changes []diff.Change) ([]diff.Change, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	actions, err := a.History.Actions(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	var open []api.Action
	kept := false
	for _, x := range actions {
		switch {
		case slices.Contains(r.Without, x.N), len(r.Actions) > 0 && !slices.Contains(r.Actions, x.N):
		case x.Review == api.ReviewKept:
			kept = true
		case x.Review == api.ReviewOpen, x.State == api.ActionRunning && x.Before != 0:
			open = append(open, x)
		}
	}
	switch {
	case !kept:
		return changes, nil
	case len(open) == 0:
		return nil, nil
	}
	touched := map[string]bool{}
	for _, x := range open {
		from, to, err := sel.Files.OfAction(ctx, x, sel.To)
		if err != nil {
			return nil, err
		}
		made, err := sel.Files.Between(ctx, from, to)
		if err != nil {
			return nil, err
		}
		for i := range made {
			for _, path := range made[i].Paths() {
				touched[path] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c diff.Change) bool {
		return !slices.ContainsFunc(c.Paths(), func(path string) bool { return touched[path] })
	}), nil
}
