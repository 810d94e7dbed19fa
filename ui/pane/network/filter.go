package network

import (
	"slices"

	"stepbox/session/api"
	"stepbox/ui/find"
)

// Filter lists only the attempts that a filter has, and what is held.
func (p *Pane) Filter(f find.Filter) {
	if n := len(p.rows()); !f.Narrows() && n > 0 {
		p.List.Select(p.List.In(n))
	}
	p.filter, p.sifted = f, false
	if n := len(p.rows()); p.List.At() == n-1 {
		p.List.Follow()
	}
}

// Select selects the row of an attempt, if it is listed.
func (p *Pane) Select(id int64) {
	if i := slices.IndexFunc(p.rows(), func(f Fold) bool { return slices.Contains(f.IDs, id) }); i >= 0 {
		p.List.Select(i)
	}
}

// Match goes to the next or previous row that the filter has.
func (p *Pane) Match(by int) {
	folds := p.rows()
	p.List.Step(by, len(folds), func(n int) bool { return folds[n].Question == nil })
}

// sift are the attempts that the filter has.
func (p *Pane) sift() []api.Attempt {
	if !p.filter.Narrows() {
		return p.State.Attempts
	}
	var out []api.Attempt
	for i := range p.State.Attempts {
		if r := find.OfAttempt(&p.State.Attempts[i]); p.filter.Has(&r) {
			out = append(out, p.State.Attempts[i])
		}
	}
	return out
}
