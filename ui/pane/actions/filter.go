package actions

import (
	"stepbox/session/api"
	"stepbox/ui/find"
)

// Filter lists only what a filter has, and what is held. What is selected stays so where it can.
func (p *Pane) Filter(f find.Filter) {
	if n := p.Total(); !f.Narrows() && n > 0 {
		p.List.Select(p.List.In(n))
	}
	p.filter, p.sifted = f, false
	if n := p.Total(); p.List.At() == n-1 {
		p.List.Follow()
	}
}

// Near selects what the filter has that is nearest to an action: itself, the next one, or
// else the last.
func (p *Pane) Near(n int) {
	items, at := p.rows(), -1
	for i, it := range items {
		if it.kept || it.earlier {
			continue
		}
		if at = i; it.n >= n {
			break
		}
	}
	if at < 0 {
		return
	}
	if p.List.Select(at); at == len(items)-1 {
		p.List.Follow()
	}
}

// Earlier says whether the row of those before the first is selected.
func (p *Pane) Earlier() bool {
	items := p.rows()
	return len(items) > 0 && items[p.List.In(len(items))].earlier
}

// Match goes to the next or previous row that the filter has.
func (p *Pane) Match(by int) {
	items := p.rows()
	p.List.Step(by, len(items), func(n int) bool { return !items[n].kept && !items[n].earlier })
}

// sift says of actions whether the filter has them, and whether they are held.
func (p *Pane) sift() func(a *api.Action) (found, held bool) {
	if !p.filter.Narrows() {
		return func(*api.Action) (bool, bool) { return true, false }
	}
	hosts := find.Hosts(p.State.Attempts)
	asked := map[int]bool{}
	for i := range p.State.Questions {
		if q := &p.State.Questions[i]; !q.Apart() {
			asked[q.Action] = true
		}
	}
	return func(a *api.Action) (found, held bool) {
		held = a.State == api.ActionHeld || asked[a.N]
		r := find.OfAction(a, held, hosts[a.N], p.Wrote.By(a.N))
		return p.filter.Has(&r), held
	}
}
