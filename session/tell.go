package session

import (
	"context"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
)

// told is what an action changed.
type told struct {
	changed        []diff.Change
	added, removed int         // lines
	to             int64       // the last checkpoint that has changes of its
	after          int64       // the checkpoint that has them and no others' since the one before it
	made           *checkpoint // that one, unless it is a state that really was
	err            error
}

// told finds out what an action changed, and then goes on in the loop.
func (s *Session) told(a *action, then func(told)) {
	before, spans := a.Before, slices.Clone(a.spans)
	s.aside(func() func() {
		t := s.tell(before, spans)
		return func() {
			s.number(a, &t)
			then(t)
		}
	})
}

// number records the state that holds an action's changes alone, if there is one.
func (s *Session) number(a *action, t *told) {
	if t.made == nil {
		return
	}
	t.made = s.newCheckpoint(t.made.root, t.made.manifest, 0)
	t.after = t.made.id
	s.record(nil, checkpointEvent(t.made, a.N))
}

// tell compares the state before an action with what the action alone made of
// it: others may have changed files in between. It reads files and so runs
// outside the loop.
func (s *Session) tell(before int64, spans []stretch) (t told) {
	ctx := context.Background()
	t.to, t.after = before, before
	if len(spans) == 0 {
		return t
	}
	from, err := s.files.at(ctx, before)
	to := from
	for i := 0; i < len(spans) && err == nil; i++ {
		to, err = s.addTo(ctx, to, spans[i], t.after == spans[i].from)
		if t.to = spans[i].to; t.after == spans[i].from {
			t.after = t.to
		} else {
			t.after = 0
		}
	}
	if err == nil && t.after == 0 {
		t.made = &checkpoint{manifest: to}
		t.made.root, err = s.files.save(ctx, to)
	}
	if err == nil {
		t.changed, err = s.files.between(ctx, from, to)
	}
	if err != nil {
		return told{err: err}
	}
	if len(t.changed) > 0 {
		t.added, t.removed = s.files.lines(ctx, t.changed)
	}
	return t
}

// addTo adds what changed in a stretch to a state, which is the one that the
// stretch begins with or not.
func (s *Session) addTo(ctx context.Context, base *manifest.Manifest, sp stretch, begins bool) (*manifest.Manifest, error) {
	to, err := s.files.at(ctx, sp.to)
	if err != nil || begins {
		return to, err
	}
	from, err := s.files.at(ctx, sp.from)
	if err != nil {
		return nil, err
	}
	changed, err := s.files.between(ctx, from, to)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, c := range changed {
		paths = append(paths, c.Path)
		if c.From != "" {
			paths = append(paths, c.From)
		}
	}
	return manifest.Graft(base, to, paths), nil
}
