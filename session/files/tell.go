package files

import (
	"context"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Told is what an action changed.
type Told struct {
	Changed        []diff.Change
	More           int // changes beyond those
	Listed         []api.Change
	Trust          Trust              // zero when it wasn't asked for
	Effects        *api.Effects       // nil: nothing changed, or it wasn't asked for
	From, Until    *manifest.Manifest // between which the changes lie
	Added, Removed int                // lines
	To             int64              // the last checkpoint that has changes of its
	After          int64              // the checkpoint that has them and no others' since the one before it
	Made           *Checkpoint        // that one, without a number yet, unless it is a state that really was
	Err            error
}

// Tell compares the state before an action with what the action alone made of
// it: others may have changed files in between. Spans are those in which its
// changes were made. It reads files, so it isn't for the session's loop.
func (f *Files) Tell(ctx context.Context, before int64, spans []Span) (t Told) {
	t.To, t.After = before, before
	if len(spans) == 0 {
		return t
	}
	from, to, err := f.own(ctx, &t, spans)
	if err == nil && t.After == 0 {
		t.Made = &Checkpoint{Manifest: to}
		t.Made.Root, err = f.Save(ctx, to)
	}
	if err != nil {
		return Told{Err: err}
	}
	c, err := f.compare(ctx, from, to)
	if err != nil {
		return Told{Err: err}
	}
	added, removed, err := c.totals(ctx, f)
	t.From, t.Until, t.More = from, to, c.More
	t.Changed, t.Listed, t.Added, t.Removed, t.Err = c.Changes, f.List(c.Changes), added, removed, err
	return t
}

// own is the state before an action, t.After, and what the action alone made of it.
func (f *Files) own(ctx context.Context, t *Told, spans []Span) (from, to *manifest.Manifest, err error) {
	from, err = f.At(ctx, t.After)
	to = from
	for i := 0; i < len(spans) && err == nil; i++ {
		to, err = f.addTo(ctx, to, spans[i], t.After == spans[i].From)
		if t.To = spans[i].To; t.After == spans[i].From {
			t.After = t.To
		} else {
			t.After = 0
		}
	}
	return from, to, err
}

// SoFar is what an action that runs has made of the state before it by now: what is in
// spans, and what came after the last checkpoint, which is nobody's yet; nil for none of that.
func (f *Files) SoFar(ctx context.Context, before int64, spans []Span, last *Checkpoint, now *manifest.Manifest) (*manifest.Manifest, error) {
	t := Told{After: before}
	_, to, err := f.own(ctx, &t, spans)
	switch {
	case err != nil || last == nil:
		return to, err
	case t.After == last.ID:
		return now, nil
	}
	return f.graft(ctx, to, last.Manifest, now)
}

// addTo adds what changed in a span to a state, which is the one that the span
// begins with or not.
func (f *Files) addTo(ctx context.Context, state *manifest.Manifest, s Span, begins bool) (*manifest.Manifest, error) {
	to, err := f.At(ctx, s.To)
	if err != nil || begins {
		return to, err
	}
	from, err := f.At(ctx, s.From)
	if err != nil {
		return nil, err
	}
	return f.graft(ctx, state, from, to)
}

// graft adds what changed between two states to another.
func (f *Files) graft(ctx context.Context, state, from, to *manifest.Manifest) (*manifest.Manifest, error) {
	changed, err := f.Between(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return manifest.Graft(state, to, pathsOf(changed)), nil
}

// OverOthers says whether some of the changes since a state are of what isn't there as it was before an action and as the action made it
// in its spans, so that others have changed it; also if that can't be told.
func (f *Files) OverOthers(ctx context.Context, changed []diff.Change, last *manifest.Manifest, before int64, spans []Span) bool {
	_, own, err := f.own(ctx, &Told{After: before}, spans)
	if err != nil {
		return true
	}
	others, err := f.Between(ctx, own, last)
	if err != nil {
		return true
	}
	by := byPath(others)
	return slices.ContainsFunc(pathsOf(changed), func(path string) bool { return by[path] != (shownPath{}) })
}
