package restore

import (
	"slices"

	"stepbox/runner/overlay/manifest"
)

// links finds the files whose hard links differ between cur and target: those
// are written anew with all members of their group, and visited even where
// nothing else differs.
func (p *planner) links(cur, target *manifest.Manifest) {
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
		if p.pair.Forced == nil {
			p.pair.Forced = map[string]bool{}
		}
		for path != "" {
			path, _ = manifest.Split(path)
			p.pair.Forced[path] = true
		}
	}
}

// linkGroups finds the hard links of an upper: each path's group and each
// group's paths in order. Group 0 has none.
func linkGroups(m *manifest.Manifest) (map[string]uint64, map[uint64][]string) {
	groups, members := map[string]uint64{}, map[uint64][]string{}
	if m == nil {
		return groups, members
	}
	var walk func(path string, d *manifest.Dir)
	walk = func(path string, d *manifest.Dir) {
		if !d.Links {
			return
		}
		for n := range d.All() {
			switch {
			case n.Sub != nil:
				walk(manifest.Join(path, n.Name), n.Sub)
			case n.Links != 0:
				members[n.Links] = append(members[n.Links], manifest.Join(path, n.Name))
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
