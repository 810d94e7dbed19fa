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
	Repository string              // its folder, from the project; "" for the one outside of it
	Tree       string              // its working tree, from the project
	Tips       map[string]struct{} // commits that its references name
	Index      []git.Entry         // another than there was; nil for none
	Other      bool                // more than commits: what a merge or a rebase under way notes, a branch that is gone
	Files      []string            // that go where the session is to have the host's state, from the project, or absolute
}

// Own says whether that is a history of its own.
func (w *Written) Own() bool { return w.Other || w.Index != nil || w.Tips != nil }

// Written finds that by a state of a session's upper. Read reads a file of the state.
func (g Git) Written(state *manifest.Manifest, read func(*manifest.Entry) ([]byte, error)) (all []*Written) {
	of, trees := map[string]*Written{}, g.modules()
	for _, at := range g.Repositories {
		if filepath.Base(at) == ".git" {
			trees[at] = filepath.Dir(at)
		}
	}
	for path, e := range state.All() {
		repository, rest := innermost(trees, path)
		if repository == "" || e.Kind == manifest.KindDir && !e.Opaque {
			continue
		}
		w := of[repository]
		if w == nil {
			w = &Written{Repository: repository, Tree: trees[repository]}
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

// modules are the submodules' folders in the project's repositories, and where their
// working trees are, both from the project.
func (g Git) modules() map[string]string {
	out := map[string]string{}
	for _, at := range g.Repositories {
		_ = filepath.WalkDir(g.in(filepath.Join(at, "modules")), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // there are none, or none that the agent could use
			}
			switch name := d.Name(); {
			case (name == "objects" || name == "refs" || name == "logs" || name == "hooks") && exists(filepath.Join(filepath.Dir(path), "HEAD")): // else it is a submodule's name
				return fs.SkipDir
			case exists(filepath.Join(path, "HEAD")):
				rel, _ := filepath.Rel(Layer(g.Folder), path) // it is below
				tree, err := filepath.Rel(g.Project, git.Worktree(filepath.Join(g.Project, rel)))
				if err == nil && filepath.IsLocal(tree) {
					out[rel] = tree
				}
			}
			return nil
		})
	}
	return out
}

// Folders are those in the project that are working trees, but for the project.
func (g Git) Folders() (out []string) {
	for _, tree := range g.modules() {
		out = append(out, tree)
	}
	for _, at := range g.Repositories {
		if dir := filepath.Dir(at); filepath.Base(at) == ".git" && dir != "." {
			out = append(out, dir)
		}
	}
	return out
}

// innermost is the repository that a path is in, and the rest of it.
func innermost(trees map[string]string, path string) (repository, rest string) {
	for at := range trees {
		if below, ok := strings.CutPrefix(path, at); ok && (below == "" || below[0] == '/') && len(at) > len(repository) {
			repository, rest = at, strings.TrimPrefix(below, "/")
		}
	}
	return repository, rest
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
	w, upper := &Written{Tree: "."}, g.outerUpper()
	_, metadata := git.Above(g.Project)
	at, _ := filepath.Rel(g.Outer, metadata) // Outer is metadata or above it
	_ = filepath.WalkDir(upper, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what can't be read is of no use
		}
		rel, in := strings.TrimPrefix(path, upper+"/"), OuterLayer(g.Folder)
		if rest, ok := strings.CutPrefix(rel, at+"/"); ok {
			rel, in = rest, filepath.Join(in, at) // the working tree's own
		}
		rel, in = module(rel, in)
		if w.file(rel, d.Type().IsRegular(), func() ([]byte, error) { return git.ReadFile(path, maxIndex) }, filepath.Join(in, "index")) {
			w.Files = append(w.Files, path)
		}
		return nil
	})
	return w
}

// module goes from a repository's folder into that of the submodule that a path is of.
func module(rel, in string) (string, string) {
	for i := range len(rel) {
		if at := filepath.Join(in, rel[:i]); rel[i] == '/' && strings.HasPrefix(rel, "modules/") && exists(filepath.Join(at, "HEAD")) {
			return module(rel[i+1:], at)
		}
	}
	return rel, in
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
