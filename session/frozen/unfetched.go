package frozen

import (
	"bufio"
	"cmp"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
)

// What a session's git has goes with the session, and no file that is applied has it: before
// it goes, what leads to commits is compared with what the person has. Nobody's git looks at
// what the agent wrote: references, and objects for the numbers, are read here, bounded.

// Bounds of what is read for that.
const (
	maxNamed   = 5         // that are named of many
	maxRefs    = 64 << 20  // bytes, of one file
	maxLoose   = 100_000   // references, each in a file, and working trees
	maxName    = 4 << 10   // bytes of a file that names one commit
	maxHeader  = 256 << 10 // bytes of a commit before its message
	maxCounted = 2000      // commits
)

// tip is what leads to commits that the repository hadn't.
type tip struct{ name, hash string }

// beyond stands for all that is beyond a bound: nobody has its commit.
var beyond = tip{"more references than are looked at", strings.Repeat("0", 40)}

// written is a repository as the session's git wrote it.
type written struct {
	dir    string   // of the repository, from root
	root   *os.Root // an upper folder, where the agent may have put anything
	layer  string   // the repository as it was taken
	folder string   // as people call it; "" for the project's own
}

// Has says which commits a person has of some, in a repository in the project's folder, or
// "" for the one outside of it; and by "" whether all was fetched since the session ended.
type Has func(repository string, hashes []string) map[string]bool

// Unfetched says in words which commits the session has that the person hasn't; "" for none.
func (g Git) Unfetched(has Has) string {
	var words []string
	if root, err := os.OpenRoot(filepath.Join(g.Folder, "upper")); err == nil { // else it wrote nothing
		defer root.Close()
		for _, at := range g.taken() {
			s := written{dir: at, root: root, layer: g.in(at), folder: folderOf(at)}
			words = append(append(words, s.unfetched(at, has)...), g.Beside(at)...)
		}
	}
	if root, err := os.OpenRoot(g.outerUpper()); err == nil && g.Outer != "" {
		defer root.Close()
		s := written{dir: ".", root: root, layer: OuterLayer(g.Folder)}
		outer := s.unfetched("", has)
		if len(outer) > 0 && g.Gone() {
			outer = append(outer, "which can't be fetched before the project is a working tree of its repository again (git worktree repair)")
		}
		words = append(append(words, outer...), g.Beside("")...)
	}
	return strings.Join(words, ", ")
}

// Beside says in words what a session's git has beside a repository's own objects, as a filter
// does that has git keep a pointer to what it was given (git-lfs, git-annex): files in folders
// there that are named by a hash, and that the person's has not. No commit brings them.
func (g Git) Beside(repository string) (words []string) {
	upper, dir, host := filepath.Join(g.Folder, "upper"), repository, filepath.Join(g.Project, repository)
	if repository == "" {
		upper, dir, host = g.outerUpper(), ".", g.Outer
	}
	root, err := os.OpenRoot(upper)
	if err != nil {
		return nil // it wrote nothing
	}
	defer root.Close()
	found := map[string]int{} // by folder
	_ = fs.WalkDir(root.FS(), dir, func(at string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, at) // it is below
		if err != nil {
			return nil // what can't be read is of no use
		}
		if _, own := gits[rel]; own && d.IsDir() {
			return fs.SkipDir
		}
		folder, _, _ := strings.Cut(rel, "/")
		if hashed.MatchString(rel) && d.Type().IsRegular() && !exists(filepath.Join(host, rel)) {
			found[folder]++
		}
		return nil
	})
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		words = append(words, api.Counted(found[folder], "content")+" in "+api.Escape(api.Trim(path.Join(cmp.Or(repository, ".git"), folder), 100))+", which no apply fetches: push it from the session")
	}
	return words
}

// hashed matches files in folders that are named by a hash.
var hashed = regexp.MustCompile("/[^/]*[0-9a-f]{32}[^/]*$")

// taken are the repositories in the project, and the project's own folder, which the agent may
// have made.
func (g Git) taken() []string {
	out, layer := []string{".git"}, Layer(g.Folder)
	_ = filepath.WalkDir(layer, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // as for modules
		}
		if exists(filepath.Join(filepath.Dir(at), "HEAD")) && d.Name() != "modules" {
			return fs.SkipDir
		}
		if rel, _ := filepath.Rel(layer, at); rel != ".git" && exists(filepath.Join(at, "HEAD")) { // it is below
			out = append(out, rel)
		}
		return nil
	})
	return out
}

// folderOf is what people call a repository by, see scratch.
func folderOf(at string) string {
	if before, module, ok := strings.Cut(at, ".git/modules/"); ok {
		return path.Join(before, module)
	}
	return strings.TrimPrefix(path.Dir("/"+at), "/")
}

// unfetched says what a person hasn't of one repository.
func (s written) unfetched(repository string, has Has) (words []string) {
	tips := s.tips()
	if text(s.root, path.Join(s.dir, "reftable/tables.list"), maxName) != "" && !has(repository, nil)[""] {
		return []string{"commits that its tables may lead to"}
	}
	if len(tips) == 0 {
		return nil
	}
	all := map[string]bool{}
	for _, t := range tips {
		s.count(t.hash, all)
	}
	return s.words(tips, has(repository, slices.Collect(maps.Keys(all))))
}

func (s written) words(tips []tip, known map[string]bool) (words []string) {
	in, stashes := "", 0
	if s.folder != "" {
		in = " in " + api.Escape(api.Trim(s.folder, 100))
	}
	for _, t := range tips {
		n, whole := s.count(t.hash, known)
		switch name := api.Escape(api.Trim(t.name, 100)); {
		case n == 0 && whole: // the person has it, or a tip before leads to it
		case t.name == stash:
			stashes++
		case whole:
			words = append(words, api.Counted(n, "commit")+" on "+name+in)
		default:
			words = append(words, "commits on "+name+in)
		}
	}
	if n := len(words) - maxNamed; n > 0 {
		words = append(words[:maxNamed], fmt.Sprintf("and %d more", n))
	}
	if stashes > 0 {
		words = append(words, strings.Replace(api.Counted(stashes, "stash"), "stashs", "stashes", 1)+in)
	}
	return words
}

// stash is the name of a tip that is one.
const stash = "stash"

// tips are what leads to commits, but for those that something led to when the repository was
// taken: branches first, then what is checked out without one, then tags, stashes and the rest.
func (s written) tips() (out []tip) {
	was, err := os.OpenRoot(s.layer)
	known := map[string]bool{}
	if err == nil { // else the agent made it
		defer was.Close()
		for _, t := range leading(was, ".") {
			known[t.hash] = true
		}
	}
	for _, t := range leading(s.root, s.dir) {
		switch {
		case known[t.hash] && t != beyond:
		case len(out) == maxTips:
			return append(out, beyond)
		default:
			known[t.hash] = true
			out = append(out, t)
		}
	}
	return out
}

// leading is what leads to commits in a repository.
func leading(root *os.Root, dir string) []tip {
	named, whole := branches(root, dir)
	of := func(prefix, words string) (out []tip) {
		for _, ref := range slices.Sorted(maps.Keys(named)) {
			if name, ok := strings.CutPrefix(ref, prefix); ok && isHash(named[ref]) {
				out = append(out, tip{words + name, named[ref]})
			}
		}
		return out
	}
	stashed := stashes(root, dir, named["refs/stash"])
	delete(named, "refs/stash")
	out := slices.Concat(of("refs/heads/", ""), heads(root, dir), of("refs/tags/", "the tag "), of("refs/notes/", "the notes "), stashed, of("refs/", "refs/"), of("worktrees/", "worktrees/"))
	if !whole {
		out = append(out, beyond)
	}
	return out
}

// Autostashes are files in which git keeps what a merge or a rebase under way put aside.
var Autostashes = []string{"MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash"}

// Foreign are references to what others made, and to what was fetched.
var Foreign = []string{"refs/remotes/", "refs/prefetch/", "refs/stepbox/"}

// branches are a repository's branches, tags and notes, and what else it has names for; whole
// says whether those are all.
func branches(root *os.Root, dir string) (named map[string]string, whole bool) {
	named = map[string]string{}
	packed, loose := text(root, path.Join(dir, "packed-refs"), maxRefs), 0
	for line := range strings.Lines(packed) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !isForeign(name) {
			named[name] = hash
		}
	}
	all := trees(root, dir)
	for _, tree := range all {
		_ = fs.WalkDir(root.FS(), path.Join(tree, "refs"), func(at string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(dir, at) // it is below
			if err != nil || !d.Type().IsRegular() || isForeign(rel) {
				return nil // what can't be read is of no use
			}
			if loose++; loose > maxLoose {
				return fs.SkipAll
			}
			named[rel] = strings.TrimSpace(text(root, at, maxName))
			return nil
		})
	}
	return named, len(packed) < maxRefs && max(loose, len(all)) <= maxLoose
}

func isForeign(ref string) bool {
	return slices.ContainsFunc(Foreign, func(prefix string) bool { return strings.HasPrefix(ref, prefix) })
}

// stashes are all that there are, the oldest first: as their log has them, and the newest,
// which outlives that.
func stashes(root *os.Root, dir, newest string) (out []tip) {
	for line := range strings.Lines(text(root, path.Join(dir, "logs/refs/stash"), maxRefs)) {
		if words := append(strings.Fields(line), "", ""); isHash(words[1]) {
			out = append(out, tip{stash, words[1]})
		}
	}
	if isHash(newest) {
		out = append(out, tip{stash, newest})
	}
	return out
}

// trees are the folders that a repository's working trees have for themselves.
func trees(root *os.Root, dir string) []string {
	linked, out := listed(root, path.Join(dir, "worktrees")), []string{dir}
	for _, d := range linked[:min(len(linked), maxLoose)] {
		out = append(out, path.Join(dir, "worktrees", d.Name()))
	}
	return out
}

// heads are the commits that are checked out without a branch, and what git put aside.
func heads(root *os.Root, dir string) (out []tip) {
	for i, name := range append([]string{"HEAD"}, Autostashes...) {
		for _, tree := range trees(root, dir) {
			if hash := strings.TrimSpace(text(root, path.Join(tree, name), maxName)); isHash(hash) {
				out = append(out, tip{[]string{"no branch", stash}[min(i, 1)], hash})
			}
		}
	}
	return out
}

// count counts the commits that a tip leads to and nobody had, and has them known. Whole says
// whether those were all: what the agent's git packed isn't looked into.
func (s written) count(hash string, known map[string]bool) (n int, whole bool) {
	packs := listed(s.root, path.Join(s.dir, "objects/pack"))
	for left := []string{hash}; len(left) > 0; left = left[1:] {
		if known[left[0]] {
			continue
		}
		known[left[0]] = true
		kind, next, err := s.object(left[0])
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(packs) == 0 && left[0] != hash: // it was there when the repository was taken
			continue
		case err != nil || len(known) > maxCounted:
			return n, false
		case kind == "commit":
			n++
		case len(next) == 0:
			return n, false
		}
		left = append(left, next...)
	}
	return n, true
}

// object reads what an object that isn't packed is, and what a commit or a tag leads to.
func (s written) object(hash string) (kind string, next []string, err error) {
	file, err := open(s.root, path.Join(s.dir, "objects", hash[:2], hash[2:]))
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	z, err := zlib.NewReader(io.LimitReader(file, maxHeader))
	if err != nil {
		return "", nil, err
	}
	defer z.Close()
	in := bufio.NewScanner(io.LimitReader(z, maxHeader))
	for first := true; in.Scan() && in.Text() != ""; first = false {
		line := in.Text()
		if first {
			head, rest, _ := strings.Cut(line, "\x00")
			kind, _, _ = strings.Cut(head, " ")
			line = rest
		}
		if key, value, _ := strings.Cut(line, " "); (key == "parent" || key == "object") && isHash(value) {
			next = append(next, value)
		}
	}
	return kind, next, nil
}

// listed is what is in a folder; none if it is something else.
func listed(root *os.Root, name string) (out []fs.DirEntry) {
	if info, err := root.Lstat(name); err == nil && info.IsDir() {
		out, _ = fs.ReadDir(root.FS(), name) // as in text
	}
	return out
}

// open opens a regular file where the agent may have put anything.
func open(root *os.Root, name string) (*os.File, error) {
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0) // whatever it is by now, that doesn't wait
}

// text is what a file has, up to a bound; "" if there is none.
func text(root *os.Root, name string, most int64) string {
	file, err := open(root, name)
	if err != nil {
		return ""
	}
	defer file.Close()
	out, _ := io.ReadAll(io.LimitReader(file, most)) // of no regular file it isn't a hash
	return string(out)
}
