package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/base"
	"stepbox/session/outfit"
)

// Over is the tree as what an overlay's upper has to have over the project folder as
// it is now, with all contents in the store. What the tree doesn't know, or can't have,
// is as it is now, and in gaps. The folder has to be the one that it was. With all it has
// what the session changed also where the project has that by now.
func (t *Tree) Over(ctx context.Context, all bool) (upper *manifest.Manifest, gaps []manifest.Problem, err error) {
	if t.lower == nil {
		return nil, nil, fmt.Errorf("cannot open the project folder %q", t.Session.Folder)
	}
	person := outfit.Person(t.source.Home, t.source.Env)
	shown, err := lower.Open(t.Session.Folder, lower.Options{Hidden: slices.Concat(t.Session.HiddenPaths, outfit.Hidden(t.Session.Folder, person))})
	if err != nil {
		return nil, nil, err
	}
	defer shown.Close()
	rec, err := base.Take(ctx, base.Options{Folder: t.Session.Folder, Lower: shown, Bodies: t.bodies, Person: person})
	if err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if rec.Missing != "" {
		return nil, nil, fmt.Errorf("cannot compare with the project folder: %s", rec.Missing)
	}
	now := t.source.of(t.Session, rec)
	defer now.Close()
	w := &writer{tree: t, ctx: ctx, all: all, partial: slices.ContainsFunc(t.gaps, func(g manifest.Problem) bool { return g.Path == "" })}
	w.collect()
	gaps = t.gaps
	root, err := w.over(t.root, now.root)
	if err == nil {
		err = w.queue.Flush(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	if root == nil {
		root = &manifest.Node{Entry: now.look(ctx, now.root), Sub: manifest.NewDir(nil, nil)}
	}
	return &manifest.Manifest{Root: root}, append(slices.Clone(gaps), w.gaps...), nil
}

// Differing is what differs between two trees, as two states of which neither has
// what both have, with all contents in the store.
func Differing(ctx context.Context, a, b *Tree) (from, to *manifest.Manifest, gaps []manifest.Problem, err error) {
	states := [2]*manifest.Manifest{}
	for i, pair := range [2][2]*Tree{{a, b}, {b, a}} {
		w := &writer{tree: pair[0], ctx: ctx, apart: true}
		w.collect()
		root, err := w.over(pair[0].root, pair[1].root)
		if err == nil {
			err = w.queue.Flush(ctx)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		if root == nil {
			root = &manifest.Node{Entry: manifest.Entry{Kind: manifest.KindDir, Meta: manifest.Meta{Mode: 0o755}}, Sub: manifest.NewDir(nil, nil)}
		}
		root.Opaque = true
		states[i], gaps = &manifest.Manifest{Root: root}, append(gaps, w.gaps...)
	}
	// One folder for both: what it looks like isn't compared.
	root := *states[1].Root
	root.Entry = states[0].Root.Entry
	states[1].Root = &root
	return states[0], states[1], gaps, nil
}

// writer makes the nodes of a state.
type writer struct {
	tree    *Tree
	ctx     context.Context
	partial bool // what the tree hasn't got may have been there
	apart   bool // the state isn't over another: nothing has to be covered
	all     bool // what the session changed is in it, whatever is there
	gaps    []manifest.Problem
	queue   *content.Queue
	hasher  content.Hasher
}

func (w *writer) collect() {
	w.queue = content.NewQueue(w.tree.bodies)
	w.hasher = content.Hasher{Limit: 1<<63 - 1, Queue: w.queue.Add}
}

// over is the node that makes a folder of now into one of then; nil when there is
// nothing to be done.
func (w *writer) over(then, now *File) (*manifest.Node, error) {
	names := maps.Clone(then.below)
	if names == nil {
		names = map[string]*File{}
	}
	if !w.apart && then.Unsaved == "" && (!w.partial || then.whole) {
		for name := range now.below {
			if names[name] == nil {
				names[name] = nil // to be covered
			}
		}
	}
	if then.Unsaved != "" && now.Kind == then.Kind && now.Path != "" && !w.apart {
		w.gaps = append(w.gaps, manifest.Problem{Path: then.Path, Text: "what is in it is as it is now: " + then.Unsaved})
	}
	var nodes []*manifest.Node
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		n, err := w.name(names[name], now.below[name], name)
		if err != nil {
			return nil, err
		}
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	same := then.plain || now.plain || then.Mode == now.Mode && then.UID == now.UID && then.GID == now.GID && then.SameXattrs(&now.Meta)
	if len(nodes) == 0 && (same || then.Path == "") {
		return nil, nil
	}
	e := then.Entry
	if then.plain && !now.plain {
		e = now.Entry
	}
	if then.plain && now.plain {
		e = w.tree.look(w.ctx, then)
	}
	e.Unsaved = ""
	return &manifest.Node{Entry: e, Sub: manifest.NewDir(nodes, nil)}, nil
}

// look is a folder of which no more is known than that it was there, as it is now.
func (t *Tree) look(ctx context.Context, f *File) manifest.Entry {
	if t.lower != nil && f.Path != "" {
		if e, err := t.lower.Stat(ctx, f.Path); err == nil && e != nil && e.Kind == manifest.KindDir {
			return *e
		}
	}
	e := f.Entry
	if e.MTime == (manifest.Time{}) {
		if info, err := os.Stat(t.Session.Folder); err == nil {
			e.MTime.Sec, e.MTime.Nsec = info.ModTime().Unix(), uint32(info.ModTime().Nanosecond())
			if f.Path == "" {
				e.Mode = uint32(info.Mode().Perm())
			}
		}
	}
	return e
}

// name is what a state has under a name: nil to show what is there.
func (w *writer) name(then, now *File, name string) (*manifest.Node, error) {
	changed := w.all && then.changed()
	if then != nil && then.Kind == manifest.KindWhiteout && then.upper == nil {
		then = nil
	}
	if now != nil && now.Kind == manifest.KindWhiteout {
		now = nil
	}
	switch {
	case then != nil && then.upper != nil:
		if w.apart {
			return nil, nil // git's own files aren't compared
		}
		return then.upper, nil
	case then == nil && now == nil && !changed:
		return nil, nil
	case then == nil:
		return &manifest.Node{Entry: manifest.Entry{Name: name, Kind: manifest.KindWhiteout}}, nil
	case then.Kind == manifest.KindDir && now != nil && now.Kind == then.Kind && (w.apart || !then.wrote || !then.whole && then.was != nil && then.was.Kind == then.Kind): // else it was the session's alone
		return w.over(then, now)
	case then.Kind == manifest.KindDir:
		n, err := w.over(then, &File{Entry: then.Entry})
		if err != nil {
			return nil, err
		}
		if n == nil {
			n = &manifest.Node{Entry: w.tree.look(w.ctx, then), Sub: manifest.NewDir(nil, nil)}
		}
		if n.Opaque = !w.apart; then.Unsaved != "" {
			w.gaps = append(w.gaps, manifest.Problem{Path: then.Path, Text: then.Unsaved})
			n.Unsaved = "" // it can be laid out as far as it is known
		}
		return n, nil
	case now != nil && !changed && then.same(now):
		if then.Kind == manifest.KindFile && then.blob == nil && then.Hash.IsZero() && !w.apart {
			if g := w.tree.changedSince(w.ctx, then); g != nil {
				w.gaps = append(w.gaps, *g)
			}
		}
		return nil, nil
	}
	e, err := w.keep(then)
	if g := (*manifest.Problem)(nil); errors.As(err, &g) {
		w.gaps = append(w.gaps, *g)
		if now == nil || !then.same(now) {
			return nil, nil
		}
		// What looks the same is all that can be had, and one half of a move isn't laid alone.
		as := *then
		if has, _ := w.tree.lower.Lookup(w.ctx, then.Path); has != nil {
			as.Hash = has.Hash
		}
		if e, err = w.take(&as); errors.As(err, &g) {
			return nil, nil
		}
	}
	if err != nil || now != nil && !w.apart && !changed && w.tree.there(w.ctx, then, now, &e) {
		return nil, err
	}
	return &manifest.Node{Entry: e}, nil
}

// changed says whether the session made something else of what it saw at a file's place.
func (f *File) changed() bool {
	if f == nil || !f.wrote {
		return false
	}
	was, gone := f.was, f.Kind == manifest.KindWhiteout
	if was == nil || was.Kind == manifest.KindWhiteout {
		return !gone
	}
	return gone || !f.same(was)
}

// there says whether the project has a file as it was, of which git tells on one side
// only: a person added it meanwhile, or took it out.
func (t *Tree) there(ctx context.Context, then, now *File, e *manifest.Entry) bool {
	if then.Kind != manifest.KindFile || now.Kind != then.Kind || (then.blob == nil) == (now.blob == nil) || (then.Mode^now.Mode)&0o100 != 0 {
		return false
	}
	has, err := t.lower.Lookup(ctx, then.Path)
	return err == nil && has != nil && has.Hash == e.Hash && (then.blob != nil || has.Mode == e.Mode)
}

// same says whether two files are known to be one and the same.
func (f *File) same(o *File) bool {
	switch {
	case f.Kind != o.Kind:
		return false
	case f.blob != nil || o.blob != nil:
		return bytes.Equal(f.blob, o.blob) && f.Mode == o.Mode
	case f.Mode != o.Mode || f.UID != o.UID || f.GID != o.GID || f.Size != o.Size || !f.SameXattrs(&o.Meta):
		return false
	case f.Kind == manifest.KindSymlink:
		return f.Target == o.Target
	case f.Kind != manifest.KindFile:
		return true
	case f.Links != 0 || o.Links != 0:
		return false
	case !f.Hash.IsZero() && !o.Hash.IsZero():
		return f.Hash == o.Hash
	}
	return f.Hash.IsZero() && o.Hash.IsZero() && f.MTime == o.MTime
}

// keep puts a file's content into the store. A *manifest.Problem says why it can't.
func (w *writer) keep(f *File) (manifest.Entry, error) {
	if err := w.tree.settle(w.ctx, f); err != nil {
		return f.Entry, err
	}
	e := f.Entry
	if e.MTime == (manifest.Time{}) {
		e.MTime = w.tree.look(w.ctx, &File{}).MTime
	}
	switch {
	case f.Kind != manifest.KindFile:
		if f.Unsaved != "" {
			return e, &manifest.Problem{Path: f.Path, Text: f.Unsaved}
		}
		if f.Kind == manifest.KindSymlink {
			e.Size = 0
		}
		return e, nil
	case f.kept():
		return e, nil
	}
	return w.take(f)
}

// take puts a content into the store that isn't in the record.
func (w *writer) take(f *File) (e manifest.Entry, err error) {
	if e = f.Entry; e.MTime == (manifest.Time{}) {
		e.MTime = w.tree.look(w.ctx, &File{}).MTime
	}
	out, err := w.tree.outside(w.ctx, f)
	if err != nil {
		return e, err
	}
	defer out.Close()
	info, err := out.Stat()
	if err != nil {
		return e, err
	}
	e.Size, e.Unsaved = info.Size(), ""
	e.Hash, _, err = w.hasher.File(w.ctx, int(out.Fd()), e.Size, nil)
	return e, err
}
