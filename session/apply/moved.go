package apply

import (
	"cmp"
	"maps"
	"slices"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
)

// keepSources leaves files as they are whose content the session moved to a path that
// isn't written, being left out or in conflict: else the project would have it nowhere.
// What stays so isn't written either, and what was moved there stays as well.
func (b *planner) keepSources(changes []diff.Change) error {
	for again := true; again; {
		again = false
		renamed, moved, made := map[string]string{}, map[content.Hash][]*diff.Change{}, map[content.Hash]bool{}
		pairs := diff.Difference{Changes: slices.Clone(b.unmade)}
		for _, s := range b.steps {
			made[s.New.Hash] = true
		}
		for i := range changes {
			c := &changes[i]
			_, written := b.steps[c.Path]
			has, looked := b.looked[c.Path]
			if c.New == nil || c.New.Kind != manifest.KindFile || c.New.Size == 0 || written || looked && has.Same(files.StateOf(c.New)) {
				continue
			}
			from := c.From
			if c.Status == diff.Added && !b.sel.Files.Ignored(c.Path) { // as people see it: it may have been edited, too; of what builds make much is alike
				var err error
				if from, err = b.sel.Files.Origin(b.ctx, b.sel.From, b.sel.To, c.Path); err != nil {
					return err
				}
			}
			if !looked || has.Absent() || !b.replaced(from, c) {
				renamed[from] = c.Path
			}
			pairs.Changes = append(pairs.Changes, diff.Change{Path: c.Path, Status: diff.Added, New: c.New, Content: true})
			if !c.New.Hash.IsZero() {
				moved[c.New.Hash] = append(moved[c.New.Hash], c)
			}
		}
		for _, c := range b.sel.Files.Similar(b.ctx, pairs).Changes { // the session first saw neither
			renamed[c.From] = c.Path
		}
		for _, at := range slices.Sorted(maps.Keys(b.steps)) {
			s := b.steps[at]
			if s.Old.Kind != manifest.KindFile || s.Old.Size == 0 || made[s.Old.Hash] {
				continue
			}
			to := renamed[at]
			for _, c := range moved[s.Old.Hash] {
				if s.New.Absent() || b.tookOver(c, at, s.Old.Hash) {
					to = cmp.Or(to, c.Path)
				}
			}
			if to != "" {
				b.drop(at, "the session moved it to "+to+", which isn't written")
				again = true
			}
		}
	}
	return nil
}

// replaced says whether what the project has where a file was renamed is what was applied
// there with the renamed file, or after it, so that it isn't what was moved.
func (b *planner) replaced(from string, c *diff.Change) bool {
	_, by, _ := b.newest(from)
	_, moved, _ := b.newest(c.Path)
	return !by.at.Before(moved.at) && b.ours(from, b.looked[from]) && b.unchanged(c.Path, files.StateOf(c.New))
}

// tookOver says whether a file that is in conflict got its content while another one lost
// it, which is written anew: it hadn't got it when the session saw it there last. Of what a
// person said that it stays, they know.
func (b *planner) tookOver(c *diff.Change, from string, hash content.Hash) bool {
	if _, looked := b.looked[c.Path]; !looked || b.resolve[api.KeyOf(c.Path)].Way == api.WayThere {
		return false
	}
	was := c.Old
	if c.Status == diff.Renamed && b.looked[c.From].Absent() { // that is what it was renamed from
		was = nil
	}
	if s, by, ok := last(b.line, from); ok && s.Hash == hash {
		m, err := by.then.At(b.ctx, by.checkpoint)
		if err != nil {
			return true
		}
		was = nil
		if e := m.Has(m.Base, c.Path); e != nil {
			was = &diff.File{Entry: *e}
		}
	}
	return was == nil || was.Hash != hash
}
