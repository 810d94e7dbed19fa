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
	p.curGroups, curMembers = cur.LinkGroups()
	p.groups, p.members = target.LinkGroups()
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
