package manifest

import "slices"

// UnionNames merges the names of two directories of uppers and those of the
// lower. With skip it leaves out what both uppers share.
func UnionNames(a, b *Dir, low []string, skip bool) []string {
	var names []string
	var pa, pb []*Page
	if a != nil {
		pa = a.Pages
	}
	if b != nil {
		pb = b.Pages
	}
	if skip {
		pa, pb = UnsharedPages(pa, pb)
	}
	add := func(pages []*Page) {
		for _, p := range pages {
			for _, n := range p.Nodes {
				names = append(names, n.Name)
			}
		}
	}
	add(pa)
	add(pb)
	names = append(names, low...)
	slices.Sort(names)
	return slices.Compact(names)
}

// UnsharedPages leaves out the pages that both lists have: the same ones, or
// such that are stored under one hash.
func UnsharedPages(a, b []*Page) (onlyA, onlyB []*Page) {
	key := func(p *Page) any {
		if h, _ := p.known(); !h.IsZero() {
			return h
		}
		return p
	}
	without := func(pages, others []*Page) (only []*Page) {
		there := make(map[any]bool, len(others))
		for _, p := range others {
			there[key(p)] = true
		}
		return slices.DeleteFunc(slices.Clone(pages), func(p *Page) bool { return there[key(p)] })
	}
	return without(a, b), without(b, a)
}
