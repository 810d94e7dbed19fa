package overlay

import (
	"maps"
	"slices"
	"strings"
)

// Graft is base with what from has at some paths, which Diff gave (of a rename,
// both): a state that never was, for telling one writer's changes from others'
// that were made meanwhile. Neither manifest is changed. A path that one of the
// two has below something that the other doesn't brings that along.
func Graft(base, from *Manifest, paths []string) *Manifest {
	b, f := graftRoot(base, from), graftRoot(from, base)
	top := &graft{}
	for _, path := range paths {
		at := top
		if path != "" {
			for name := range strings.SplitSeq(path, "/") {
				at = at.child(name)
			}
		}
		at.here = true
	}
	return &Manifest{root: top.dir(b, f), base: laterBase(base, from)}
}

// graftRoot is a manifest's top; a manifest of nothing takes its project folder
// from the other.
func graftRoot(m, other *Manifest) *node {
	switch {
	case m != nil:
		return m.root
	case other != nil:
		return &node{Entry: other.root.Entry, sub: newDir(nil, nil)}
	}
	return &node{Entry: Entry{Kind: KindDir}, sub: newDir(nil, nil)}
}

// graft is a path on the way to those that are taken over.
type graft struct {
	here  bool
	below map[string]*graft
}

func (g *graft) child(name string) *graft {
	if g.below == nil {
		g.below = make(map[string]*graft)
	}
	c := g.below[name]
	if c == nil {
		c = &graft{}
		g.below[name] = c
	}
	return c
}

// dir puts two directories of the same path together.
func (g *graft) dir(base, from *node) *node {
	n := &node{Entry: base.Entry, sub: base.sub}
	if g.here {
		n.Entry = from.Entry
	}
	if len(g.below) == 0 {
		return n
	}
	nodes := make(map[string]*node)
	for c := range base.sub.all() {
		nodes[c.Name] = c
	}
	for name, below := range g.below {
		c := below.name(base.sub.find(name), from.sub.find(name))
		if c == nil {
			delete(nodes, name)
			continue
		}
		nodes[name] = c
	}
	names := slices.Sorted(maps.Keys(nodes))
	list := make([]*node, len(names))
	for i, name := range names {
		list[i] = nodes[name]
	}
	n.sub = newDir(list, base.sub)
	return n
}

// name puts together what the two have under one name; nil is nothing.
func (g *graft) name(base, from *node) *node {
	switch {
	case from == nil || from.Kind != KindDir:
		return from
	case base == nil && !from.Opaque:
		return g.dir(&node{Entry: from.Entry, sub: newDir(nil, nil)}, from)
	case base != nil && base.Kind == KindDir && base.Opaque == from.Opaque:
		return g.dir(base, from)
	}
	return from
}
