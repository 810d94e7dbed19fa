package policy

import "slices"

// Hide are the files that some layer hides.
func (p *Policy) Hide() []FileRule { return gather(p, func(l *Layer) []FileRule { return l.Hide }) }

// ReadOnly are the files that some layer protects.
func (p *Policy) ReadOnly() []FileRule {
	return gather(p, func(l *Layer) []FileRule { return l.ReadOnly })
}

// Review are the files that some layer wants seen before they are applied.
func (p *Policy) Review() []FileRule { return gather(p, func(l *Layer) []FileRule { return l.Review }) }

// gather is what all layers have of something, the most specific first.
func gather[T any](p *Policy, of func(*Layer) []T) (out []T) {
	for i := range p.layers {
		out = append(out, of(&p.layers[len(p.layers)-1-i])...)
	}
	return out
}

// Limit is the smallest that some layer sets of a kind, see Limit.Name. Of two that are
// the same, one that denies counts.
func (p *Policy) Limit(name string) (smallest Limit, ok bool) {
	for _, l := range gather(p, func(l *Layer) []Limit { return l.Limits }) {
		if l.Name != name || ok && (l.Amount > smallest.Amount || l.Amount == smallest.Amount && !l.At.Stricter(smallest.At)) {
			continue
		}
		smallest, ok = l, true
	}
	return smallest, ok
}

// Limits are the smallest of each kind, in the order in which they are written.
func (p *Policy) Limits() (out []Limit) {
	for _, name := range LimitNames() {
		if l, ok := p.Limit(name); ok {
			out = append(out, l)
		}
	}
	return out
}

// Variables are those that pass from a person's environment, and those that are set:
// each by the most specific layer that does.
func (p *Policy) Variables() (pass, set []Variable) {
	return first(gather(p, func(l *Layer) []Variable { return l.Pass })), first(gather(p, func(l *Layer) []Variable { return l.Set }))
}

// first leaves out what was said before of the same variable.
func first(vars []Variable) (out []Variable) {
	for _, v := range vars {
		if !slices.ContainsFunc(out, func(o Variable) bool { return o.Name == v.Name }) {
			out = append(out, v)
		}
	}
	return out
}

// Names is where the addresses of host names come from, as the most specific layer says;
// none where no layer does.
func (p *Policy) Names() (n Names) {
	if all := gather(p, func(l *Layer) []Names { return l.Names }); len(all) > 0 {
		n = all[0]
	}
	return n
}

// Mounts are those of all layers. What one layer mounts to be read isn't written because
// another says so.
func (p *Policy) Mounts() (out []Mount) {
	for _, m := range gather(p, func(l *Layer) []Mount { return l.Mounts }) {
		i := slices.IndexFunc(out, func(o Mount) bool { return o.Path == m.Path })
		if i < 0 {
			out = append(out, m)
		} else if !m.Write {
			out[i] = m
		}
	}
	return out
}

// Asking is what layers say of what becomes of questions, the most specific first. All
// of it holds, and so the strictest: to deny, or else the shortest wait.
func (p *Policy) Asking() []Asking { return gather(p, func(l *Layer) []Asking { return l.Asking }) }
