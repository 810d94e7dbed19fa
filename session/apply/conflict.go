package apply

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/merge"
	"stepbox/session/project"
)

// maxMerged bounds the texts that are merged, in bytes.
const maxMerged = content.ChunkedAbove

// conflict notes that the project's file, which lies at a path, isn't what the
// session first saw, and does what a person said of it. Without a word of theirs it
// stays as it is.
func (b *planner) conflict(c *diff.Change, at string, has, want project.State) error {
	seen := c.Old
	hidden := slices.Contains(b.hidden, c.Path)
	why := whyConflict(seen, has, want, hidden)
	if files.Still(seen, has) && !hidden {
		why = cmp.Or(b.p.turned[at], b.p.turned[c.Path], why)
	}
	if s, by, ok := b.newest(at); ok && b.whole(at) && by.own(at) {
		seen = fileOf(at, s) // what both sides went on from
	}
	var m merge.Result
	var there []byte
	mode, both := mergedMode(seen, has, want)
	if both && mode != has.Mode&0o777 && has.Kind == want.Kind {
		why += fmt.Sprintf("; the session changed its mode, %04o to %04o", has.Mode&0o777, mode)
	}
	if hidden || has.Kind != manifest.KindFile || want.Kind != manifest.KindFile {
		m.Why = "not two texts"
	} else {
		var err error
		if there, err = b.three(at, seen, has, want, &m); err != nil {
			return err
		}
	}
	clean := m.Why == "" && m.Clean && both
	merged := clean && mode == has.Mode&0o777 && bytes.Equal(m.Text, there) // both changes, as after a merge
	if merged && at == c.Path && !b.chosen && b.p.turned[at] == "" {
		b.p.There++
		return nil
	}
	out := b.conflicts(c, why)
	out.Clean, out.Clashes = clean, m.Clashes
	if clean {
		var err error
		if out.Merged, _, _, err = files.Hunks(string(there), string(m.Text)); err != nil {
			return err
		}
	}
	r, ok := b.resolve[out.Key]
	if m.Why == "" && !ok {
		b.p.both[at] = func() (*manifest.Entry, error) {
			text, err := m.Resolve(slices.Repeat([]api.Way{api.WayWanted}, len(m.Clashes)))
			if err != nil {
				return nil, err
			}
			s := want
			s.Mode = mode
			s.Hash, s.Size, err = files.Bodies{Store: b.a.Store}.Put(b.ctx, bytes.NewReader(text))
			return &fileOf(at, s).Entry, err
		}
	}
	if !ok {
		return nil
	}
	made := *c
	if r.Way != api.WayMerge && len(r.Sides) > 0 {
		return api.Problemf(api.CodeInvalid, "%s is resolved by a side for each place only where it is merged", out.Path)
	}
	switch r.Way {
	case api.WayThere:
		return nil
	case api.WayWanted:
		if has.Kind != 0 && has.Kind != manifest.KindFile && has.Kind != manifest.KindSymlink && want.Kind != manifest.KindDir {
			return api.Problemf(api.CodeInvalid, "%s is a %s in the project, which isn't replaced: move it away, or leave it there", out.Path, has.Kind)
		}
	case api.WayMerge:
		if !both && m.Why == "" {
			m.Why = "its permissions were changed in two ways"
		}
		text, err := m.Resolve(r.Sides)
		if err == nil && len(text) > maxMerged {
			err = api.Problemf(api.CodeInvalid, "%s is too large to be merged", out.Path)
		}
		if err != nil {
			return err
		}
		hash, _, err := files.Bodies{Store: b.a.Store}.Put(b.ctx, bytes.NewReader(text))
		if err != nil {
			return err
		}
		want.Hash, want.Size, want.Mode = hash, int64(len(text)), mode
		f := *c.New
		f.Hash, f.Size, f.Mode, f.Lower = hash, want.Size, mode, false
		made.New = &f
	default:
		return api.Problemf(api.CodeInvalid, "there is no way %q to resolve a conflict: use %s, %s or %s", api.Escape(api.Trim(string(r.Way), 40)), api.WayMerge, api.WayWanted, api.WayThere)
	}
	if at != c.Path { // it was renamed
		b.goes(at, c.Path, has)
		has = project.State{}
	}
	if want.Same(has) { // merged, with its own side everywhere
		b.resolve[out.Key] = api.Resolution{Key: out.Key, Way: api.WayThere}
		b.p.There++
		return nil
	}
	if r.Way == api.WayMerge {
		b.p.merged = append(b.p.merged, out.Key)
	}
	b.step(&made, has, want)
	return nil
}

// whyConflict says in words what became of a path in the project.
func whyConflict(seen *diff.File, has, want project.State, hidden bool) string {
	what := has.Kind.String()
	if has.Kind == manifest.KindDir {
		what = "folder"
	}
	switch f := seen; {
	case hidden:
		return "it was hidden from the agent, which made one of its own"
	case f != nil && f.Unsaved != "" && f.Hash.IsZero() && f.MTime == (manifest.Time{}):
		return "what the project had there isn't in the record, so nobody can tell whether it changed since"
	case has.Absent():
		return "it was deleted in the project since"
	case f == nil:
		return fmt.Sprintf("there is a %s of that name in the project by now", what)
	case f.Kind != has.Kind:
		return fmt.Sprintf("it became a %s in the project since", what)
	case want.Absent():
		return "it was changed in the project since; the session deleted it"
	}
	return "it was changed in the project since"
}

// mergedMode puts two changes of permissions together, if they don't contradict.
func mergedMode(seen *diff.File, has, want project.State) (mode uint32, ok bool) {
	h, w := has.Mode&0o777, want.Mode&0o777
	switch {
	case h == w:
		return h, true
	case seen == nil:
		return h, false
	case seen.Mode&0o777 == h:
		return w, true
	}
	return h, seen.Mode&0o777 == w
}

// three merges what the project has with what is wanted.
func (b *planner) three(at string, seen *diff.File, has, want project.State, into *merge.Result) (there []byte, err error) {
	first := project.State{}
	if f := seen; f != nil {
		if first = files.StateOf(f); f.Kind != manifest.KindFile || f.Unsaved != "" {
			into.Why = "what it was before isn't in the record"
			return nil, nil
		}
	}
	if max(first.Size, has.Size, want.Size) > maxMerged {
		into.Why = "too large to be merged"
		return nil, nil
	}
	kept, err := b.folder.Keep(b.ctx, at, files.Bodies{Store: b.a.Store})
	if err != nil {
		return nil, err
	}
	if !kept.Same(has) {
		return nil, ErrStale
	}
	var texts [3][]byte
	for i, s := range []project.State{first, has, want} {
		if texts[i], err = b.read(s, maxMerged); err != nil {
			return nil, err
		}
	}
	*into = merge.Three(texts[0], texts[1], texts[2])
	return texts[1], nil
}

// read is a file's content, from the record.
func (b *planner) read(s project.State, most int64) ([]byte, error) {
	if s.Size == 0 {
		return nil, nil
	}
	return b.sel.Files.Read(b.ctx, fileOf("", s), most)
}
