package frozen

import (
	"fmt"
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
	case was == is:
	case was.Branch != is.Branch:
		words = append(words,
			fmt.Sprintf("the host has %s checked out, not %s", Name(is.Branch), Name(was.Branch)))
	case was.Commit == is.Commit:
		words = append(words, "the host's branches are others")
	default:
		words = append(words, "the host's "+Name(is.Branch)+" "+more(was.Commit, is.Commit, ask))
	}
	if g.MayOwn() && !merged(g.tip(was), is.Commit, ask) {
		words = append(words, "own history")
	}
	return strings.Join(words, "; ")
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
	for _, dir := range g.upper() {
		if slices.ContainsFunc(marks, func(name string) bool { return exists(filepath.Join(dir, name)) }) {
			return true
		}
	}
	return false
}

// upper is where the session's git writes: what is the working tree's own, and the rest.
func (g Git) upper() [2]string {
	own := filepath.Join(g.Folder, "upper", ".git")
	if g.Outer == "" {
		return [2]string{own, own}
	}
	_, metadata := git.Above(g.Project)
	rel, _ := filepath.Rel(g.Outer, metadata) // Outer is metadata or above it
	return [2]string{filepath.Join(g.outerUpper(), rel), g.outerUpper()}
}

// tip is the commit that the session has checked out, as far as it may be the agent's.
func (g Git) tip(was git.Checked) string {
	dirs := g.upper()
	if text, err := git.ReadFile(filepath.Join(dirs[0], "HEAD"), 4096); err == nil {
		was.Branch = strings.TrimSpace(strings.TrimPrefix(string(text), "ref:"))
	}
	if !filepath.IsLocal(was.Branch) {
		return ""
	}
	text, _ := git.ReadFile(filepath.Join(dirs[1], was.Branch), 4096) // else it isn't known
	return strings.TrimSpace(string(text))
}

// merged says whether what the host has checked out has a commit in it.
func merged(tip, is string, ask func(args ...string) (string, error)) bool {
	if ask == nil || is == "" || len(tip) < 40 || strings.Trim(tip, "0123456789abcdef") != "" {
		return false
	}
	_, err := ask("merge-base", "--is-ancestor", tip, is)
	return err == nil
}
