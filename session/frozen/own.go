package frozen

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/policy/git"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Wrote is what a session's git wrote of one repository, but for new objects, settings and an
// index with the same entries, which any look at it may leave and which tell of no history.
type Wrote struct {
	Repository string              // its folder, from the project; "" for the one outside of it
	Tree       string              // its working tree, from the project
	Tips       map[string]struct{} // commits that its references name
	Logged     map[string]struct{} // commits that its logs name, but for those that were amended
	Index      []git.Entry         // another than there was; nil for none
	Other      bool                // more than commits: what a merge or a rebase under way notes, a branch that is gone
	Files      map[string]string   // that go where the session is to have the host's state, from the project, or absolute: what they are of in the layer

	upper string // the repository's folder, as Files have it
}

// Own says whether that is a history of its own.
func (w *Wrote) Own() bool { return w.Other || w.Index != nil || w.Tips != nil || w.Logged != nil }

// Wrote finds that by a state of a session's upper. Read reads a file of the state.
func (g Git) Wrote(state *manifest.Manifest, read func(*manifest.Entry) ([]byte, error)) (all []*Wrote) {
	of, trees := map[string]*Wrote{}, g.trees()
	for path, e := range state.All() {
		repository, rest := innermost(trees, path)
		if repository == "" || e.Kind == manifest.KindDir && !e.Opaque {
			continue
		}
		w := of[repository]
		if w == nil {
			w = &Wrote{Repository: repository, Tree: trees[repository], upper: repository, Files: map[string]string{}}
			of[repository], all = w, append(all, w)
		}
		if w.file(rest, e.Kind == manifest.KindFile, func() ([]byte, error) { return read(e) }, g.in(repository)) {
			w.Files[path] = g.in(repository)
		}
	}
	if g.Outer != "" {
		all = append(all, g.outerWrote())
	}
	return all
}

// In says whether a path of the project's is in one of its repositories, and whether it is
// one of the objects there, or a folder of them.
func (g Git) In(path string) (in, object bool) {
	for _, at := range g.Repositories {
		if rest, below := strings.CutPrefix(path, at+"/"); below && filepath.Base(at) == ".git" {
			rest, _ = module(rest, g.in(at))
			return true, strings.HasPrefix(rest, "objects/")
		}
	}
	return false, false
}

// trees are the project's repositories, and the folders that submodules and linked working trees
// have in them, and where their working trees are, both from the project.
func (g Git) trees() map[string]string {
	out := map[string]string{}
	for i := range 2 * len(g.Repositories) {
		at := g.Repositories[i/2]
		if filepath.Base(at) == ".git" {
			out[at] = filepath.Dir(at)
		}
		_ = filepath.WalkDir(g.in(filepath.Join(at, []string{"modules", "worktrees"}[i%2])), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || !d.IsDir(): // there are none, or none that the agent could use
			case own[d.Name()] && exists(filepath.Join(filepath.Dir(path), "HEAD")): // else it is a submodule's name
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

// own are folders of a repository in which there is no other.
var own = map[string]bool{
	"objects": true,
	"refs":    true,
	"logs":    true,
	"hooks":   true,
}

// Folders are those in the project that are working trees, but for the project.
func (g Git) Folders() (out []string) {
	for _, tree := range g.trees() {
		if tree != "." {
			out = append(out, tree)
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

// kind is what a file of a repository tells of.
type kind int

const (
	other     kind = iota // more than what was committed
	quiet                 // nothing: any look may leave it
	noted                 // that something was done
	logged                // commits that were there once
	reference             // commits
	packed                // commits, and what names them
	index                 // what is staged
)

// kinds are those of files, and of what is in folders.
var kinds = map[string]kind{
	"objects/":       quiet,
	"hooks/":         quiet,
	"info/":          quiet,
	"config":         quiet,
	"description":    quiet,
	"gitk.cache":     quiet,
	"logs/":          logged,
	"COMMIT_EDITMSG": noted,
	"ORIG_HEAD":      noted,
	"FETCH_HEAD":     noted,
	"AUTO_MERGE":     noted,
	"gc.log":         noted,
	"refs/":          reference,
	"HEAD":           reference,
	"packed-refs":    packed,
	"index":          index,
}

// maxTips bounds how many commits of a session's are looked at.
const maxTips = 1000

// file takes one file of a repository into account, and says whether it has to go if the
// session is to have the host's state. Was is what the repository was.
func (w *Wrote) file(rest string, regular bool, read func() ([]byte, error), was string) (goes bool) {
	first, _, below := strings.Cut(rest, "/")
	if below {
		first += "/"
	}
	k := kinds[first]
	if k == quiet && (regular || first != "objects/" || !exists(filepath.Join(was, rest))) {
		return false
	}
	var data []byte
	var err error
	if regular && k > noted {
		data, err = read()
	}
	switch {
	case !regular && k != noted || k == other || err != nil: // where objects are gone, those of another time would be, too
		w.Other = true
		return false
	case k == index:
		w.index(data, filepath.Join(was, "index"))
	case k == logged:
		w.log(data, filepath.Join(was, rest))
	case k == packed && named(data, was):
		w.Other = true
	default:
		w.tips(data)
	}
	return true
}

// index notes what is staged, if it is something else.
func (w *Wrote) index(data []byte, was string) {
	entries, err := git.ParseIndex(data)
	if err != nil {
		w.Other = true
	} else if !sameIndex(entries, was) {
		w.Index = append([]git.Entry{}, entries...)
	}
}

// log notes the commits that a log names in lines that it hadn't.
func (w *Wrote) log(data []byte, was string) {
	before, _ := git.ReadFile(was, maxIndex) // else it is new
	if w.Logged == nil {
		w.Logged = map[string]struct{}{}
	}
	for line := range bytes.Lines(bytes.TrimPrefix(data, before)) {
		who, what, _ := strings.Cut(string(line), "\t")
		hashes := append(strings.Fields(who), "", "")
		if strings.HasPrefix(what, "commit (amend)") {
			delete(w.Logged, hashes[0])
		}
		switch is := hashes[1]; {
		case !isHash(is) || len(w.Logged) == maxTips:
			w.Other = true
			return
		case strings.Trim(is, "0") != "":
			w.Logged[is] = struct{}{}
		}
	}
}

// named says whether packed references name something that the repository had no name for.
func named(data []byte, was string) bool {
	before := packedRefs(was)
	for line := range bytes.Lines(data) {
		if _, name, ok := strings.Cut(strings.TrimSpace(string(line)), " "); ok && line[0] != '#' && !hasRef(was, name, before) {
			return true
		}
	}
	return false
}

// packedRefs are a repository's references that are in one file.
func packedRefs(in string) string {
	data, _ := git.ReadFile(filepath.Join(in, "packed-refs"), maxIndex) // else there are none
	return string(data)
}

// hasRef says whether a repository has a reference of a name.
func hasRef(in, name, packed string) bool {
	return strings.Contains(packed, " "+name+"\n") || filepath.IsLocal(name) && exists(filepath.Join(in, name))
}

func isHash(text string) bool {
	return len(text) >= 40 && strings.Trim(text, "0123456789abcdef") == ""
}

// tips notes the commits that references name. What isn't well-formed is more than that.
func (w *Wrote) tips(data []byte) {
	if w.Tips == nil {
		w.Tips = map[string]struct{}{}
	}
	for line := range bytes.Lines(data) {
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' || strings.HasPrefix(text, "ref: ") {
			continue
		}
		hash, _, _ := strings.Cut(strings.TrimPrefix(text, "^"), " ") // of a tag that packed-refs has, what it names
		if !isHash(hash) || len(w.Tips) == maxTips {
			w.Other = true
			return
		}
		w.Tips[hash] = struct{}{}
	}
}

// outerWrote is Wrote for a repository outside of the project.
func (g Git) outerWrote() *Wrote {
	upper := g.outerUpper()
	w := &Wrote{Tree: ".", upper: upper, Files: map[string]string{}}
	_ = filepath.WalkDir(upper, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what can't be read is of no use
		}
		rel, in := strings.TrimPrefix(path, upper+"/"), OuterLayer(g.Folder)
		if rest, ok := strings.CutPrefix(rel, g.At+"/"); ok {
			rel, in = rest, filepath.Join(in, g.At) // the working tree's own
		}
		rel, in = module(rel, in)
		if w.file(rel, d.Type().IsRegular(), func() ([]byte, error) { return git.ReadFile(path, maxIndex) }, in) {
			w.Files[path] = in
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

// Drop has a session's git be what was taken, and says of paths in the project whether they
// go for that. Branches and tags stay where the project has none of the name.
func (g Git) Drop(all []*Wrote) (goes func(path string) bool) {
	drop := map[string]bool{}
	for _, w := range all {
		for path, in := range w.Files {
			name := strings.TrimPrefix(path, w.upper+"/")
			if drop[path] = !strings.HasPrefix(name, "refs/") || hasRef(in, name, packedRefs(in)); drop[path] && w.Repository == "" {
				_ = os.Remove(path) // else it is compared again at the next time
			}
		}
	}
	return func(path string) bool { return drop[path] }
}

// Alone has a repository that the agent made, and that the project has one in the place of
// by now, be the agent's alone: with the index of the one and the branches of the other the
// agent's next commit would have the person's files deleted.
func (g Git) Alone(all []*Wrote) error {
	for _, w := range all {
		at := g.in(w.Repository)
		if !w.Own() || filepath.Base(at) != ".git" || exists(at) {
			continue
		}
		err := os.MkdirAll(at, 0o755)
		if err == nil {
			err = unix.Setxattr(at, inode.Opaque, []byte("y"), 0)
		}
		if err != nil {
			return fmt.Errorf("cannot hide the project's %q: %w", w.Repository, err)
		}
	}
	return nil
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
