package tree

import (
	"context"
	"errors"
	"strings"

	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// Beneath is what was below everything that an upper of Over covers when the session
// first saw it: what a fork's changes are told from. So what a person did to the project
// since is no change of the fork's, and isn't undone when the fork is applied. Others
// says how many files are covered for that alone: the session didn't write them, and
// they are others in the project by now.
func (t *Tree) Beneath(ctx context.Context, upper *manifest.Manifest) (b *manifest.Base, others int, err error) {
	w := &writer{tree: t, ctx: ctx}
	w.collect()
	root, err := w.beneath("", t.root, upper.Root, false)
	if err == nil {
		err = w.queue.Flush(ctx)
	}
	if err != nil {
		return nil, 0, err
	}
	root.Entry = manifest.Entry{Kind: manifest.KindDir}
	began := &manifest.Manifest{Root: root}
	for path, e := range upper.All() {
		if e.Kind != manifest.KindDir && e.Same(began.Lookup(path)) {
			others++
		}
	}
	return &manifest.Base{Root: root, Steps: 1}, others, nil
}

// first is what the session saw at a file's place before it wrote there; nil: nothing.
func (f *File) first() *File {
	if f != nil && f.wrote {
		return f.was
	}
	return f
}

// beneath is what was first at a name where the upper has up, nil for nothing: is, as
// the tree has it, or what the session wrote over; gone says that it wrote over a folder
// with it. Of git's own nothing is in the record: that is asked of the project. What the
// session wrote over without keeping it, isn't kept for a fork either.
func (w *writer) beneath(name string, is *File, up *manifest.Node, gone bool) (*manifest.Node, error) {
	f := is.first()
	switch err := w.ctx.Err(); {
	case err != nil:
		return nil, err
	case f == nil || f.Kind == manifest.KindWhiteout:
		return &manifest.Node{Entry: manifest.Entry{Name: name, Kind: manifest.KindWhiteout}}, nil
	case f.Kind == manifest.KindDir:
		return w.folder(f, up, gone || is.Kind != f.Kind || is.whole)
	case f.unkept != nil && (gone || f != is):
		n := &manifest.Node{Entry: *f.unkept}
		n.Links = 0
		return n, nil
	}
	e, err := w.keep(f)
	if g := (*manifest.Problem)(nil); errors.As(err, &g) {
		e.Unsaved, err = lower.NotKept(strings.TrimPrefix(g.Text, lower.NotKept(""))), nil
	}
	e.Links = 0
	return &manifest.Node{Entry: e}, err
}

// folder is what was first in a folder where the upper has up: only what up covers of
// it if that is a folder through which the project shows, else all.
func (w *writer) folder(f *File, up *manifest.Node, gone bool) (*manifest.Node, error) {
	n, names := &manifest.Node{Entry: w.known(f)}, f.names()
	if n.Opaque = up == nil || up.Kind != f.Kind || up.Opaque; n.Opaque {
		n.Unsaved, up = f.Unsaved, &manifest.Node{}
	} else {
		names = nil
		for c := range up.Sub.All() {
			names = append(names, c.Name)
		}
	}
	var nodes []*manifest.Node
	for _, name := range names {
		if name == ".git" {
			continue
		}
		was, err := w.beneath(name, f.below[name], up.Sub.Find(name), gone)
		if err != nil {
			return nil, err
		}
		if !n.Opaque || was.Kind != manifest.KindWhiteout {
			nodes = append(nodes, was)
		}
	}
	n.Sub = manifest.NewDir(nodes, nil)
	return n, nil
}

// known is a folder as it was, as far as that is known.
func (w *writer) known(f *File) manifest.Entry {
	e := f.Entry
	if f.plain {
		e = w.tree.look(w.ctx, f)
	}
	e.Name, e.Unsaved = f.Name, ""
	return e
}
