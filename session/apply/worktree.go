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

// trees are the working trees that a session made of its project's repositories
// (git-worktree(1)). Such a folder has a .git file that leads to a repository's worktrees.
// Its files are a commit's, and come home as commits do. A folder that the project has is
// none: whoever wrote such a file into it would have what changed there left out.
type trees struct {
	*planner
	known map[string]bool // which folders are
	left  map[string]int  // how many changes were left out of the plan, by folder
}

// above is the innermost of them above a path; "" for none.
func (t *trees) above(of string) string {
	dirs := above(of)
	for i := len(dirs) - 1; i >= 0; i-- {
		is, known := t.known[dirs[i]]
		if !known {
			is = t.is(dirs[i])
			t.known[dirs[i]] = is
		}
		if is {
			return dirs[i]
		}
	}
	return ""
}

func (t *trees) is(dir string) bool {
	e := t.sel.To.Lookup(path.Join(dir, ".git"))
	if e == nil || e.Kind != manifest.KindFile {
		return false
	}
	body, err := t.read(project.Of(e), maxGitfile)
	if err != nil || !bytes.HasPrefix(body, []byte("gitdir:")) || !bytes.Contains(body, []byte("/worktrees/")) {
		return false
	}
	has, err := t.look(dir)
	return err == nil && has.Absent()
}

// change is the planner's, but for what is in one of them, which is left out. What was
// moved there from elsewhere is looked at where it was.
func (t *trees) change(c *diff.Change) error {
	tree := t.above(c.Path)
	if tree == "" {
		return t.planner.change(c)
	}
	t.left[tree]++
	if c.Status != diff.Renamed {
		return nil
	}
	return t.planner.change(&diff.Change{Path: c.From, Status: diff.Deleted, Old: c.Old, Content: true})
}

// say says what was left out so.
func (t *trees) say() {
	for _, tree := range slices.Sorted(maps.Keys(t.left)) {
		t.planner.left(tree, fmt.Sprintf("a git working tree that the session made: what it committed there comes as commits, and none of its %s and folders as files", api.Counted(t.left[tree], "file")))
	}
}
