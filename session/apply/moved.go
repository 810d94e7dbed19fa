package apply

import (
	"cmp"
	"maps"
	"slices"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
)

// keepSources leaves files there whose content the session moved to a path that isn't
// written, being left out or in conflict: else the project would have it nowhere.
func (b *planner) keepSources(changes []diff.Change) {
	renamed, moved := map[string]string{}, map[content.Hash]string{}
	for i := range changes {
		c := &changes[i]
		_, written := b.steps[c.Path]
		has, looked := b.looked[c.Path]
		if c.New == nil || c.New.Kind != manifest.KindFile || c.New.Size == 0 || written || looked && has.Same(wanted(c.New)) {
			continue
		}
		if c.Status == diff.Renamed {
			renamed[c.From] = c.Path
		}
		if !c.New.Hash.IsZero() {
			moved[c.New.Hash] = c.Path
		}
	}
	for _, at := range slices.Sorted(maps.Keys(b.steps)) {
		s := b.steps[at]
		to := cmp.Or(renamed[at], moved[s.Old.Hash])
		if s.New.Absent() && s.Old.Kind == manifest.KindFile && s.Old.Size > 0 && to != "" {
			b.drop(at, "the session moved it to "+to+", which isn't written")
		}
	}
}
