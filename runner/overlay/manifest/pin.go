package manifest

// Pin is m with what was below the uppers in place of what shows through, wherever
// cover's upper hides that: as the Base of the later one knows it, and whatever has
// become of it on the host. So m says itself what it is at all paths at which it may
// differ from cover. Of a folder too large to be kept, the rest still shows through.
//
// Neither manifest is changed; a nil cover hides nothing.
func Pin(m, cover *Manifest) *Manifest {
	base := LaterBase(m, cover)
	root := graftRoot(m, cover)
	if cover == nil || base == nil || root.Opaque {
		return m
	}
	sub := pinDir(root.Sub, cover.Root.Sub, base.Root)
	if m != nil && sub == m.Root.Sub {
		return m
	}
	return &Manifest{Root: &Node{Entry: root.Entry, Sub: sub}, Base: base}
}

// pinDir pins what cover hides in a directory through which the lower shows.
func pinDir(m, cover *Dir, base *Node) *Dir {
	_, pages := UnsharedPages(m.Pages, cover.Pages)
	fresh := make(map[string]*Node)
	for _, p := range pages {
		for _, n := range p.Nodes {
			have := m.Find(n.Name)
			if have == n {
				continue
			}
			below := n.Sub
			if n.Kind != KindDir || n.Opaque {
				below = nil // it hides everything
			}
			if got := pinName(have, below, base.under(n.Name)); got != have {
				fresh[n.Name] = got
			}
		}
	}
	return m.With(fresh)
}

// under is what a Base knows of a name in what n is; nil when it doesn't.
func (n *Node) under(name string) *Node {
	below := n.Sub.Find(name)
	if below == nil && (n.Kind != KindDir || n.Opaque && n.Unsaved == "") {
		return &Node{Entry: Entry{Name: name, Kind: KindWhiteout}}
	}
	return below
}

// pinName pins what shows through under a name and below it; with a nil cover, all
// of it.
func pinName(m *Node, cover *Dir, base *Node) *Node {
	switch {
	case m != nil && (m.Kind != KindDir || m.Opaque), base == nil:
		return m
	case m != nil:
		out := &Node{Entry: m.Entry, Sub: pinBelow(m.Sub, cover, base)}
		if out.Opaque = cover == nil && listed(base); out.Sub == m.Sub && !out.Opaque {
			return m
		}
		return out
	case base.Kind == KindDir:
		out := &Node{Entry: base.Entry, Sub: pinBelow(NewDir(nil, nil), cover, base)}
		out.Opaque = cover == nil && listed(base)
		out.Unsaved = ""
		return out
	}
	out := &Node{Entry: base.Entry}
	out.Links = 0
	return out
}

func pinBelow(m, cover *Dir, base *Node) *Dir {
	if cover != nil {
		return pinDir(m, cover, base)
	}
	fresh := make(map[string]*Node)
	for b := range base.Sub.All() {
		have := m.Find(b.Name)
		if got := pinName(have, nil, b); got != have {
			fresh[b.Name] = got
		}
	}
	return m.With(fresh)
}

// listed says whether a Base has all of a directory, so that nothing of it has to
// show through.
func listed(n *Node) bool {
	switch {
	case n.Kind == KindWhiteout:
		return true
	case n.Kind == KindDir && (n.Unsaved != "" || !n.Opaque):
		return false
	}
	for c := range n.Sub.All() {
		if !listed(c) {
			return false
		}
	}
	return true
}
