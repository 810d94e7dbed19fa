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

// Written tells what the applies of a session that stand last wrote at a path.
// Whether somebody changed it in the project since isn't looked at.
func (a *Applier) Written(ctx context.Context, id string) (as func(path string, f *diff.File) bool, err error) {
	all, err := a.History.Applies(ctx, id)
	if err != nil {
		return nil, err
	}
	var wrote []map[string]project.State // newest first
	for i := len(all) - 1; i >= 0 && len(wrote) < maxWritten; i-- {
		if all[i].State != api.ApplyDone || all[i].Journal == "" {
			continue
		}
		w, err := a.wroteBy(all[i].Journal)
		if err != nil {
			return nil, err
		}
		wrote = append(wrote, w)
	}
	if len(wrote) == 0 {
		return nil, nil
	}
	return func(path string, f *diff.File) bool {
		for _, w := range wrote {
			if s, ok := w[path]; ok {
				return s.Same(wanted(f))
			}
		}
		return false
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
	if b.applies == nil {
		b.applies = []api.Apply{}
		if all, err := b.a.History.Applies(b.ctx, b.p.session.ID); err == nil {
			b.applies = all
		}
	}
	looked := 0
	for _, rec := range slices.Backward(b.applies) {
		if rec.State != api.ApplyDone || rec.Journal == "" {
			continue
		}
		wrote, err := b.a.wroteBy(rec.Journal)
		if looked++; err != nil || looked > maxWritten {
			return false
		}
		s, ok := wrote[path]
		if !ok {
			continue
		}
		if !s.Same(has) || has.Absent() || has.Kind == manifest.KindDir {
			return has.Absent() && s.Absent()
		}
		cp, err := b.sel.Files.Checkpoint(b.ctx, rec.Checkpoint)
		if err != nil {
			return false
		}
		e := cp.Manifest.Lookup(path)
		return e != nil && has.Same(wanted(&diff.File{Path: path, Entry: *e}))
	}
	return false
}
