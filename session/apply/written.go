package apply

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/project"
)

// maxWritten is of how many paths of applies it is held in memory what they wrote.
const maxWritten = 200_000

// wrote is what an apply that stands made of each path.
type wrote struct {
	point   // that it was taken from; of a removed session the checkpoint isn't known
	id      int64
	journal string
	at      time.Time
	paths   map[string]project.State
	had     map[string]project.State // what was there, of files that were there
	part    api.Selection            // of the session's changes, that it was of
	merged  []string                 // keys of what was merged with the project's
	lost    error                    // why it isn't known
	of      string                   // whose it is, in words; "": the plan's session's
	then    *files.Files             // of its session; nil: only its journal tells of it
	kin     kin                      // with a plan's state
}

// bounds are of the applies that are held in memory.
type bounds struct {
	since time.Time // none from before it
	room  int       // for what they wrote at so many paths
}

// standing are a session's applies that stand, newest first.
func (a *Applier) standing(ctx context.Context, id string) ([]wrote, error) {
	there, err := a.Journals.List()
	if err != nil {
		return nil, err
	}
	return a.recorded(ctx, id, there, &bounds{room: maxWritten})
}

// recorded are those, with what of all journals theirs tell.
func (a *Applier) recorded(ctx context.Context, id string, there map[string]project.Listed, in *bounds) (out []wrote, err error) {
	all, err := a.History.Applies(ctx, id)
	for _, rec := range slices.Backward(all) {
		l, ok := there[rec.Journal]
		written := rec.State == api.ApplyOpen && l.Phase == project.Done // just now: that it is done is recorded next
		if rec.State != api.ApplyDone && !written || rec.Journal == "" {
			continue
		}
		w := wrote{at: rec.At, lost: errors.New("its journal is gone")}
		if ok {
			if w = a.wroteBy(rec.Journal, l); w.lost != nil {
				w.at = rec.At
			}
		}
		if w.point, w.id, w.journal, w.part, w.merged = (point{id, rec.Checkpoint}), rec.ID, rec.Journal, rec.Selection, rec.Merged; len(out) > 0 && w.at.After(out[len(out)-1].at) {
			w.at = out[len(out)-1].at // the clock was set back
		}
		out = in.add(out, w)
	}
	return out, err
}

func (in *bounds) add(to []wrote, w wrote) []wrote {
	if w.at.Before(in.since) {
		return to
	}
	if in.room <= 0 && w.lost == nil {
		w.paths, w.had, w.lost = nil, nil, fmt.Errorf("more than %d files were applied since", maxWritten)
	}
	in.room -= len(w.paths) + len(w.had)
	return append(to, w)
}

// last is what an apply wrote last at a path, and which one did; not ok either where
// that isn't known.
func last(applies []wrote, path string) (s project.State, by wrote, ok bool) {
	for _, by = range applies {
		if s, ok = by.paths[path]; ok || by.lost != nil {
			return s, by, ok
		}
	}
	return s, by, false
}

// whole is line with all of a session's applies.
func (a *Applier) whole(ctx context.Context, id string) ([]wrote, error) {
	s, err := ledger.Session(ctx, a.Store, id)
	if err != nil {
		return nil, err
	}
	return a.line(ctx, s, math.MaxInt64)
}

// Written tells what the applies that stand of a session, or of what it is a fork of, last
// wrote at a path. Whether somebody changed it in the project since isn't looked at.
func (a *Applier) Written(ctx context.Context, id string) (as func(path string, f *diff.File) bool, err error) {
	all, err := a.whole(ctx, id)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return func(path string, f *diff.File) bool {
		s, _, ok := last(all, path)
		return ok && s.Same(files.StateOf(f))
	}, nil
}

// Settled says which of a session's files, as it has them now, have nothing of its own in
// them that isn't applied, so that what became of them in the project since is the person's:
// those that an apply wrote so, or merged with the project's, and those that no apply wrote
// and that it has as it first saw them. Of what an apply took a part of it isn't known.
func (a *Applier) Settled(ctx context.Context, id string, now *manifest.Manifest) (scan.Drop, error) {
	all, err := a.whole(ctx, id)
	if err != nil {
		return nil, err
	}
	return func(path string, e *manifest.Entry, moved bool) bool {
		written, by, ok := last(all, path)
		want := project.Of(e)
		if e.Kind == manifest.KindWhiteout {
			want = project.State{}
		}
		switch p := by.part; {
		case !moved:
			return false
		case !ok:
			return by.lost == nil && rewritten(now, path, e)
		case written.Same(want):
			return true
		case !slices.Contains(by.merged, api.KeyOf(path)) || len(p.Actions)+len(p.Without)+len(p.Files) > 0:
			return false
		}
		m, err := by.then.At(ctx, by.checkpoint)
		return err == nil && project.Of(m.Has(nil, path)).Same(want)
	}, nil
}

// rewritten says whether a file of an upper is as it was first seen. Below a folder that hides
// the lower's it stays whatever it is.
func rewritten(now *manifest.Manifest, path string, e *manifest.Entry) bool {
	dir, _ := manifest.Split(path)
	first := (*manifest.Manifest)(nil).Has(now.Base, path)
	known := first != nil && (first.Unsaved == "" || !first.Hash.IsZero())
	return known && now.Shape(now.Base, dir) == manifest.ShapeOpen && project.Of(first).Same(project.Of(e))
}

// WroteAt is what each apply of a session that stands made of a file, newest first, of
// which part of the session's changes, and the checkpoint that it was taken from.
func (a *Applier) WroteAt(ctx context.Context, id, path string, each func(checkpoint int64, of api.Selection, s project.Step)) error {
	all, err := a.standing(ctx, id)
	for _, by := range all {
		if s, ok := by.paths[path]; ok && s.Kind == manifest.KindFile {
			each(by.checkpoint, by.part, project.Step{Path: path, Old: by.had[path], New: s})
		}
	}
	return err
}

// wroteBy is what a journal's steps made of each path. They never change once its apply
// is done.
func (a *Applier) wroteBy(name string, l project.Listed) wrote {
	a.mu.Lock()
	w, ok := a.wrote[name]
	a.mu.Unlock()
	if ok {
		return w
	}
	j, err := l.Read()
	w = wrote{journal: name, at: j.At, lost: err, paths: make(map[string]project.State, len(j.Steps)), had: make(map[string]project.State)}
	w.session = SessionOf(name)
	w.id, _ = strconv.ParseInt(strings.TrimPrefix(name, w.session+"-"), 10, 64)
	for _, s := range j.Steps {
		if w.paths[s.Path] = s.New; s.Old.Kind == manifest.KindFile {
			w.had[s.Path] = s.Old
		}
	}
	if err != nil {
		return w
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held += len(w.paths) + len(w.had); a.wrote == nil || a.held > maxWritten {
		a.wrote, a.held = make(map[string]wrote), len(w.paths)+len(w.had)
	}
	a.wrote[name] = w
	return w
}

// ours says whether what the project has at a path is what an apply of this session, or of
// what it is a fork of, wrote there last, and this one goes on from, with nothing of the
// person's in it, so that what is wanted takes its place: that has what was applied before.
func (b *planner) ours(path string, has project.State) bool {
	s, by, ok := b.newest(path)
	return ok && b.whole(path) && has.Kind != manifest.KindDir && s.Same(has) && by.own(path)
}

// whole says whether what is wanted at a path has all that was applied there before. Of a
// selection it may be that it can't be had together.
func (b *planner) whole(path string) bool {
	if !b.partial {
		return true
	}
	_, by, _ := b.newest(path)
	return by.session == b.p.session.ID && b.sel.Over != nil && b.sel.Over(path)
}

// own says whether what an apply wrote at a path was the session's alone: nothing of the
// project's was merged into it.
func (w *wrote) own(path string) bool {
	return w.paths[path].Absent() || w.then != nil && !slices.Contains(w.merged, api.KeyOf(path))
}

// before tells which actions of a session its applies that stand brought to each path; not
// ok where an apply brought something else, as hunks, or what was rolled back since.
func (a *Applier) before(ctx context.Context, id string) (func(path string) (actions []int, ok bool), error) {
	applies, err := a.standing(ctx, id)
	if err != nil || len(applies) == 0 {
		return nil, err
	}
	all, err := a.History.Actions(ctx, id)
	if err != nil {
		return nil, err
	}
	return func(path string) (out []int, ok bool) {
		for _, w := range applies {
			if _, wrote := w.paths[path]; !wrote && w.lost == nil {
				continue
			}
			if w.lost != nil || slices.ContainsFunc(w.part.Files, func(c api.Choice) bool { return c.Key == api.KeyOf(path) && len(c.Hunks) > 0 }) {
				return nil, false
			}
			for _, x := range all {
				named := slices.Contains(w.part.Actions, x.N) || len(w.part.Actions) == 0 && x.After != 0 && x.After <= w.checkpoint
				if !named || slices.Contains(w.part.Without, x.N) {
					continue
				}
				if x.Review == api.ReviewRolledBack {
					return nil, false
				}
				out = append(out, x.N)
			}
		}
		return out, true
	}, nil
}
