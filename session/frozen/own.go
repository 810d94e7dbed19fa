package frozen

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
)

// Own says whether a session has a history of its own, by a state of its upper: whether
// its git wrote more than what any look at a repository does. That is new objects, which
// nothing names, settings, and an index with the same entries; those indexes are given.
// Read reads a file of the state.
func (g Git) Own(state *manifest.Manifest, read func(*manifest.Entry) ([]byte, error)) (own bool, indexes []string) {
	for path, e := range state.All() {
		repository, rest, ok := g.splits(path)
		switch {
		case !ok:
		case rest == "":
			own = own || e.Kind != manifest.KindDir || e.Opaque
		case e.Kind == manifest.KindDir && !e.Opaque:
		case rest == "index" && e.Kind == manifest.KindFile:
			data, err := read(e)
			if err != nil || !sameIndex(data, filepath.Join(g.in(repository), "index")) {
				return true, nil
			}
			indexes = append(indexes, path)
		case !usual(rest):
			own = true
		}
	}
	if !own {
		own = g.ownOuter()
	}
	return own, indexes
}

// splits divides a path into that of one of the project's repositories and the rest.
func (g Git) splits(path string) (repository, rest string, ok bool) {
	for _, at := range g.Repositories {
		if rest, ok := strings.CutPrefix(path, at); ok && (rest == "" || rest[0] == '/') && filepath.Base(at) == ".git" {
			return at, strings.TrimPrefix(rest, "/"), true
		}
	}
	return "", "", false
}

// usual says whether a file of a repository tells nothing of its history.
func usual(rest string) bool {
	first, _, below := strings.Cut(rest, "/")
	switch first {
	case "objects", "hooks", "info":
		return below
	case "config", "description", "gitk.cache":
		return true
	}
	return false
}

// ownOuter is Own for a repository outside of the project.
func (g Git) ownOuter() (own bool) {
	if g.Outer == "" {
		return false
	}
	upper, index := g.outerUpper()
	_ = filepath.WalkDir(upper, func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(path, upper), "/")
		switch {
		case err != nil || d.IsDir():
		case rel == index && d.Type().IsRegular():
			data, err := git.ReadFile(path, maxIndex)
			own = own || err != nil || !sameIndex(data, filepath.Join(OuterLayer(g.Folder), index))
		default:
			own = own || !usual(rel)
		}
		return nil // what can't be read is of no use
	})
	return own
}

// outerUpper is what the session wrote of an outer repository, and its index there.
func (g Git) outerUpper() (upper, index string) {
	_, metadata := git.Above(g.Project)
	at, _ := filepath.Rel(g.Outer, metadata) // Outer is metadata or above it
	return filepath.Join(g.Folder, "outer", "upper"), filepath.Join(at, "index")
}

// DropOuterIndex has the index of an outer repository be the one that is taken next.
func (g Git) DropOuterIndex() {
	if g.Outer != "" {
		upper, index := g.outerUpper()
		_ = os.Remove(filepath.Join(upper, index)) // else it is compared again at the next time
	}
}

const maxIndex = 256 << 20

// sameIndex says whether an index has the same entries as a file.
func sameIndex(data []byte, file string) bool {
	is, err := git.ParseIndex(data)
	if err != nil {
		return false
	}
	before, err := git.ReadFile(file, maxIndex)
	if err != nil {
		return os.IsNotExist(err) && len(is) == 0
	}
	was, err := git.ParseIndex(before)
	if err != nil || len(is) != len(was) {
		return false
	}
	for i, e := range is {
		if o := was[i]; e.Path != o.Path || e.Mode != o.Mode || e.Stage != o.Stage || e.Sparse != o.Sparse || !bytes.Equal(e.Hash, o.Hash) {
			return false
		}
	}
	return true
}
