package manifest

import (
	"slices"

	"stepbox/runner/overlay/content"
)

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

// UnsharedPages leaves out the pages that both lists have.
func UnsharedPages(a, b []*Page) (onlyA, onlyB []*Page) {
	ptrs, hashes := make(map[*Page]bool, len(a)), make(map[content.Hash]bool, len(a))
	for _, p := range a {
		ptrs[p] = true
		if h, _ := p.known(); !h.IsZero() {
			hashes[h] = true
		}
	}
	inBoth, hashBoth := map[*Page]bool{}, map[content.Hash]bool{}
	for _, p := range b {
		h, _ := p.known()
		switch {
		case ptrs[p]:
			inBoth[p] = true
		case !h.IsZero() && hashes[h]:
			hashBoth[h] = true
		default:
			onlyB = append(onlyB, p)
		}
	}
	for _, p := range a {
		if h, _ := p.known(); !inBoth[p] && !hashBoth[h] {
			onlyA = append(onlyA, p)
		}
	}
	return onlyA, onlyB
}
