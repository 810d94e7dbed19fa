package frozen

import (
	"bytes"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/base"
	"stepbox/session/project"
)

// Otherwise are the paths, from a folder, that a repository's index and another have in
// another way, and what the other has there; nil for nothing.
func Otherwise(was *git.Repository, now []git.Entry) (map[string]*git.Entry, error) {
	then, _, err := was.Index()
	if err != nil {
		return nil, err
	}
	had, differ := map[string]*git.Entry{}, map[string]*git.Entry{}
	for i := range then {
		had[then[i].Path] = &then[i]
	}
	for i := range now {
		e := &now[i]
		if h := had[e.Path]; h == nil || h.Mode != e.Mode || !bytes.Equal(h.Hash, e.Hash) {
			differ[e.Path] = e
		}
		delete(had, e.Path)
	}
	for p := range had {
		differ[p] = nil
	}
	_, prefix := was.Root()
	paths := map[string]*git.Entry{}
	for p, e := range differ {
		in, err := filepath.Rel(path.Join(".", prefix), strings.TrimSuffix(p, "/"))
		if err == nil && filepath.IsLocal(in) {
			paths[in] = e
		}
	}
	return paths, nil
}

// Staged is what the agent's git has in another way than it was taken over, by path from
// the project; nil for nothing.
func (g Git) Staged(all []*Wrote) (map[string]*git.Entry, error) {
	has := map[string]*git.Entry{}
	for _, w := range all {
		if w.Index == nil {
			continue
		}
		others, err := Otherwise(git.OpenAs(filepath.Join(g.Project, w.Tree), git.Person{}, g.Of), w.Index)
		if err != nil {
			return nil, err
		}
		for p, e := range others {
			has[path.Join(w.Tree, p)] = e
		}
	}
	return has, nil
}

// Undone are the paths that a session's git has in another way than it was taken over, and
// that the session has as it first saw them, again: the agent put that back, and no change
// of the session's tells of it. What it never wrote itself is the person's.
func Undone(staged map[string]*git.Entry, state *manifest.Manifest, read Reader) (paths []string) {
	for _, p := range slices.Sorted(maps.Keys(staged)) {
		now, first := state.Has(state.Base, p), (*manifest.Manifest)(nil).Has(state.Base, p)
		folder := now != nil && now.Kind == manifest.KindDir // a submodule's
		if untracked := staged[p] == nil; !untracked && !folder && state.Knows(state.Base, p) && project.Of(now).Same(project.Of(first)) && !Committed(now, staged[p], read) {
			paths = append(paths, p)
		}
	}
	return paths
}

// Reader reads a file, or a link, of a session's state.
type Reader func(*manifest.Entry) ([]byte, error)

// Committed says whether an index has what is there, or nothing where there is none.
func Committed(e *manifest.Entry, in *git.Entry, read Reader) bool {
	if e.Absent() || in == nil || in.Mode != base.ModeOf(e) {
		return e.Absent() && in == nil
	}
	body := []byte(e.Target)
	if e.Kind == manifest.KindFile {
		var err error
		if body, err = read(e); err != nil {
			return false
		}
	}
	return git.Holds(body, in.Hash)
}

// UndoneAt is Undone of a session that is over, where the project has something else.
func (g Git) UndoneAt(state *manifest.Manifest, read Reader, has func(path string) (project.State, error)) (paths []string, err error) {
	g.Repositories = g.taken()
	staged, err := g.Staged(g.Wrote(state, read))
	for _, p := range Undone(staged, state, read) {
		if is, err := has(p); err != nil || !is.Same(project.Of(state.Has(state.Base, p))) {
			paths = append(paths, p)
		}
	}
	return paths, err
}
