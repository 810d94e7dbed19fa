package changes

import "stepbox/ui/find"

// Filter lists only the files that a filter has. For that all of them are fetched.
func (p *Pane) Filter(f find.Filter) {
	p.filter = f
	p.arrange()
}

// Match goes to the next or previous file that is listed; beyond the last is the first.
func (p *Pane) Match(by int) {
	p.list.Step(by, len(p.rows), func(n int) bool { return p.tree.nodes[p.rows[n]].file >= 0 })
	p.touched = true
	p.choose(p.list.At())
}

// sift counts the files that the filter has.
func (p *Pane) sift() {
	if p.found = nil; !p.filter.Narrows() {
		return
	}
	files := p.shown().Files
	p.found = make([]int32, len(files)+1)
	for i := range files {
		p.found[i+1] = p.found[i]
		if r := find.OfChange(&files[i]); p.filter.Has(&r) {
			p.found[i+1]++
		}
	}
}

// has is how many of some files the filter has.
func (p *Pane) has(from, to int) int {
	if p.found == nil {
		return to - from
	}
	return int(p.found[to] - p.found[from])
}

// without says whether the filter has nothing of a node.
func (p *Pane) without(n *node) bool { return p.found != nil && p.has(int(n.from), int(n.to)) == 0 }

// near is the node of the first file that is listed behind another, or else of the first.
func (p *Pane) near(node int) int {
	for _, i := range p.rows {
		if int(i) > node && p.tree.nodes[i].file >= 0 {
			return int(i)
		}
	}
	return p.first()
}
