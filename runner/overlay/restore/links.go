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

// maxLinked is for how many files it is looked whether the lower has other names of them.
const maxLinked = 1000

// apart is what is said of such a file.
const apart = "the project has other names of it (hard links): it comes back as a file of its own, and so do others like it"

// sayApart says of a file that is written as the lower had it, and is among several names
// of one there, that it becomes a file of its own: an overlay can't link the two. What
// was the upper's by then was one already. Of several it says the first; of what is laid
// out anew, and was never seen as one file, nothing.
func (p *planner) sayApart(path string) error {
	if p.whole || p.linked >= maxLinked || p.groups[path] != 0 || p.had.Lookup(path) != nil {
		return nil
	}
	p.linked++
	linked, err := p.lower.Linked(p.ctx, path)
	if err != nil || !linked {
		return p.ctx.Err()
	}
	p.linked = maxLinked
	p.problem(path, "%s", apart)
	return nil
}
