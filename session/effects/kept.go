package effects

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/base"
)

// repositoryOf is the innermost repository that a path is in; nil for none.
func (s *summary) repositoryOf(p string) (found *base.Repository) {
	if s.Base != nil {
		for i := range s.Base.Repositories {
			if at := &s.Base.Repositories[i]; at.Path == "" || strings.HasPrefix(p, at.Path+"/") {
				found = at // the list is by path: a later one is deeper
			}
		}
	}
	if found == nil && (s.To.Lookup(".git/HEAD") != nil || s.From.Lookup(".git/HEAD") != nil) { // made in the session
		found = &base.Repository{}
	}
	return found
}

// committed says whether git has what a path is in a state: what the commits and
// indexes named when the session started, what the index names in some states,
// or what the session has added to git's objects by then.
func (s *summary) committed(p string, f *diff.File, state *manifest.Manifest, at ...*manifest.Manifest) bool {
	repo := s.repositoryOf(p)
	if repo == nil {
		return false
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(p, repo.Path), "/")
	var tracked base.Tracked
	if i, ok := slices.BinarySearchFunc(repo.Tracked, rel, func(t base.Tracked, rel string) int { return strings.Compare(t.Path, rel) }); ok && repo.Tracked[i].Stage == 0 {
		tracked = repo.Tracked[i]
	}
	if state.Lookup(p) == nil && s.Base != nil && s.Base.Missing == "" { // the project's own, as it was when the session started
		_, differs := slices.BinarySearchFunc(s.Base.Entries, p, func(e base.Entry, p string) int { return strings.Compare(e.Path, p) })
		return tracked.Path != "" && !differs
	}
	content := []byte(f.Target)
	if f.Kind == manifest.KindFile {
		var ok bool
		if content, ok = s.read(f, maxFile); !ok {
			return false
		}
	}
	hash := git.Object("blob", int64(len(content)), len(tracked.Hash))
	hash.Write(content)
	sum := hash.Sum(nil)
	name := hex.EncodeToString(sum)
	return bytes.Equal(sum, tracked.Hash) || slices.ContainsFunc(at, func(m *manifest.Manifest) bool {
		entries := s.index(m, repo.Path)
		i, found := slices.BinarySearchFunc(entries, rel, func(e git.Entry, rel string) int { return strings.Compare(e.Path, rel) })
		return found && bytes.Equal(entries[i].Hash, sum) || m.Lookup(path.Join(repo.Path, ".git/objects", name[:2], name[2:])) != nil
	})
}

// index is what a repository's index has in a state, when the session wrote it.
func (s *summary) index(m *manifest.Manifest, repo string) []git.Entry {
	at := path.Join(repo, ".git/index")
	key := fmt.Sprintf("%p %s", m, at)
	if known, ok := s.indexes[key]; ok {
		return known
	}
	var entries []git.Entry
	if e := m.Lookup(at); !e.Absent() {
		if b, ok := s.read(&diff.File{Entry: *e, Path: at}, maxRead); ok {
			entries, _ = git.ParseIndex(b) // what can't be read names nothing
			slices.SortStableFunc(entries, func(a, b git.Entry) int { return cmp.Or(strings.Compare(a.Path, b.Path), a.Stage-b.Stage) })
		}
	}
	s.indexes[key] = entries
	return entries
}
