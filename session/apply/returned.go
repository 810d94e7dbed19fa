package apply

import (
	"context"
	"fmt"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/project"
)

// returned is a path that an apply wrote, and where the session has again what it first
// saw: no change of the session's any more, though the project still has what was
// written, or something of the person's.
type returned struct {
	path   string
	was    project.State // as it was written
	want   *diff.File    // nil is nothing
	by     wrote
	theirs bool // the project has something else by now
	held   bool // a folder that comes or goes with what it holds
}

// returned lists what applies wrote and a selection has as the session first saw it, by
// path. What the project doesn't have as it was written is the person's by now, as are
// the folders that are there.
func (a *Applier) returned(ctx context.Context, s api.Session, sel files.Selected, d diff.Difference, applies []wrote, look func(path string) (project.State, error)) ([]returned, error) {
	if sel.Now == nil || d.More > 0 {
		return nil, nil
	}
	known := map[string]bool{} // changes, and what was looked at
	for i := range d.Changes {
		for _, path := range d.Changes[i].Paths() {
			known[path] = true
		}
	}
	var out []returned
	for _, w := range applies {
		if w.lost != nil {
			break // what older ones wrote, it may have written over
		}
		for path := range w.paths {
			if known[path] {
				continue
			}
			known[path] = true
			if !sel.Meant(path) || !sel.Now.Knows(sel.Now.Base, path) {
				continue
			}
			if saw := s.ResumedAt.After(w.at) || w.session != s.ID && !(s.EndedAt.After(s.ResumedAt) && s.EndedAt.Before(w.at)); saw && !sel.Now.Knows(nil, path) {
				continue // resumed or forked, the agent sees the project's there
			}
			r := returned{path: path, was: w.paths[path], by: w}
			now, first := sel.Now.Has(sel.Now.Base, path), (*manifest.Manifest)(nil).Has(sel.Now.Base, path)
			if now != nil {
				r.want = &diff.File{Path: path, Entry: *now}
			}
			if now != first && !project.Of(now).Same(project.Of(first)) || written(r.want, r.was) {
				continue
			}
			has, err := look(path)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r.theirs = !has.Same(r.was)
			folder := has.Kind == manifest.KindDir && (r.want == nil || r.want.Kind == manifest.KindDir)
			if err == nil && (!r.theirs || !folder && !has.Same(files.StateOf(r.want)) && w.goesOn(ctx, path)) { // what can't be looked at stays
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(x, y returned) int { return diff.ComparePaths(x.path, y.path) })
	holds := map[string]bool{}
	for i := range out {
		for _, dir := range above(out[i].path) {
			holds[dir] = true
		}
	}
	for i := range out {
		r := &out[i]
		c := r.change()
		r.held = !r.theirs && holds[r.path] && c.Kind() == manifest.KindDir && (c.Status == diff.Added || c.Status == diff.Deleted)
	}
	return out, nil
}

// Returned lists what applies of a session, or of what it is a fork of, wrote and the
// session, in its newest state, has as it first saw it again, while its project doesn't;
// but for what git ignores.
func (a *Applier) Returned(ctx context.Context, s api.Session, f *files.Files, now *manifest.Manifest, checkpoint int64) (paths []string, err error) {
	applies, err := a.line(ctx, s, checkpoint)
	if err != nil || len(applies) == 0 {
		return nil, err
	}
	folder, err := a.open(s)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	d, err := f.Difference(ctx, nil, now)
	if err != nil {
		return nil, err
	}
	all, err := a.returned(ctx, s, files.Selected{Now: now, Meant: func(string) bool { return true }}, d, applies, func(path string) (project.State, error) {
		return folder.Look(ctx, path)
	})
	for _, r := range all {
		if !r.held && !f.Ignored(r.path) && !slices.Contains(s.HiddenPaths, r.path) && (r.theirs || r.own(ctx)) {
			paths = append(paths, r.path)
		}
	}
	return paths, err
}

// written says whether an apply wrote a path as it is wanted. The folders that it made
// for files don't let everyone write.
func written(want *diff.File, s project.State) bool {
	if want != nil && want.Kind == manifest.KindDir {
		return s.Kind == want.Kind && (s.Mode|0o002)&0o777 == (want.Mode|0o002)&0o777
	}
	return files.Still(want, s)
}

// own says whether nothing of the person's is in what the project has there: of a
// folder that goes, what else it holds is looked at later.
func (r *returned) own(ctx context.Context) bool {
	return !r.theirs && (r.was.Kind == manifest.KindDir || r.by.own(r.path))
}

func (r *returned) change() diff.Change { return between(r.path, r.was, r.want) }

// takeBack plans what takes the place of what applies wrote and the session has as it
// first saw it again, which is added to its changes. What the person changed there since
// is in conflict.
func (b *planner) takeBack(d *diff.Difference) error {
	all, err := b.a.returned(b.ctx, b.p.session, b.sel, *d, b.line, b.look)
	if err != nil || len(all) == 0 {
		return err
	}
	d.Changes = slices.Clip(d.Changes) // it is shared
	for _, r := range all {
		c := r.change()
		d.Changes = append(d.Changes, c)
		switch {
		case slices.Contains(b.hidden, r.path):
			continue
		case !b.chosen && b.sel.Files.Ignored(r.path):
			b.ignored++
			continue
		case !r.theirs && !r.own(b.ctx):
			b.left(r.path, fmt.Sprintf("the session has it as it first saw it, and what %s wrote wasn't the session's alone", &r.by))
			continue
		}
		b.words[r.path] = fmt.Sprintf("undoes what %s wrote", &r.by)
		if r.held {
			b.steps[r.path] = project.Step{Path: r.path, Old: r.was, New: files.StateOf(r.want)}
			continue
		}
		if c.Status == diff.Deleted {
			b.unmade = append(b.unmade, c)
		}
		if err := b.change(&c); err != nil {
			return err
		}
	}
	slices.SortStableFunc(b.applied, func(x, y diff.Change) int { return diff.ComparePaths(x.Path, y.Path) })
	return nil
}

// between is the change that has a path of the project become something else.
func between(path string, has project.State, want *diff.File) diff.Change {
	c := diff.Change{Path: path, Status: diff.Modified, Old: fileOf(path, has), New: want, Content: true}
	switch {
	case c.Old == nil:
		c.Status = diff.Added
	case c.New == nil:
		c.Status = diff.Deleted
	case c.Old.Kind != c.New.Kind:
		c.Status = diff.Retyped
	case c.Old.Mode != c.New.Mode:
		c.Mode = true
	}
	return c
}
