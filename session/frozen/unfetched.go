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
	"sync"

	"stepbox/session/api"
)

// What a session's git has goes with the session, and no file that is applied has it: before
// it goes, what leads to commits is compared with what the person has. Nobody's git looks at
// what the agent wrote: references, and objects for the numbers, are read here, bounded.

// Bounds of what is read for that.
const (
	maxNamed   = 5         // that are named of many
	maxRefs    = 64 << 20  // bytes, of one file
	maxName    = 4 << 10   // bytes of a file that names one commit
	maxHeader  = 256 << 10 // bytes of a commit before its message
	maxCounted = 2000      // commits
)

// tip is what leads to commits that the repository hadn't.
type tip struct{ name, hash string }

// Of these nobody has the commit: all that is beyond a bound, or that git may read and isn't
// plain; and references that are in tables, which nothing here reads.
var (
	beyond = tip{"more references than are looked at", strings.Repeat("0", 40)}
	tables = tip{"its tables", beyond.hash}
)

// written is a repository as the session's git wrote it.
type written struct {
	dir    string   // of the repository, from root
	root   *os.Root // an upper folder, where the agent may have put anything
	layer  string   // the repository as it was taken
	folder string   // as people call it; "" for the project's own
	packed bool     // it has objects that are packed, which nothing here looks into
}

// Has says which objects a person has of some that lead to commits, or are none, in a
// repository in the project's folder, or "" for the one outside of it; and by "" whether all
// was fetched since the session ended.
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
	in := func(folder string) string {
		return " in " + api.Escape(api.Trim(path.Join(cmp.Or(repository, ".git"), folder), 100))
	}
	found := map[string]int{} // by folder
	whole := walk(root, dir, maxNames, func(_ *os.Root, at string, d fs.DirEntry) (into bool) {
		folder, _, _ := strings.Cut(at, "/")
		if hashed().MatchString(at) && d.Type().IsRegular() && !exists(filepath.Join(host, at)) {
			found[folder]++
		}
		_, own := gits[at]
		return !own
	})
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		words = append(words, api.Counted(found[folder], "content")+in(folder)+", which no apply fetches: push it from the session")
	}
	if !whole {
		words = append(words, "more files than are looked at"+in(""))
	}
	return words
}

// hashed matches files in folders that are named by a hash.
var hashed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("/[^/]*[0-9a-f]{32}[^/]*$") })

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
	s.packed = !walk(s.root, path.Join(s.dir, "objects/pack"), 0, nil)
	if slices.Contains(tips, tables) && !has(repository, nil)[""] {
		return []string{"commits that its tables may lead to"}
	}
	tips = slices.DeleteFunc(tips, func(t tip) bool { return t == tables })
	if len(tips) == 0 {
		return nil
	}
	all := map[string]bool{}
	for _, t := range tips {
		s.count(t.hash, all)
	}
	return s.words(tips, has(repository, slices.Collect(maps.Keys(all))))
}

// in says in words where that is, if it isn't the project's own.
func (s written) in() string {
	if s.folder == "" {
		return ""
	}
	return " in " + api.Escape(api.Trim(s.folder, 100))
}

func (s written) words(tips []tip, known map[string]bool) (words []string) {
	in, stashes := s.in(), 0
	for _, t := range tips {
		switch told := s.told(t.hash, known); {
		case told == "": // the person has it, or a tip before leads to it
		case t.name == stash:
			stashes++
		default:
			words = append(words, fmt.Sprintf(told, api.Escape(api.Trim(t.name, 100))+in))
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

// told is what there is to be told of a tip, as a format of its name.
func (s written) told(hash string, known map[string]bool) string {
	only := s.only(hash, known)
	switch n, whole := s.count(hash, known); {
	case whole && n > 0:
		return api.Counted(n, "commit") + " on %s"
	case whole || n == 0 && only != tagText && only != "":
		return only
	}
	return "commits on %s"
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
		case known[t.hash] && t.hash != beyond.hash:
		case len(out) == maxTips:
			return append(out, beyond)
		default:
			known[t.hash] = true
			out = append(out, t)
		}
	}
	return out
}

// count counts the commits that a tip leads to and nobody had, and has them known. Whole says
// whether those were all: what the agent's git packed isn't looked into.
func (s written) count(hash string, known map[string]bool) (n int, whole bool) {
	for left := []string{hash}; len(left) > 0; left = left[1:] {
		if known[left[0]] {
			continue
		}
		known[left[0]] = true
		kind, next, err := s.object(left[0])
		switch {
		case errors.Is(err, fs.ErrNotExist) && !s.packed && left[0] != hash: // it was there when the repository was taken
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

const (
	tagText = "the text of" + stays
	stays   = " %s, which no apply fetches: push it from the session"
)

// only is what a tip has, and nobody else, beside commits: a tree, a blob, or what a tag has
// beside what it is of; "" if it can't be told.
func (s written) only(hash string, known map[string]bool) (what string) {
	for range maxNamed { // a tag may be one of another
		if known[hash] {
			break
		}
		switch kind, next, err := s.object(hash); {
		case kind == "tree" || kind == "blob":
			return "a " + kind + " on" + stays
		case err != nil || kind != "tag" || len(next) != 1:
			return what
		default:
			what, hash = tagText, next[0]
		}
	}
	return what
}

// leadsBy is by what objects lead to others, by kind.
var leadsBy = map[string]string{"commit": "parent", "tag": "object"}

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
	in.Buffer(nil, 2*maxHeader) // a blob may be of one line
	for first := true; in.Scan() && in.Text() != ""; first = false {
		line := in.Text()
		if first {
			head, rest, _ := strings.Cut(line, "\x00")
			kind, _, _ = strings.Cut(head, " ")
			line = rest
		}
		if key, value, _ := strings.Cut(line, " "); key != "" && key == leadsBy[kind] && isHash(value) {
			next = append(next, value)
		}
	}
	return kind, next, nil
}
