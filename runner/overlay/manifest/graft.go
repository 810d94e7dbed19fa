package manifest

// Graft is onto with what from has at some paths, which a difference lists (of a rename,
// both): a state that never was, for telling one writer's changes from others'
// that were made meanwhile. Neither manifest is changed. A path that one of the
// two has below something that the other doesn't brings that along.
func Graft(onto, from *Manifest, paths []string) *Manifest {
	b, f := graftRoot(onto, from), graftRoot(from, onto)
	top := &Paths{}
	for _, path := range paths {
		top.At(path).Here = true
	}
	return &Manifest{Root: graft(top, b, f), Base: LaterBase(onto, from)}
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
func graft(g *Paths, onto, from *Node) *Node {
	e := onto.Entry
	if g.Here {
		e = from.Entry
	}
	fresh := make(map[string]*Node)
	for name, below := range g.Below {
		fresh[name] = graftName(below, onto.Sub.Find(name), from.Sub.Find(name))
	}
	return &Node{Entry: e, Sub: onto.Sub.With(fresh)}
}

// graftName puts together what the two have under one name; nil is nothing.
func graftName(g *Paths, onto, from *Node) *Node {
	switch {
	case from == nil || from.Kind != KindDir:
		return from
	case onto == nil && !from.Opaque:
		return graft(g, &Node{Entry: from.Entry, Sub: NewDir(nil, nil)}, from)
	case onto != nil && onto.Kind == KindDir && onto.Opaque == from.Opaque:
		return graft(g, onto, from)
	}
	return from
}
