package apply

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/project"
)

// maxGitfile bounds what is read of a file that says where a repository is.
const maxGitfile = 4 << 10

// worktree is the innermost folder above a path that the session made another working
// tree of a repository of (git-worktree(1)); "" for none. Such a folder has a .git file
// that leads to the repository's worktrees. Its files are a commit's, and come home as
// commits do. A folder that the project has is none: whoever wrote such a file into it
// would have what changed there left out.
func (b *planner) worktree(of string) string {
	dirs := above(of)
	for i := len(dirs) - 1; i >= 0; i-- {
		is, known := b.trees[dirs[i]]
		if !known {
			is = b.isTree(dirs[i])
			b.trees[dirs[i]] = is
		}
		if is {
			return dirs[i]
		}
	}
	return ""
}

func (b *planner) isTree(dir string) bool {
	e := b.sel.To.Lookup(path.Join(dir, ".git"))
	if e == nil || e.Kind != manifest.KindFile {
		return false
	}
	body, err := b.read(project.Of(e), maxGitfile)
	if err != nil || !bytes.HasPrefix(body, []byte("gitdir:")) || !bytes.Contains(body, []byte("/worktrees/")) {
		return false
	}
	has, err := b.look(dir)
	return err == nil && has.Absent()
}

// elsewhere leaves out what is in a working tree that the session made. What was moved
// there from elsewhere is looked at where it was.
func (b *planner) elsewhere(c *diff.Change) (out bool, err error) {
	tree := b.worktree(c.Path)
	if tree == "" {
		return false, nil
	}
	b.inTrees[tree]++
	if c.Status == diff.Renamed {
		err = b.change(&diff.Change{Path: c.From, Status: diff.Deleted, Old: c.Old, Content: true})
	}
	return true, err
}

// sayTrees says what was left out so.
func (b *planner) sayTrees() {
	for _, tree := range slices.Sorted(maps.Keys(b.inTrees)) {
		b.left(tree, fmt.Sprintf("a git working tree that the session made: what it committed there comes as commits, and none of its %s and folders as files", api.Counted(b.inTrees[tree], "file")))
	}
}
