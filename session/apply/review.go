package apply

import (
	"cmp"
	"context"
	"math"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/session/api"
	"stepbox/session/files"
)

// unreviewed lists those of some changes that aren't reviewed, and says of each path
// why. An action's changes are reviewed when they were kept; while it runs, all that
// changed since it began may be its own. Of what one that was kept made anew or deleted,
// nothing is left that others made before.
func (a *Applier) unreviewed(ctx context.Context, s api.Session, r api.Selection, sel files.Selected, changes []diff.Change) ([]diff.Change, map[string]string, error) {
	if len(changes) == 0 {
		return nil, nil, nil
	}
	actions, err := a.History.Actions(ctx, s.ID)
	if err != nil {
		return nil, nil, err
	}
	var all []span
	kept := false
	for _, x := range actions {
		switch {
		case slices.Contains(r.Without, x.N), len(r.Actions) > 0 && !slices.Contains(r.Actions, x.N):
		case x.Review == api.ReviewKept:
			kept = true
			all = append(all, spans(x, true)...)
		case x.Review == api.ReviewOpen, x.State == api.ActionRunning && x.Before != 0:
			all = append(all, spans(x, false)...)
		}
	}
	// What is kept of one time comes first: of what others did meanwhile it isn't known whose it is.
	slices.SortStableFunc(all, func(x, y span) int {
		if x.to == y.to && x.kept != y.kept {
			return map[bool]int{true: -1, false: 1}[x.kept]
		}
		return cmp.Compare(x.to, y.to)
	})
	open := map[string][]int{} // the actions, by path
	for _, sp := range all {
		if sp.kept && len(open) == 0 {
			continue
		}
		made, err := sp.made(ctx, sel)
		if err != nil {
			return nil, nil, err
		}
		for i := range made {
			c := &made[i]
			for _, path := range c.Paths() {
				switch {
				case !sp.kept:
					open[path] = append(open[path], sp.n)
				case c.Status == diff.Added || c.Status == diff.Deleted:
					delete(open, path)
				}
			}
		}
	}
	var out []diff.Change
	why := map[string]string{}
	for i := range changes {
		var by []int
		for _, path := range changes[i].Paths() {
			by = append(by, open[path]...)
		}
		switch by = slices.Compact(slices.Sorted(slices.Values(by))); {
		case len(by) == 1:
			why[changes[i].Path] = api.Numbered(by) + " isn't reviewed"
		case len(by) > 1:
			why[changes[i].Path] = api.Numbered(by) + " aren't reviewed"
		case kept:
			continue
		default:
			why[changes[i].Path] = "no action of it was reviewed"
		}
		out = append(out, changes[i])
	}
	return out, why, nil
}

// span is a time in which an action changed files, between two checkpoints.
type span struct {
	n        int
	kept     bool
	from, to int64 // the second is newest for what runs
}

const newest = math.MaxInt64

// spans are an action's. While it runs, all since it began may be its own.
func spans(x api.Action, kept bool) (out []span) {
	switch {
	case x.State == api.ActionRunning:
		return []span{{x.N, kept, x.Before, newest}}
	case len(x.Spans) == 0 && x.After > x.Before && x.Before != 0: // recorded before they were
		return []span{{x.N, kept, x.Before, x.After}}
	}
	for _, s := range x.Spans {
		out = append(out, span{x.N, kept, s.From, s.To})
	}
	return out
}

// made lists what changed in a span.
func (s span) made(ctx context.Context, sel files.Selected) ([]diff.Change, error) {
	from, err := sel.Files.At(ctx, s.from)
	to := sel.Now
	if err == nil && s.to != newest {
		to, err = sel.Files.At(ctx, s.to)
	}
	if err != nil {
		return nil, err
	}
	return sel.Files.Between(ctx, from, to)
}

// open lists what is to be looked at, with why.
func (b *planner) open(changes []diff.Change, why map[string]string) (out []api.Open) {
	for i, c := range b.sel.Files.List(changes) {
		path := changes[i].Path
		o := api.Open{Change: c, Why: why[path]}
		if f := b.rules.reviews(&changes[i]); f != nil && o.Why == "" {
			o.Why = "a policy wants it looked at: " + api.Escape(standing(f))
		}
		out = append(out, o)
	}
	return out
}
