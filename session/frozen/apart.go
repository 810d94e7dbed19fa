package frozen

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/session/api"
)

// Apart says in words how what the project has checked out by now is another than what
// the session has, and whether the session has a history of its own; "" for neither. Only
// references are read; ask, if there is one, has the person's git say more.
func (g Git) Apart(ask func(args ...string) (string, error)) string {
	was, is := git.CheckedOut(g.Project, g.Of), git.CheckedOut(g.Project, git.Here)
	var words []string
	switch {
	case g.Gone():
		words = append(words, "the host's repository has this working tree no more")
	case was == is:
	case was.Branch != is.Branch:
		words = append(words,
			fmt.Sprintf("the host has %s checked out, not %s", Name(is.Branch), Name(was.Branch)))
	case was.Commit == is.Commit:
		words = append(words, "the host's branches are others")
	default:
		words = append(words, "the host's "+Name(is.Branch)+" "+more(was.Commit, is.Commit, ask))
	}
	if tip := g.Tip(""); g.MayOwn() && (tip.Commit == was.Commit || !merged(tip.Commit, is.Commit, ask) || g.Strays("", ask)) {
		words = append(words, "own history")
	}
	if dirs := g.Moved(); len(dirs) > 0 {
		named := api.EscapeAll(dirs[:min(len(dirs), maxNamed)])
		if n := len(dirs) - len(named); n > 0 {
			named = append(named, fmt.Sprintf("and %d more", n))
		}
		words = append(words, "the host has another commit checked out in "+strings.Join(named, ", "))
	}
	return strings.Join(words, "; ")
}

// Moved are the project's folders that are repositories of their own, and have something else
// checked out by now than what was taken over.
func (g Git) Moved() (dirs []string) {
	for _, at := range g.taken() {
		dir, name := filepath.Split(at)
		if dir = filepath.Clean(dir); dir == "." || name != ".git" || !exists(g.in(at)) {
			continue
		}
		if at := filepath.Join(g.Project, dir); git.CheckedOut(at, g.Of) != git.CheckedOut(at, git.Here) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Name is a branch, as people say it.
func Name(branch string) string {
	name, ok := strings.CutPrefix(branch, "refs/heads/")
	if !ok {
		return "no branch"
	}
	return api.Escape(api.Trim(name, 100))
}

// more says what became of a branch.
func more(was, is string, ask func(args ...string) (string, error)) string {
	var less, more int
	if ask != nil && was != "" && is != "" {
		if out, err := ask("rev-list", "--left-right", "--count", was+"..."+is); err == nil {
			_, _ = fmt.Sscan(out, &less, &more) // what can't be read is none
		}
	}
	switch {
	case less > 0:
		return "was rewritten"
	case more > 0:
		return "has " + api.Counted(more, "commit") + " more"
	}
	return "is at another commit"
}

// marks are files, and folders, that git makes where it makes history.
var marks = []string{
	"logs/HEAD",
	"logs/refs/stash",
	"packed-refs",
	"reftable/tables.list",
	"MERGE_HEAD",
	"rebase-merge",
	"rebase-apply",
}

// MayOwn says whether the session's git wrote what it does where it has a history of its
// own: a log, references that were packed, what is under way.
func (g Git) MayOwn() bool {
	w, own, err := g.upper("")
	if err != nil {
		return false // it wrote nothing
	}
	defer w.root.Close()
	return slices.ContainsFunc(marks, func(name string) bool {
		_, err := w.root.Lstat(filepath.Join(own, name))
		if err != nil {
			_, err = w.root.Lstat(filepath.Join(w.dir, name))
		}
		return err == nil
	})
}

// upper is where the session's git writes of a folder's repository, and where in that is what
// is the working tree's own. The agent writes there meanwhile: no link leads out of it.
func (g Git) upper(dir string) (w written, own string, err error) {
	own, common := git.Folders(filepath.Join(g.Project, dir))
	top, host := filepath.Join(g.Folder, "upper"), g.Project
	switch {
	case filepath.Clean(dir) == "." && g.Outer != "":
		own, common, top, host = filepath.Join(g.Outer, g.At), g.Outer, g.outerUpper(), g.Outer
	case own == "": // the agent may have made one
		own = filepath.Join(g.Project, dir, ".git")
		common = own
	}
	w.layer = g.Of(common)
	if own, err = filepath.Rel(host, own); err == nil {
		w.dir, err = filepath.Rel(host, common)
	}
	if err == nil && (!filepath.IsLocal(own) || !filepath.IsLocal(w.dir)) {
		err = fs.ErrNotExist // it is elsewhere, where no session writes
	}
	if err == nil {
		w.root, err = os.OpenRoot(top)
	}
	return w, own, err
}

// Tip is what the session has checked out in a folder. There is no commit where it can't be
// told, and on a branch that has none.
func (g Git) Tip(dir string) (is git.Checked) {
	was := git.CheckedOut(filepath.Join(g.Project, dir), g.Of)
	w, own, err := g.upper(dir)
	if err != nil {
		return was
	}
	defer w.root.Close()
	head := line(w.root, filepath.Join(own, "HEAD"))
	name, branch := strings.CutPrefix(cmp.Or(head, "ref:"+was.Branch), "ref:")
	switch is.Commit = name; {
	case head == "" && was.Branch == "":
		return was
	case branch:
		is.Branch = strings.TrimSpace(name)
		is.Commit = w.ref(is.Branch)
	}
	if !isHash(is.Commit) {
		is.Commit = ""
	}
	return is
}

// ref is what a reference has: in a file of its own, or packed with others.
func (s written) ref(name string) string {
	if !filepath.IsLocal(name) {
		return ""
	}
	at := filepath.Join(s.dir, name)
	hash := line(s.root, at)
	if _, err := s.root.Lstat(at); errors.Is(err, fs.ErrNotExist) { // else it is written there, or gone
		taken, _ := git.ReadFile(filepath.Join(s.layer, name), maxName) // as for what is written
		hash = string(taken)
	}
	packed, _ := text(s.root, filepath.Join(s.dir, "packed-refs"), maxRefs)
	for line := range strings.Lines(cmp.Or(packed, packedRefs(s.layer))) {
		if is, of, _ := strings.Cut(strings.TrimSpace(line), " "); hash == "" && of == name {
			hash = is
		}
	}
	return strings.TrimSpace(hash)
}

// Strays says whether the session has something else checked out in a folder than was taken
// over, or than the host has, without a commit of its own there: its files are based on that,
// though the host may have all of it.
func (g Git) Strays(dir string, ask func(args ...string) (string, error)) bool {
	at, is := filepath.Join(g.Project, dir), g.Tip(dir)
	was, now := git.CheckedOut(at, g.Of), git.CheckedOut(at, git.Here)
	for _, of := range []git.Checked{was, now} {
		if is.Branch == of.Branch && (is.Commit == was.Commit || is.Commit == of.Commit) {
			return false
		}
	}
	if !isHash(is.Commit) || ask == nil {
		return true
	}
	args := []string{"rev-list", "--max-count=1", is.Commit}
	if was.Commit != "" {
		args = append(args, "--not", was.Commit)
	}
	beyond, err := ask(args...)
	return err != nil || beyond == ""
}

// merged says whether what the host has checked out has a commit in it.
func merged(tip, is string, ask func(args ...string) (string, error)) bool {
	if ask == nil || is == "" || !isHash(tip) {
		return false
	}
	_, err := ask("merge-base", "--is-ancestor", tip, is)
	return err == nil
}
