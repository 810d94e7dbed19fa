package apply

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/project"
)

// maxWritten is of how many applies it is held in memory what they wrote.
const maxWritten = 16

// wrote is what an apply that stands made of each path.
type wrote struct {
	checkpoint int64
	paths      map[string]project.State
}

// standing are a session's applies that stand, newest first; with an error those
// that are newer than what it is about.
func (a *Applier) standing(ctx context.Context, id string) (out []wrote, err error) {
	all, err := a.History.Applies(ctx, id)
	for _, rec := range slices.Backward(all) {
		if rec.State != api.ApplyDone || rec.Journal == "" {
			continue
		}
		paths, err := a.wroteBy(rec.Journal)
		if err != nil || len(out) == maxWritten {
			return out, err
		}
		out = append(out, wrote{rec.Checkpoint, paths})
	}
	return out, err
}

// last is what an apply wrote last at a path.
func last(applies []wrote, path string) (s project.State, checkpoint int64, ok bool) {
	for _, w := range applies {
		if s, ok = w.paths[path]; ok {
			return s, w.checkpoint, true
		}
	}
	return s, 0, false
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
	if a.wrote == nil || len(a.wrote) >= maxWritten {
		a.wrote = make(map[string]map[string]project.State)
	}
	a.wrote[journal] = w
	return w, nil
}

// ours says whether what the project has at a path is what an apply of this session
// wrote there last, and was the session's own state then: nothing of the person's is
// in it, so that the session's state of now takes its place. Where only a part of a
// session is applied, that would take away what was applied before.
func (b *planner) ours(path string, has project.State) bool {
	if b.partial {
		return false
	}
	s, checkpoint, ok := last(b.applies(), path)
	switch {
	case !ok:
		return false
	case !s.Same(has) || has.Absent() || has.Kind == manifest.KindDir:
		return has.Absent() && s.Absent()
	}
	then, err := b.sel.Files.At(b.ctx, checkpoint)
	if err != nil {
		return false
	}
	e := then.Lookup(path)
	return e != nil && has.Same(wanted(&diff.File{Path: path, Entry: *e}))
}
