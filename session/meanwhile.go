package session

import (
	"context"
	"maps"
	"slices"
	"strings"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// A plan is carried out as it was shown, however much was written since: under
// the freeze the files are compared with what was shown. Those that it names may
// have changed, gone or come again, else whoever does that all the time could not
// be rolled back: what they are now is in a checkpoint before it is written over.
// Everything else that changed since stays; if it is in the way of what goes back,
// the plan is stale.

// shownPath is what a plan says about one path.
type shownPath struct {
	now  *diff.File // what there is; nil for nothing
	then *diff.File // what goes back; nil for nothing
}

// paths lists what differs by path; a rename is two.
func paths(changed []diff.Change) map[string]shownPath {
	m := make(map[string]shownPath, len(changed))
	for _, c := range changed {
		if c.Status != diff.Renamed {
			m[c.Path] = shownPath{c.Old, c.New}
			continue
		}
		m[c.From] = shownPath{c.Old, nil}
		m[c.Path] = shownPath{nil, c.New}
	}
	return m
}

func isFolder(f *diff.File) bool { return f.Kind == manifest.KindDir }

func above(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// meanwhile lists what changed since the plan was shown and stays, sorted. It is
// an error that what was shown has become something else.
func (s *Session) meanwhile(ctx context.Context, r *rollback, cur *manifest.Manifest) ([]string, error) {
	if cur == r.source {
		return nil, nil
	}
	shown := paths(r.changed)
	differs, err := s.files.between(ctx, cur, r.target)
	if err != nil {
		return nil, err
	}
	for path, now := range paths(differs) {
		if was, ok := shown[path]; ok && (was.then == nil) != (now.then == nil) { // the host's
			return nil, errStale
		}
	}
	since, err := s.files.between(ctx, r.source, cur)
	if err != nil {
		return nil, err
	}
	holds := make(map[string]bool) // directories with something below that was shown
	for path := range shown {
		for path != "" {
			path = above(path)
			holds[path] = true
		}
	}
	left := paths(since)
	maps.DeleteFunc(left, func(path string, _ shownPath) bool { _, ok := shown[path]; return ok })
	for path, l := range left {
		// What stays and what goes back must have room beside each other.
		if holds[path] && l.then != nil && !isFolder(l.then) {
			return nil, errStale
		}
		for path != "" {
			path = above(path)
			if over, ok := shown[path]; ok && over.then != nil && !isFolder(over.then) {
				return nil, errStale
			}
		}
	}
	return slices.Sorted(maps.Keys(left)), nil
}

// takenBack says which actions a roll back takes back: those of the plan and
// those that began since and have ended, but for what made changes that stay.
func (s *Session) takenBack(ctx context.Context, r *rollback) error {
	type late struct {
		*action
		spans []stretch
	}
	var lates []late
	if err := s.call(ctx, func() {
		r.plan.Actions = slices.Clone(r.plan.Actions)
		for _, a := range s.actions[r.plan.ToBefore-1:] {
			planned := slices.Contains(r.plan.Actions, a.N)
			if !planned && (a.Review == api.ReviewRolledBack || a.agent != nil || a.State != api.ActionEnded || a.lingers) {
				continue
			}
			l := late{action: a}
			for _, st := range a.spans {
				if st.to > r.asOf {
					l.spans = append(l.spans, st)
				}
			}
			if len(l.spans) > 0 {
				lates = append(lates, l)
			}
		}
	}); err != nil {
		return err
	}
	stays := make(map[string]bool, len(r.left))
	for _, path := range r.left {
		stays[path] = true
	}
	left := make(map[stretch]bool)
	for _, l := range lates {
		remains := false
		for _, st := range l.spans {
			if _, known := left[st]; !known && len(stays) > 0 {
				some, err := s.holdsSome(ctx, st, stays)
				if err != nil {
					return err
				}
				left[st] = some
			}
			remains = remains || left[st]
		}
		i := slices.Index(r.plan.Actions, l.N)
		switch {
		case remains && i >= 0:
			r.plan.Actions = slices.Delete(r.plan.Actions, i, i+1)
		case !remains && i < 0:
			r.plan.Actions = append(r.plan.Actions, l.N)
		}
	}
	slices.Sort(r.plan.Actions)
	return nil
}

// holdsSome says whether one of some paths changed between two checkpoints.
func (s *Session) holdsSome(ctx context.Context, st stretch, some map[string]bool) (bool, error) {
	from, err := s.files.at(ctx, st.from)
	if err != nil {
		return false, err
	}
	to, err := s.files.at(ctx, st.to)
	if err != nil {
		return false, err
	}
	changed, err := s.files.between(ctx, from, to)
	if err != nil {
		return false, err
	}
	for path := range paths(changed) {
		if some[path] {
			return true, nil
		}
	}
	return false, nil
}
