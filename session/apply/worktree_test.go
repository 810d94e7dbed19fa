package apply

import (
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
)

// A working tree that the session made comes home as commits. A .git file in a folder of
// the project's hides nothing of it from the plan, and what is moved there stays.
func TestWorkingTrees(t *testing.T) {
	const gitfile = "gitdir: /p/.git/worktrees/w\n"
	for name, c := range map[string]struct {
		agent func(r *rig)
		want  []string // of the plan, and what is left out of it
	}{
		"made": {func(r *rig) {
			r.agent("trees/w/.git", gitfile)
			r.agent("trees/w/a", "1")
			r.agent("trees/w/b/c", "2")
			r.agent("new", "3")
		},
			[]string{"A new", "trees/w: a git working tree that the session made: what it committed there comes as commits, and none of its 3 files"}},
		"a folder of the project's": {func(r *rig) { r.agent("src/.git", gitfile); r.agent("src/a", "changed"); r.agent("src/new", "2") },
			[]string{"A src/new", "M src/a", ".git: 1 changes"}},
		"the project itself": {func(r *rig) { r.agent(".git", gitfile); r.agent("top", "changed") },
			[]string{"M top", ".git: 1 changes"}},
		"a file that says something else": {func(r *rig) { r.agent("trees/w/.git", "gitdir: elsewhere\n"); r.agent("trees/w/a", "1") },
			[]string{"A trees/w/a", ".git: 1 changes"}},
		"moved there": {func(r *rig) { r.agent("w/.git", gitfile); r.gone("src/a"); r.agent("w/a", "the same content\n") },
			[]string{"src/a: the session moved it to w/a, which isn't written", "w: a git working tree that the session made: what it committed there comes as commits, and none of its 2 files"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, map[string]string{"src/a": "the same content\n", "top": "1\n"})
			c.agent(r)
			r.action(api.ReviewKept)
			p := r.plan(api.ApplyRequest{})
			var got []string
			for _, f := range p.Files {
				got = append(got, f.Status+" "+f.Path)
			}
			for _, l := range p.Left {
				got = append(got, l.String())
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("the plan is %q, want %q", got, c.want)
			}
		})
	}
}
