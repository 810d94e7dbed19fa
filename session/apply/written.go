package apply

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/project"
)

// maxWritten is of how many paths of applies it is held in memory what they wrote.
const maxWritten = 200_000

// wrote is what an apply that stands made of each path.
type wrote struct {
	id, checkpoint int64
	at             time.Time
	paths          map[string]project.State
	line           line // whose it is, in a plan's lineage
}

// standing are a session's applies that stand, newest first; with an error those
// that are newer than what it is about.
func (a *Applier) standing(ctx context.Context, id string) (out []wrote, err error) {
	all, err := a.History.Applies(ctx, id)
	n := 0
	for _, rec := range slices.Backward(all) {
		if rec.State != api.ApplyDone || rec.Journal == "" {
			continue
		}
		paths, err := a.wroteBy(rec.Journal)
		if n += len(paths); err != nil || n > maxWritten && len(out) > 0 {
			return out, err
		}
		out = append(out, wrote{id: rec.ID, checkpoint: rec.Checkpoint, at: rec.At, paths: paths})
	}
	return out, err
}

// last is what an apply wrote last at a path, and which one did.
func last(applies []wrote, path string) (s project.State, by wrote, ok bool) {
	for _, by = range applies {
		if s, ok = by.paths[path]; ok {
			return s, by, true
		}
	}
	return s, by, false
}

// Written tells what the applies of a session that stand last wrote at a path.
// Whether somebody changed it in the project since isn't looked at.
func (a *Applier) Written(ctx context.Context, id string) (as func(path string, f *diff.File) bool, err error) {
	all, err := a.standing(ctx, id)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return func(path string, f *diff.File) bool {
		s, _, ok := last(all, path)
		return ok && s.Same(wanted(f))
	}, nil
}

// WroteAt is what each apply of a session that stands made of a file, newest first, and
// the checkpoint that it was taken from.
func (a *Applier) WroteAt(ctx context.Context, id, path string, each func(checkpoint int64, s project.State)) error {
	all, err := a.standing(ctx, id)
	for _, by := range all {
		if s, ok := by.paths[path]; ok && s.Kind == manifest.KindFile {
			each(by.checkpoint, s)
		}
	}
	return err
}

// wroteBy is what a journal's steps made of each path. It never changes once its
// apply is done.
func (a *Applier) wroteBy(journal string) (map[string]project.State, error) {
	a.mu.Lock()
	w, ok := a.wrote[journal]
	a.mu.Unlock()
	if ok {
		return w, nil
	}
	j, err := a.Journals.Read(journal)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be forgotten by now
		return nil, err
	}
	w = make(map[string]project.State, len(j.Steps))
	for _, s := range j.Steps {
		w[s.Path] = s.New
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held += len(w); a.wrote == nil || a.held > maxWritten {
		a.wrote, a.held = make(map[string]map[string]project.State), len(w)
	}
	a.wrote[journal] = w
	return w, nil
}

// ours says whether what the project has at a path is what an apply of this session
// wrote there last, with nothing of the person's in it, so that the session's state of
// now takes its place. Where only a part of a session is applied, that would take away
// what was applied before.
func (b *planner) ours(path string, has project.State) bool {
	s, by, ok := last(b.applies(), path)
	return ok && !b.partial && has.Kind != manifest.KindDir && s.Same(has) && own(b.ctx, b.sel.Files, by, path, has)
}

// own says whether what an apply wrote at a path was the session's own state then.
func own(ctx context.Context, f *files.Files, by wrote, path string, s project.State) bool {
	if s.Absent() {
		return true
	}
	then, err := f.At(ctx, by.checkpoint)
	if err != nil {
		return false
	}
	e := then.Lookup(path)
	return e != nil && s.Same(project.Of(e))
}
