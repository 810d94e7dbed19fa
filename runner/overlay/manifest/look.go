package manifest

import "strings"

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

// known is what a Base knows at a path; nil when it knows nothing, or that nothing
// was there.
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

// Knows says whether what a state has at a path, nothing too, is known: by its upper,
// or else by base.
func (m *Manifest) Knows(base *Base, path string) bool {
	if n, open := m.find(path); n != nil || !open {
		return true
	}
	if base == nil {
		return false
	}
	n := base.Root
	for name := range strings.SplitSeq(path, "/") {
		if n = n.under(name); n == nil {
			return false
		}
	}
	return true
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
