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
	root, err := w.beneath(upper.Root, t.root)
	if err == nil {
		err = w.queue.Flush(ctx)
	}
	if err != nil {
		return nil, 0, err
	}
	began := &manifest.Manifest{Root: root}
	for path, e := range upper.All() {
		was := began.Lookup(path)
		if was != nil && e.Kind != manifest.KindDir && e.Kind == was.Kind && e.Hash == was.Hash && e.Mode == was.Mode && e.Target == was.Target {
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

// beneath is what was in a folder of the upper's, f. Of git's own nothing is in the
// record: that is asked of the project.
func (w *writer) beneath(up *manifest.Node, f *File) (*manifest.Node, error) {
	var nodes []*manifest.Node
	for n := range up.Sub.All() {
		if n.Name == ".git" {
			continue
		}
		is := f.below[n.Name]
		was := is.first()
		node, err := w.whole(n.Name, was)
		if n.Kind == manifest.KindDir && !n.Opaque && was != nil && was.Kind == n.Kind {
			if node, err = w.beneath(n, is); err == nil {
				node.Entry = w.known(was)
			}
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return &manifest.Node{Entry: manifest.Entry{Kind: manifest.KindDir}, Sub: manifest.NewDir(nodes, nil)}, nil
}

// whole is what was under a name, a folder with all that was in it.
func (w *writer) whole(name string, f *File) (*manifest.Node, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	if f == nil || f.Kind == manifest.KindWhiteout {
		return &manifest.Node{Entry: manifest.Entry{Name: name, Kind: manifest.KindWhiteout}}, nil
	}
	if f.Kind != manifest.KindDir {
		e, err := w.keep(f)
		if g := (*manifest.Problem)(nil); errors.As(err, &g) {
			e.Unsaved, err = lower.NotKept(strings.TrimPrefix(g.Text, lower.NotKept(""))), nil
		}
		e.Links = 0
		return &manifest.Node{Entry: e}, err
	}
	var nodes []*manifest.Node
	for _, name := range f.names() {
		if was := f.below[name].first(); was != nil && was.Kind != manifest.KindWhiteout && was.upper == nil {
			n, err := w.whole(name, was)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n)
		}
	}
	n := &manifest.Node{Entry: w.known(f), Sub: manifest.NewDir(nodes, nil)}
	n.Opaque, n.Unsaved = true, f.Unsaved
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
