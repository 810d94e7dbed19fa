package frozen

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Autostashes are files in which git keeps what a merge or a rebase under way put aside.
var Autostashes = []string{"MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash"}

// Foreign are references to what others made, and to what was fetched.
var Foreign = []string{"refs/remotes/", "refs/prefetch/", "refs/stepbox/"}

// leads are the files in a repository that lead to commits, beside references, and how much
// is read of each; 0 for folders that they are in. A working tree has those of its own.
var (
	leads    = map[string]int64{"worktrees": 0, "packed-refs": maxRefs, "logs": 0, "logs/refs": 0, "logs/refs/stash": maxRefs}
	ownLeads = map[string]int64{"refs": 0, "reftable": 0, "reftable/tables.list": maxName, "HEAD": maxName}
)

func init() {
	for _, file := range Autostashes {
		ownLeads[path.Dir(file)], ownLeads[file] = 0, maxName
	}
}

// found is what leads to commits in a repository, as far as it is looked at.
type found struct {
	named   map[string]string // commits, by the names that git has for them, from the repository's folder
	packed  string
	stashed string // the log of stashes: all that there are, the oldest first
	tables  bool
	whole   bool
}

// leader is some of what leads to commits, and how it is called.
type leader struct {
	of   *regexp.Regexp
	name string
}

// groups are all of that, in the order in which it is told. Most processes never look.
var groups = sync.OnceValue(func() []leader {
	return []leader{
		{regexp.MustCompile(`(?s)^refs/heads/(.*)`), "$1"},
		{regexp.MustCompile(`^(worktrees/[^/]+/)?HEAD$`), "no branch"},
		{regexp.MustCompile(`^(worktrees/[^/]+/)?(` + strings.Join(Autostashes, "|") + `)$`), stash},
		{regexp.MustCompile(`(?s)^refs/tags/(.*)`), "the tag $1"},
		{regexp.MustCompile(`(?s)^refs/notes/(.*)`), "the notes $1"},
		{regexp.MustCompile(`^(logs/)?refs/stash(@.*)?$`), stash}, // the newest outlives the log
		{regexp.MustCompile(`(?s)^.*$`), "$0"},
	}
})

// leading is what leads to commits in a repository.
func leading(root *os.Root, dir string) []tip {
	f := &found{named: map[string]string{}, whole: true}
	f.whole = walk(root, dir, maxNames, f.see) && f.whole
	f.unpack()
	all := groups()
	told := make([][]tip, len(all)+1)
	for _, ref := range slices.Sorted(maps.Keys(f.named)) {
		for i, g := range all {
			if g.of.MatchString(ref) {
				told[i] = append(told[i], tip{g.of.ReplaceAllString(ref, g.name), f.named[ref]})
				break
			}
		}
	}
	if f.tables {
		told[len(all)] = append(told[len(all)], tables)
	}
	if !f.whole {
		told[len(all)] = append(told[len(all)], beyond)
	}
	return slices.Concat(told...)
}

// see looks at one name in the repository. What git may read, and isn't a file or a folder, is
// of the agent's making, and isn't followed.
func (f *found) see(in *os.Root, at string, d fs.DirEntry) (into bool) {
	own := ownOf(at)
	most, known := leads[at]
	if !known {
		most, known = ownLeads[own]
	}
	if own == "" || isReference(own) {
		most, known = maxName, true
	}
	switch {
	case !known || d.Type()&fs.ModeCharDevice != 0: // or it is gone: a whiteout
	case d.IsDir():
		return true
	case !d.Type().IsRegular():
		f.whole = false
	case most > 0 && own != "":
		f.read(in, at, own, most)
	}
	return false
}

// ownOf is a path below the folder that a working tree has for itself; "" for that.
func ownOf(at string) string {
	if rest, linked := strings.CutPrefix(at, "worktrees/"); linked {
		_, at, _ = strings.Cut(rest, "/")
	}
	return at
}

// isReference says whether git takes a path below refs for a reference, or a folder of them, and
// the session's own.
func isReference(at string) bool {
	name := path.Base(at)
	return strings.HasPrefix(at, "refs/") && !isForeign(at+"/") && name[0] != '.' && !strings.HasSuffix(name, ".lock")
}

func isForeign(ref string) bool {
	return slices.ContainsFunc(Foreign, func(prefix string) bool { return strings.HasPrefix(ref, prefix) })
}

func (f *found) read(in *os.Root, at, own string, most int64) {
	data, whole := text(in, path.Base(at), most)
	f.whole = f.whole && whole
	switch {
	case at == "packed-refs":
		f.packed = data
	case at == "logs/refs/stash":
		f.stashed = data
	case own == "reftable/tables.list":
		f.tables = f.tables || data != ""
	default:
		f.name(at, strings.TrimSpace(data))
	}
}

// name notes what a name leads to: a commit, or another reference. What else git may make of
// it isn't looked into.
func (f *found) name(at, text string) {
	other, linked := strings.CutPrefix(text, "ref:")
	if isHash(text) {
		f.named[at] = text
	} else if !linked || !strings.HasPrefix(strings.TrimSpace(other), "refs/") {
		f.whole = false
	}
}

// unpack notes the names that are in files of many.
func (f *found) unpack() {
	for line := range strings.Lines(f.packed) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, loose := f.named[name]; !loose && line[0] != '#' && line[0] != '^' && !isForeign(name) {
			f.name(name, hash)
		}
	}
	for line := range strings.Lines(f.stashed) {
		if words := append(strings.Fields(line), "", ""); isHash(words[1]) {
			f.named["logs/refs/stash@"+words[1]] = words[1]
		}
	}
}

// walk calls see with each name in a folder where the agent may have put anything, and with
// those in the folders below that see wants to be looked into. Whole says whether those
// were all: there are bounds, and what can't be read isn't seen. Each folder is opened from the one
// that it is in, so that it costs what there is, and a folder of another's that comes in its place
// leads nowhere else.
func walk(root *os.Root, dir string, names int, see func(in *os.Root, at string, d fs.DirEntry) (into bool)) (whole bool) {
	info, err := root.Lstat(dir)
	if inode.Gone(err) || err == nil && info.Mode()&fs.ModeCharDevice != 0 {
		return true // the agent's git wrote nothing there, or it is gone
	}
	if err != nil || !info.IsDir() {
		return false
	}
	in, err := root.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer in.Close()
	w := walker{names: names, see: see}
	return w.folder(in, "")
}

type walker struct {
	names int // that may still be looked at
	see   func(in *os.Root, at string, d fs.DirEntry) (into bool)
}

// folder looks at what is in one, and says whether that was all.
func (w *walker) folder(in *os.Root, at string) (whole bool) {
	if manifest.Beyond(at) != "" {
		return false
	}
	list, whole := listed(in, w.names)
	w.names -= len(list)
	for _, d := range list {
		name := manifest.Join(at, d.Name())
		if !w.see(in, name, d) || !d.IsDir() {
			continue
		}
		sub, err := in.OpenRoot(d.Name())
		if err != nil {
			whole = false
			continue
		}
		whole = w.folder(sub, name) && whole
		sub.Close()
	}
	return whole
}

// listed is what is in a folder, up to a bound.
func listed(in *os.Root, most int) (list []fs.DirEntry, whole bool) {
	dir, err := in.Open(".")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	list, err = dir.ReadDir(most + 1)
	return list[:min(len(list), most)], len(list) <= most && (err == nil || err == io.EOF)
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

// text is what a file has, up to a bound, and whether that is all.
func text(root *os.Root, name string, most int64) (data string, whole bool) {
	file, err := open(root, name)
	if err != nil {
		return "", false
	}
	defer file.Close()
	out, err := io.ReadAll(io.LimitReader(file, most)) // of no regular file it isn't a hash
	return string(out), err == nil && int64(len(out)) < most
}

// line is what a file of one line has; "" if there is none.
func line(root *os.Root, name string) string {
	data, _ := text(root, name, maxName) // of no regular file there is none
	return strings.TrimSpace(data)
}
