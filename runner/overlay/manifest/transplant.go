package manifest

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

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
	t := &transplant{base: onto.baseOf(), links: make(map[linked]uint64)}
	top := &bed{}
	first := (*Manifest)(nil)
	for i := range pieces {
		p := &pieces[i]
		top.at(p.Path).piece = p
		t.base = laterOf(t.base, p.From.baseOf())
		if first == nil {
			first = p.From
		}
	}
	root := *graftRoot(onto, first)
	if p := top.piece; p != nil {
		if n, _ := p.From.find(""); n != nil {
			root.Entry = n.Entry
			root.Opaque = onto != nil && onto.Root.Opaque
		}
	}
	root.Sub = t.dir(root.Sub, !root.Opaque, "", top)
	return &Manifest{Root: &root, Base: t.base}
}

func (m *Manifest) baseOf() *Base {
	if m == nil {
		return nil
	}
	return m.Base
}

func laterOf(a, b *Base) *Base {
	if a == nil || b != nil && b.Steps > a.Steps {
		return b
	}
	return a
}

// find is what the upper has at a path, which may be a whiteout, and whether the
// lower shows through in the directory that it is in.
func (m *Manifest) find(path string) (n *Node, open bool) {
	if m == nil {
		return nil, true
	}
	n, open = m.Root, true
	if path == "" {
		return n, true
	}
	for name := range strings.SplitSeq(path, "/") {
		if n == nil || n.Kind != KindDir {
			return nil, n == nil && open
		}
		open = open && !n.Opaque
		if n = n.Sub.Find(name); n == nil && !open {
			return nil, false
		}
	}
	return n, open
}

// known is what a Base knows at a path; nil: that there was nothing, or nothing.
func (b *Base) known(path string) *Node {
	if b == nil {
		return nil
	}
	n, _ := (&Manifest{Root: b.Root}).find(path)
	if n == nil || n.Kind == KindWhiteout {
		return nil
	}
	return n
}

// Has is what a state has at a path, with what base knows where its upper has
// nothing; nil is nothing, or what no upper ever covered.
func (m *Manifest) Has(base *Base, path string) *Entry {
	n, open := m.find(path)
	if n == nil && open {
		n = base.known(path)
	}
	if n == nil || n.Kind == KindWhiteout {
		return nil
	}
	return &n.Entry
}

// Shape is what a path means for those below it.
type Shape uint8

const (
	ShapeNone   Shape = iota // no directory
	ShapeOpen                // a directory through which the lower shows
	ShapeClosed              // a directory of the upper alone
)

// Shape says what a path is for those below it.
func (m *Manifest) Shape(base *Base, path string) Shape {
	n, open := m.find(path)
	switch {
	case n == nil && !open:
		return ShapeNone
	case n == nil:
		if b := base.known(path); b == nil || b.Kind != KindDir {
			return ShapeNone
		}
		return ShapeOpen
	case n.Kind != KindDir:
		return ShapeNone
	case n.Opaque || !open:
		return ShapeClosed
	}
	if b := base.known(path); b == nil || b.Kind != KindDir {
		return ShapeClosed // nothing is there to show
	}
	return ShapeOpen
}

// bed is the tree of the paths that pieces go to.
type bed struct {
	piece *Piece // nil: others are below
	below map[string]*bed
}

func (b *bed) at(path string) *bed {
	for path != "" {
		name, rest, _ := strings.Cut(path, "/")
		next := b.below[name]
		if next == nil {
			next = &bed{}
			if b.below == nil {
				b.below = make(map[string]*bed)
			}
			b.below[name] = next
		}
		b, path = next, rest
	}
	return b
}

// source is a state that some piece below comes from.
func (b *bed) source() *Manifest {
	if b.piece != nil && b.piece.From != nil {
		return b.piece.From
	}
	for _, next := range b.below {
		if m := next.source(); m != nil {
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
func (t *transplant) dir(old *Dir, open bool, path string, g *bed) *Dir {
	if len(g.below) == 0 {
		return old
	}
	nodes := make(map[string]*Node)
	for n := range old.All() {
		nodes[n.Name] = n
	}
	for name, below := range g.below {
		if n := t.node(nodes[name], open, name, Join(path, name), below); n != nil {
			nodes[name] = n
		} else {
			delete(nodes, name)
		}
	}
	list := make([]*Node, 0, len(nodes))
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		list = append(list, nodes[name])
	}
	return NewDir(list, old)
}

// node is what becomes of one name; open says whether the lower shows through in
// the directory.
func (t *transplant) node(old *Node, open bool, name, path string, g *bed) *Node {
	n := old
	if g.piece != nil {
		n = t.place(old, open, name, path, g.piece)
	}
	if len(g.below) == 0 {
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
func (t *transplant) leading(path string, g *bed, through bool) Entry {
	from := g.source()
	b, n := t.base.known(path), from.Has(t.base, path)
	switch {
	case through && b != nil && b.Kind == KindDir:
		return b.Entry
	case n != nil && n.Kind == KindDir:
		return *n
	case b != nil && b.Kind == KindDir:
		return b.Entry
	}
	e := Entry{Kind: KindDir, Mode: 0o755}
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
			n.Opaque, n.Sub = false, NewDir(nil, nil)
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
	nodes := make(map[string]*Node)
	for n := range low.Sub.All() {
		nodes[n.Name] = n
	}
	for n := range up.Sub.All() {
		if below := nodes[n.Name]; below != nil {
			n = union(n, below)
		}
		nodes[n.Name] = n
	}
	list := make([]*Node, 0, len(nodes))
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		list = append(list, nodes[name])
	}
	return &Node{Entry: up.Entry, Sub: NewDir(list, nil)}
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

// LinkGroups finds the hard links of an upper: each path's group, and each
// group's paths in order. Group 0 has none.
func (m *Manifest) LinkGroups() (groups map[string]uint64, members map[uint64][]string) {
	groups, members = map[string]uint64{}, map[uint64][]string{}
	if m == nil {
		return groups, members
	}
	var walk func(path string, d *Dir)
	walk = func(path string, d *Dir) {
		if !d.Links {
			return
		}
		for n := range d.All() {
			switch {
			case n.Sub != nil:
				walk(Join(path, n.Name), n.Sub)
			case n.Links != 0:
				members[n.Links] = append(members[n.Links], Join(path, n.Name))
			}
		}
	}
	walk("", m.Root.Sub)
	for g, paths := range members {
		if len(paths) < 2 {
			delete(members, g) // the other names were left out of the manifest
			continue
		}
		for _, path := range paths {
			groups[path] = g
		}
	}
	return groups, members
}
