package overlay

import "slices"

// links finds the files whose hard links differ between cur and target: those
// are written anew with all members of their group, and visited even where
// nothing else differs.
func (p *planner) links(cur, target *Manifest) {
	var curMembers map[uint64][]string
	p.curGroups, curMembers = linkGroups(cur)
	p.groups, p.members = linkGroups(target)
	for path, g := range p.groups {
		if !slices.Equal(p.members[g], curMembers[p.curGroups[path]]) {
			p.force[path] = true
		}
	}
	for path, g := range p.curGroups {
		if !slices.Equal(curMembers[g], p.members[p.groups[path]]) {
			p.force[path] = true
		}
	}
	for path := range p.force {
		if p.pair.forced == nil {
			p.pair.forced = map[string]bool{}
		}
		for path != "" {
			path, _ = split(path)
			p.pair.forced[path] = true
		}
	}
}

// linkGroups finds the hard links of an upper: each path's group and each
// group's paths in order. Group 0 has none.
func linkGroups(m *Manifest) (map[string]uint64, map[uint64][]string) {
	groups, members := map[string]uint64{}, map[uint64][]string{}
	if m == nil {
		return groups, members
	}
	var walk func(path string, d *dir)
	walk = func(path string, d *dir) {
		if !d.links {
			return
		}
		for n := range d.all() {
			switch {
			case n.sub != nil:
				walk(join(path, n.Name), n.sub)
			case n.Links != 0:
				members[n.Links] = append(members[n.Links], join(path, n.Name))
			}
		}
	}
	walk("", m.root.sub)
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
