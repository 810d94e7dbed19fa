package frozen

import (
	"fmt"
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
	if g.MayOwn() && !merged(g.Tip("", was).Commit, is.Commit, ask) {
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
	root, own, common, err := g.upper("")
	if err != nil {
		return false // it wrote nothing
	}
	defer root.Close()
	return slices.ContainsFunc(marks, func(name string) bool {
		_, err := root.Lstat(filepath.Join(own, name))
		if err != nil {
			_, err = root.Lstat(filepath.Join(common, name))
		}
		return err == nil
	})
}

// upper is where the session's git writes, and where in that is what is the working
// tree's own, and the rest. The agent writes there meanwhile: no link leads out of it.
func (g Git) upper(dir string) (root *os.Root, own, common string, err error) {
	if g.Outer == "" || dir != "" {
		root, err = os.OpenRoot(filepath.Join(g.Folder, "upper"))
		at := filepath.Join(dir, ".git")
		return root, at, at, err
	}
	root, err = os.OpenRoot(g.outerUpper())
	return root, g.At, ".", err
}

// Tip is what the session has checked out in a folder, if that was this when it was taken. The
// commit is "" where the session's git didn't write it.
func (g Git) Tip(dir string, was git.Checked) (is git.Checked) {
	is.Branch = was.Branch
	root, own, common, err := g.upper(dir)
	if err != nil {
		return is
	}
	defer root.Close()
	if text := line(root, filepath.Join(own, "HEAD")); text != "" {
		name, branch := strings.CutPrefix(text, "ref:")
		if !branch {
			return git.Checked{Commit: name}
		}
		is.Branch = strings.TrimSpace(name)
	}
	if filepath.IsLocal(is.Branch) {
		is.Commit = line(root, filepath.Join(common, is.Branch))
	}
	return is
}

// merged says whether what the host has checked out has a commit in it.
func merged(tip, is string, ask func(args ...string) (string, error)) bool {
	if ask == nil || is == "" || !isHash(tip) {
		return false
	}
	_, err := ask("merge-base", "--is-ancestor", tip, is)
	return err == nil
}
