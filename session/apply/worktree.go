package apply

import (
	"bytes"
	"path"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/project"
)

// maxGitfile bounds what is read of a file that says where a repository is.
const maxGitfile = 4 << 10

// worktree is the innermost folder above a path that the session made another working
// tree of a repository of (git-worktree(1)); "" for none. Such a folder has a .git file
// that leads to the repository's worktrees. Its files are a commit's, and come home as
// commits do.
func (b *planner) worktree(of string) string {
	dirs := above(of)
	for i := len(dirs) - 1; i >= 0; i-- {
		e := b.sel.To.Lookup(path.Join(dirs[i], ".git"))
		if e == nil || e.Kind != manifest.KindFile {
			continue
		}
		body, err := b.read(project.Of(e), maxGitfile)
		if err == nil && bytes.HasPrefix(body, []byte("gitdir:")) && bytes.Contains(body, []byte("/worktrees/")) {
			return dirs[i]
		}
	}
	return ""
}

// elsewhere leaves out what is in a working tree that the session made, which is said once.
func (b *planner) elsewhere(of string) bool {
	tree := b.worktree(of)
	if tree == "" {
		return false
	}
	if !b.trees[tree] {
		b.trees[tree] = true
		b.left(tree, "a git working tree that the session made: its commits are applied, not its files")
	}
	return true
}
