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

// Written is what a session's git wrote of one repository, but for objects, settings and an
// index with the same entries, which any look at it may leave and which tell of no history.
type Written struct {
	Repository string              // from the project; "" for the one outside of it
	Tips       map[string]struct{} // commits that its references name
	Index      []git.Entry         // another than there was; nil for none
	Other      bool                // more than commits: what a merge or a rebase under way notes, a branch that is gone
	Files      []string            // that go where the session is to have the host's state, from the project, or absolute
}

// Own says whether that is a history of its own.
func (w *Written) Own() bool { return w.Other || w.Index != nil || w.Tips != nil }

// Written finds that by a state of a session's upper. Read reads a file of the state.
func (g Git) Written(state *manifest.Manifest, read func(*manifest.Entry) ([]byte, error)) (all []*Written) {
	of := map[string]*Written{}
	for path, e := range state.All() {
		repository, rest, ok := g.splits(path)
		if !ok || e.Kind == manifest.KindDir && !e.Opaque {
			continue
		}
		w := of[repository]
		if w == nil {
			w = &Written{Repository: repository}
			of[repository], all = w, append(all, w)
		}
		if w.file(rest, e.Kind == manifest.KindFile, func() ([]byte, error) { return read(e) }, filepath.Join(g.in(repository), "index")) {
			w.Files = append(w.Files, path)
		}
	}
	if g.Outer != "" {
		all = append(all, g.outerWritten())
	}
	return all
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

// Folders are those in the project that have a repository in .git, but for the project.
func (g Git) Folders() (out []string) {
	for _, at := range g.Repositories {
		if dir := filepath.Dir(at); filepath.Base(at) == ".git" && dir != "." {
			out = append(out, dir)
		}
	}
	return out
}

// notes are files of a repository that tell of nothing but what was done.
var notes = map[string]bool{"COMMIT_EDITMSG": true, "ORIG_HEAD": true, "FETCH_HEAD": true, "gc.log": true}

// maxTips bounds how many commits of a session's are looked at.
const maxTips = 100

// file takes one file of a repository into account, and says whether it has to go if the
// session is to have the host's state.
func (w *Written) file(rest string, regular bool, read func() ([]byte, error), index string) (goes bool) {
	first, _, below := strings.Cut(rest, "/")
	switch {
	case (first == "objects" || first == "hooks" || first == "info") && below || first == "config" || first == "description" || first == "gitk.cache":
		return false
	case !regular:
		w.Other = true
		return false
	case first == "logs" && below || notes[rest]:
		w.tips(nil) // something was done
		return true
	case rest == "index":
		data, err := read()
		entries, bad := git.ParseIndex(data)
		if err != nil || bad != nil {
			w.Other = true
		} else if !sameIndex(entries, index) {
			w.Index = append([]git.Entry{}, entries...)
		}
		return true
	case first == "refs" && below || rest == "HEAD" || rest == "packed-refs":
		data, err := read()
		w.Other = w.Other || err != nil
		w.tips(data)
		return true
	}
	w.Other = true
	return false
}

// tips notes the commits that references name. What isn't well-formed is more than that.
func (w *Written) tips(data []byte) {
	if w.Tips == nil {
		w.Tips = map[string]struct{}{}
	}
	for line := range bytes.Lines(data) {
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' || strings.HasPrefix(text, "ref: ") {
			continue
		}
		hash, _, _ := strings.Cut(strings.TrimPrefix(text, "^"), " ") // of a tag that packed-refs has, what it names
		if len(hash) < 40 || strings.Trim(hash, "0123456789abcdef") != "" || len(w.Tips) == maxTips {
			w.Other = true
			return
		}
		w.Tips[hash] = struct{}{}
	}
}

// outerWritten is Written for a repository outside of the project.
func (g Git) outerWritten() *Written {
	w, upper := &Written{}, g.outerUpper()
	_, metadata := git.Above(g.Project)
	at, _ := filepath.Rel(g.Outer, metadata) // Outer is metadata or above it
	_ = filepath.WalkDir(upper, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what can't be read is of no use
		}
		rel := strings.TrimPrefix(path, upper+"/")
		if rest, ok := strings.CutPrefix(rel, at+"/"); ok {
			rel = rest // the working tree's own
		}
		if w.file(rel, d.Type().IsRegular(), func() ([]byte, error) { return git.ReadFile(path, maxIndex) }, filepath.Join(OuterLayer(g.Folder), at, "index")) {
			w.Files = append(w.Files, path)
		}
		return nil
	})
	return w
}

// outerUpper is what the session wrote of an outer repository.
func (g Git) outerUpper() string { return filepath.Join(g.Folder, "outer", "upper") }

// Drop has an outer repository's files be what is taken next.
func (g Git) Drop(all []*Written) {
	for _, w := range all {
		for _, path := range w.Files {
			if w.Repository == "" {
				_ = os.Remove(path) // else it is compared again at the next time
			}
		}
	}
}

const maxIndex = 256 << 20

// sameIndex says whether an index has the same entries as a file.
func sameIndex(is []git.Entry, file string) bool {
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
