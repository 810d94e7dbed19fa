package manifest

import (
	"maps"
	"slices"
)

// Graft is onto with what from has at some paths, which a difference lists (of a rename,
// both): a state that never was, for telling one writer's changes from others'
// that were made meanwhile. Neither manifest is changed. A path that one of the
// two has below something that the other doesn't brings that along.
func Graft(onto, from *Manifest, paths []string) *Manifest {
	b, f := graftRoot(onto, from), graftRoot(from, onto)
	top := &Paths{}
	for _, path := range paths {
		top.Add(path)
	}
	return &Manifest{Root: top.graft(b, f), Base: LaterBase(onto, from)}
}

// graftRoot is a manifest's top; a manifest of nothing takes its project folder
// from the other.
func graftRoot(m, other *Manifest) *Node {
	switch {
	case m != nil:
		return m.Root
	case other != nil:
		return &Node{Entry: other.Root.Entry, Sub: NewDir(nil, nil)}
	}
	return &Node{Entry: Entry{Kind: KindDir}, Sub: NewDir(nil, nil)}
}

// graft puts two directories of the same path together.
func (g *Paths) graft(onto, from *Node) *Node {
	n := &Node{Entry: onto.Entry, Sub: onto.Sub}
	if g.Here {
		n.Entry = from.Entry
	}
	if len(g.Below) == 0 {
		return n
	}
	nodes := make(map[string]*Node)
	for c := range onto.Sub.All() {
		nodes[c.Name] = c
	}
	for name, below := range g.Below {
		c := below.graftName(onto.Sub.Find(name), from.Sub.Find(name))
		if c == nil {
			delete(nodes, name)
			continue
		}
		nodes[name] = c
	}
	names := slices.Sorted(maps.Keys(nodes))
	list := make([]*Node, len(names))
	for i, name := range names {
		list[i] = nodes[name]
	}
	n.Sub = NewDir(list, onto.Sub)
	return n
}

// graftName puts together what the two have under one name; nil is nothing.
func (g *Paths) graftName(onto, from *Node) *Node {
	switch {
	case from == nil || from.Kind != KindDir:
		return from
	case onto == nil && !from.Opaque:
		return g.graft(&Node{Entry: from.Entry, Sub: NewDir(nil, nil)}, from)
	case onto != nil && onto.Kind == KindDir && onto.Opaque == from.Opaque:
		return g.graft(onto, from)
	}
	return from
}
