package manifest

import "sync/atomic"

// Piece is what a state gets at one path.
type Piece struct {
	Path  string
	From  *Manifest // the state that has it; where its upper has nothing of it, what was below
	Whole bool      // with all below it; else a directory that is there keeps what is in it
	Entry *Entry    // instead of what From has; of a directory, its attributes
}

// Transplant is onto with some pieces of other states of the same session, and
// nothing else changed: what onto has below a directory stays, unless a piece is
// whole; what isn't a directory isn't replaced by one that would lead to a piece.
// What was below the uppers is taken from the latest Base. Directories that
// lead to a piece come along. No manifest is changed.
//
// Files that were one by hard links in a piece's state are one among the pieces
// from it, and not with any other.
func Transplant(onto *Manifest, pieces []Piece) *Manifest {
	top := &Tree[*Piece]{}
	var states []*Manifest
	for i := range pieces {
		top.At(pieces[i].Path).Here = &pieces[i]
		if pieces[i].From != nil {
			states = append(states, pieces[i].From)
		}
	}
	states = append(states, onto)
	t := &transplant{base: LaterBase(states...), links: make(map[linked]uint64)}
	root := *graftRoot(onto, states[0])
	if p := top.Here; p != nil {
		if n, _ := p.From.find(""); p.Entry != nil {
			root.Entry = *p.Entry
		} else if n != nil {
			root.Entry = n.Entry
			root.Opaque = onto != nil && onto.Root.Opaque
		}
	}
	root.Sub = t.dir(root.Sub, !root.Opaque, "", top)
	return &Manifest{Root: &root, Base: t.base}
}

// source is a state that some piece comes from.
func source(at *Tree[*Piece]) *Manifest {
	if at.Here != nil && at.Here.From != nil {
		return at.Here.From
	}
	for _, next := range at.Below {
		if m := source(next); m != nil {
			return m
		}
	}
	return nil
}

// linked names a group of hard links in a state.
type linked struct {
	in    *Manifest
	group uint64
}

type transplant struct {
	base  *Base
	links map[linked]uint64 // what groups of the pieces' states are called
}

// freshLinks numbers groups of hard links, which are inodes elsewhere: no file
// system gives such high ones.
var freshLinks atomic.Uint64

// dir puts the pieces into a directory's entries.
func (t *transplant) dir(old *Dir, open bool, path string, g *Tree[*Piece]) *Dir {
	if len(g.Below) == 0 {
		return old
	}
	fresh := make(map[string]*Node)
	for name, below := range g.Below {
		fresh[name] = t.node(old.Find(name), open, name, Join(path, name), below)
	}
	return old.With(fresh)
}

// node is what becomes of one name; open says whether the lower shows through in
// the directory.
func (t *transplant) node(old *Node, open bool, name, path string, g *Tree[*Piece]) *Node {
	n := old
	if g.Here != nil {
		n = t.place(old, open, name, path, g.Here)
	}
	if len(g.Below) == 0 {
		return n
	}
	if n != nil && n.Kind == KindDir {
		return &Node{Entry: n.Entry, Sub: t.dir(n.Sub, open && !n.Opaque, path, g)}
	}
	if n != nil && n.Kind != KindWhiteout {
		return n // nothing leads through it
	}
	through := n == nil && open // the lower's directory, if there is one, shows
	made := &Node{Entry: t.leading(path, g, through)}
	made.Name, made.Opaque = name, open && !through
	made.Sub = t.dir(NewDir(nil, nil), through, path, g)
	for c := range made.Sub.All() {
		if through || c.Kind != KindWhiteout {
			return made
		}
	}
	return n // there is nothing that it would have to lead to
}

// leading is a directory that is made for what goes below it.
func (t *transplant) leading(path string, g *Tree[*Piece], through bool) Entry {
	from := source(g)
	b, n := t.base.known(path), from.Has(t.base, path)
	switch {
	case through && b != nil && b.Kind == KindDir:
		return b.Entry
	case n != nil && n.Kind == KindDir:
		return *n
	case b != nil && b.Kind == KindDir:
		return b.Entry
	}
	e := Entry{Kind: KindDir, Meta: Meta{Mode: 0o755}}
	if from != nil {
		e.UID, e.GID, e.MTime = from.Root.UID, from.Root.GID, from.Root.MTime
	}
	return e
}

// place is a piece in its place.
func (t *transplant) place(old *Node, open bool, name, path string, p *Piece) *Node {
	if p.Entry != nil {
		n := &Node{Entry: *p.Entry}
		n.Name, n.Links = name, 0
		if n.Kind == KindDir {
			n.Opaque, n.Sub = n.Opaque && t.base.known(path) == nil, NewDir(nil, nil)
			if old != nil && old.Kind == KindDir {
				n.Opaque, n.Sub = old.Opaque, old.Sub
			}
		}
		return n
	}
	n, shows := p.From.find(path)
	lower := t.base.known(path)
	if n == nil && shows { // the state has what was below
		if open && (p.Whole || lower == nil || lower.Kind != KindDir || old == nil || old.Kind != KindDir) {
			return nil
		}
		n = lower
	}
	if n == nil || n.Kind == KindWhiteout {
		if open {
			return &Node{Entry: Entry{Name: name, Kind: KindWhiteout}}
		}
		return nil
	}
	if n.Kind != KindDir {
		return t.relinked(p.From, &Node{Entry: n.Entry})
	}
	if p.Whole {
		if shows && !open && lower != nil {
			n = union(n, lower)
		}
		made := *t.relinked(p.From, n)
		made.Opaque = made.Opaque || open && !shows
		return &made
	}
	made := &Node{Entry: n.Entry, Sub: NewDir(nil, nil)}
	if made.Opaque = open; old != nil && old.Kind == KindDir {
		made.Opaque, made.Sub = old.Opaque, old.Sub
	} else if old == nil && open {
		made.Opaque = lower == nil || lower.Kind != KindDir
	}
	return made
}

// union is a directory of an upper with what shows through of the lower's.
func union(up, low *Node) *Node {
	if up == low || up.Kind != KindDir || up.Opaque || low.Kind != KindDir {
		return up
	}
	fresh := make(map[string]*Node)
	for n := range up.Sub.All() {
		if below := low.Sub.Find(n.Name); below != nil {
			n = union(n, below)
		}
		fresh[n.Name] = n
	}
	return &Node{Entry: up.Entry, Sub: low.Sub.With(fresh)}
}

// relinked is a node whose groups of hard links have names of their own.
func (t *transplant) relinked(in *Manifest, n *Node) *Node {
	if n.Links != 0 {
		key := linked{in, n.Links}
		if t.links[key] == 0 {
			t.links[key] = 1<<62 + freshLinks.Add(1)
		}
		renamed := *n
		renamed.Links = t.links[key]
		return &renamed
	}
	if n.Sub == nil || !n.Sub.Links {
		return n
	}
	list := make([]*Node, 0, n.Sub.Count)
	for c := range n.Sub.All() {
		list = append(list, t.relinked(in, c))
	}
	return &Node{Entry: n.Entry, Sub: NewDir(list, nil)}
}
