package apply

import (
	"context"
	"fmt"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/project"
	"stepbox/store"
)

// maxLineage bounds how far back forks of forks are followed.
const maxLineage = 64

// line is a session whose applies a plan knows, with what the plan's state goes on
// from.
type line struct {
	of    string // in words; "" is the plan's session
	files *files.Files
	until int64 // the newest checkpoint that is in the plan's state
}

// lineage lists the applies that stand of a plan's session, newest first, then of the one
// that it was forked from, and so on. Of a session that was removed nothing is known.
func (a *Applier) lineage(ctx context.Context, s api.Session, own []wrote, l line) (out []wrote) {
	for range maxLineage {
		for _, w := range own {
			w.line = l
			out = append(out, w)
		}
		p := s.Parent
		if p == nil {
			break
		}
		var err error
		if s, err = ledger.Doc[api.Session](ctx, a.Store, p.ID, store.KindSession, 0); err != nil {
			break
		}
		l = line{of: " of session " + api.Escape(api.Trim(s.Name, 80)), files: files.Recorded(a.Store, s.ID), until: p.Checkpoint}
		own, _ = a.standing(ctx, s.ID) // with an error the newer ones
	}
	return out
}

// goesOn says whether a plan's state goes on from what an apply took at a path: it had
// that by then, and didn't let go of it since, so that the agent saw the project's. Then
// the base has the file of the project that took its place. A state from before the apply
// is of the same line if the session had changed the path by then: that went into it.
func (w wrote) goesOn(ctx context.Context, path string) bool {
	if w.checkpoint > w.line.until {
		m, err := w.line.files.At(ctx, w.line.until)
		return w.line.until > 0 && (err != nil || m.Knows(nil, path))
	}
	var base [2]*manifest.Entry
	for i, id := range []int64{w.checkpoint, w.line.until} {
		m, err := w.line.files.At(ctx, id)
		if err != nil {
			return true // nothing is known against it
		}
		base[i] = (*manifest.Manifest)(nil).Has(m.Base, path)
	}
	was, is := base[0], base[1]
	if was == nil || is == nil {
		return was == is
	}
	return was.MTime == is.MTime && project.Of(was).Same(project.Of(is))
}

// takenBack says whether a person changed back what an apply wrote at a path: the
// project has something else by now, though the plan's state is what was written, or
// goes on from it. That the project has again what was there before the apply doesn't
// mean then that nobody touched it.
func (b *planner) takenBack(path string, has, want project.State) bool {
	for _, w := range b.lineage() {
		s, ok := w.paths[path]
		switch {
		case !ok:
		case s.Same(has):
			return false
		case s.Same(want) || w.goesOn(b.ctx, path):
			return true
		}
	}
	return false
}

// whyTakenBack says that in words, of the first of some paths that an apply wrote.
func (b *planner) whyTakenBack(paths ...string) string {
	for _, path := range paths {
		if _, by, ok := last(b.lineage(), path); ok {
			return fmt.Sprintf("what apply %d%s wrote there was changed back in the project since", by.id, by.line.of)
		}
	}
	return "it was changed back in the project since"
}
