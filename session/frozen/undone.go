package frozen

import (
	"bytes"
	"encoding/hex"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/base"
	"stepbox/session/project"
)

// Otherwise are the paths, from a folder, that an index or a commit of its repository and another
// have in another way, and what the other has there; nil for nothing.
func Otherwise(folder string, then, now []git.Entry) map[string]*git.Entry {
	had, paths := map[string]*git.Entry{}, map[string]*git.Entry{}
	root, _ := git.Above(folder)
	note := func(p string, e *git.Entry) {
		in, err := filepath.Rel(folder, filepath.Join(root, p))
		if err == nil && filepath.IsLocal(in) {
			paths[in] = e
		}
	}
	for i := range then {
		had[then[i].Path] = &then[i]
	}
	for i := range now {
		e := &now[i]
		if h := had[e.Path]; h == nil || h.Mode != e.Mode || !bytes.Equal(h.Hash, e.Hash) {
			note(e.Path, e)
		}
		delete(had, e.Path)
	}
	for p := range had {
		note(p, nil)
	}
	return paths
}

// Index is what the session's git has staged in a folder, or else as it was taken over.
func (g Git) Index(tree string, all []*Wrote) ([]git.Entry, error) {
	for _, w := range all {
		if w.Tree == tree && w.Index != nil {
			return w.Index, nil
		}
	}
	entries, _, err := git.OpenAs(filepath.Join(g.Project, tree), git.Person{}, g.Of).Index()
	return entries, err
}

// Tree lists a commit of a repository's as an index has it, by the person's own git; nil where
// they haven't got it.
type Tree func(repository, commit string) ([]git.Entry, error)

// Trees are what that git says.
func Trees(ask func(repository string, args ...string) (string, error)) Tree {
	return func(repository, commit string) (tree []git.Entry, err error) {
		has, err := ask(repository, "rev-list", "--ignore-missing", "--no-walk", commit)
		if err != nil || has == "" {
			return nil, err
		}
		list, err := ask(repository, "ls-tree", "-r", "-z", "--full-tree", commit)
		tree = []git.Entry{}
		for line := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
			what, name, _ := strings.Cut(line, "\t")
			if words := strings.Fields(what); len(words) == 3 { // else the tree is empty
				mode, _ := strconv.ParseUint(words[0], 8, 32)
				hash, _ := hex.DecodeString(words[2])
				tree = append(tree, git.Entry{Path: name, Mode: uint32(mode), Hash: hash})
			}
		}
		return tree, err
	}
}

// Staged is what the agent's git has in another way than it was taken over, by path from
// the project; nil for nothing.
func (g Git) Staged(all []*Wrote) (map[string]*git.Entry, error) {
	return g.committed(all, func(string, string) ([]git.Entry, error) { return nil, nil })
}

// committed is what the commits that the session has checked out have in another way than those
// that were taken over, and where the person has none of them, what is staged.
func (g Git) committed(all []*Wrote, tree Tree) (map[string]*git.Entry, error) {
	has := map[string]*git.Entry{}
	for _, w := range all {
		then, now, err := g.newest(w, tree)
		if err != nil {
			return nil, err
		}
		if now != nil {
			for p, e := range Otherwise(filepath.Join(g.Project, w.Tree), then, now) {
				has[path.Join(w.Tree, p)] = e
			}
		}
	}
	return has, nil
}

// newest is that of one repository, and what was taken over; nil for nothing.
func (g Git) newest(w *Wrote, tree Tree) (then, now []git.Entry, err error) {
	was, is := git.CheckedOut(filepath.Join(g.Project, w.Tree), g.Of), g.Tip(w.Tree)
	if is.Commit != was.Commit && is.Commit != "" && exists(g.Host(w.Repository)) {
		now, err = tree(w.Repository, is.Commit)
		if now != nil && was.Commit != "" {
			then, err = tree(w.Repository, was.Commit)
		}
	}
	if now == nil {
		now = w.Index
	}
	if now != nil && then == nil && err == nil {
		then, err = g.Index(w.Tree, nil)
	}
	return then, now, err
}

// Undone are the paths that the session's commits have in another way than it was taken over,
// and that the session has as it first saw them, again, though the project hasn't: the agent put
// that back, and no change of the session's tells of it. What it never wrote itself is the
// person's. Ours says whether the project has a path as the session.
func (g Git) Undone(all []*Wrote, state *manifest.Manifest, read Reader, tree Tree, ours func(path string, e *manifest.Entry) bool) (paths []string, err error) {
	has, err := g.committed(all, tree)
	for _, p := range slices.Sorted(maps.Keys(has)) {
		now, first := state.Has(state.Base, p), (*manifest.Manifest)(nil).Has(state.Base, p)
		folder := now != nil && now.Kind == manifest.KindDir // a submodule's
		if !folder && state.Knows(state.Base, p) && project.Of(now).Same(project.Of(first)) && !Committed(now, has[p], read) && !ours(p, now) {
			paths = append(paths, p)
		}
	}
	return paths, err
}

// UndoneAt is Undone of a session that is over.
func (g Git) UndoneAt(state *manifest.Manifest, read Reader, tree Tree, ours func(path string, e *manifest.Entry) bool) ([]string, error) {
	g.Repositories = g.taken()
	return g.Undone(g.Wrote(state, read), state, read, tree, ours)
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
