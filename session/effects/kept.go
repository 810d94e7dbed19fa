package effects

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"path"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/base"
)

// repositories say which contents git has: what the project's commits and
// indexes named when the session started, what the indexes name before and
// after the action, and the objects that the session has added one by one.
type repositories struct {
	in      *Input
	indexes map[string][]git.Entry // by state and path of the repository
}

// repository is the innermost one that a path is in; false for none.
func (r *repositories) repository(p string) (*base.Repository, bool) {
	var found *base.Repository
	if r.in.Base != nil {
		for i := range r.in.Base.Repositories {
			if at := &r.in.Base.Repositories[i]; at.Path == "" || strings.HasPrefix(p, at.Path+"/") {
				found = at // the list is by path: a later one is deeper
			}
		}
	}
	if found == nil && r.in.To.Lookup(".git/HEAD") != nil { // made in the session
		found = &base.Repository{}
	}
	return found, found != nil
}

// committed says whether git has the content of one side of a change: what it
// was before the action when old, else what it became. At are the states whose
// indexes and objects count.
func (r *repositories) committed(p string, f *diff.File, state *manifest.Manifest, at ...*manifest.Manifest) bool {
	repo, ok := r.repository(p)
	if !ok || f == nil {
		return false
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(p, repo.Path), "/")
	tracked := tracked(repo, rel)
	if state.Lookup(p) == nil { // the project's own, as it was when the session started
		return tracked != nil && !r.differs(p)
	}
	content := []byte(f.Target)
	if f.Kind == manifest.KindFile {
		if content, ok = r.in.Read(f); !ok {
			return false
		}
	}
	sum := blob(tracked, content)
	if tracked != nil && bytes.Equal(sum, tracked.Hash) {
		return true
	}
	name := hex.EncodeToString(sum)
	for _, m := range at {
		if m.Lookup(path.Join(repo.Path, ".git/objects", name[:2], name[2:])) != nil {
			return true
		}
		entries := r.index(m, repo.Path)
		i, found := slices.BinarySearchFunc(entries, rel, func(e git.Entry, rel string) int { return strings.Compare(e.Path, rel) })
		if found && bytes.Equal(entries[i].Hash, sum) {
			return true
		}
	}
	return false
}

func tracked(repo *base.Repository, rel string) *base.Tracked {
	i, found := slices.BinarySearchFunc(repo.Tracked, rel, func(t base.Tracked, rel string) int { return strings.Compare(t.Path, rel) })
	if !found || repo.Tracked[i].Stage != 0 {
		return nil
	}
	return &repo.Tracked[i]
}

// differs says whether a path differed from the index when the session started.
func (r *repositories) differs(p string) bool {
	_, found := slices.BinarySearchFunc(r.in.Base.Entries, p, func(e base.Entry, p string) int { return strings.Compare(e.Path, p) })
	return found
}

// index is what a repository's index has in a state, when the session wrote it.
func (r *repositories) index(m *manifest.Manifest, repo string) []git.Entry {
	at := path.Join(repo, ".git/index")
	key := fmt.Sprintf("%p %s", m, at)
	if known, ok := r.indexes[key]; ok {
		return known
	}
	var entries []git.Entry
	if b, ok := r.in.at(m, at); ok {
		entries, _ = git.ParseIndex(b) // what can't be read names nothing
		slices.SortStableFunc(entries, func(a, b git.Entry) int { return strings.Compare(a.Path, b.Path) })
	}
	r.indexes[key] = entries
	return entries
}

// blob is git's hash of a content, in the form that the repository uses.
func blob(like *base.Tracked, content []byte) []byte {
	var h hash.Hash = sha1.New()
	if like != nil && len(like.Hash) == sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(content)) // a hash takes all
	h.Write(content)
	return h.Sum(nil)
}
