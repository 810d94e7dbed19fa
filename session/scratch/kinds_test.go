package scratch

import (
	"slices"
	"strings"
	"testing"
)

// Work isn't in branches alone: all stashes and notes are fetched, those of the agent's, and
// what isn't is said.
func TestStashesAndNotesAreFetched(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	state := r.agent(asAda + `
		echo 1 >>a.txt; git stash -q; echo 2 >>a.txt; git stash -q; git notes add -m note; git tag -am said v1
		git commit -qm lost --allow-empty; git reset -q --hard HEAD^; git branch stash-1 HEAD; git checkout -q stash-1; git commit -qm branch --allow-empty; git checkout -q main`)
	for range 2 { // again, too
		got, err := r.fetched("s1", state)
		r.must(err)
		want := []string{
			".git: not fetched: 1 commit that only its logs name, as after an amend, a reset or a rebase",
			".git: not fetched: the text of 1 annotated tag: v1",
		}
		if n := notes(got.Commits); n != strings.Join(want, "\n") || got.Failed != 0 {
			t.Errorf("the notes are %s", n)
		}
		how := strings.Join(got.How, "\n")
		for _, want := range []string{"git stash apply refs/stepbox/s1/stash-0", "git notes merge refs/stepbox/s1/notes/commits", "git merge refs/stepbox/s1/stash-1\n"} {
			if !strings.Contains(how, want) {
				t.Errorf("what to do is\n%s", how)
			}
		}
	}
	refs := strings.Fields(r.git("", "for-each-ref", "--format=%(refname:lstrip=3)", "refs/stepbox"))
	if len(refs) != 4 || !strings.HasPrefix(refs[0], "commit-") || !slices.Equal(refs[1:], []string{"notes/commits", "stash-0", "stash-1"}) {
		t.Fatalf("the references are %q", refs)
	}
	for _, stash := range []string{"stash-0", refs[0]} {
		r.git("", "stash", "apply", "-q", "refs/stepbox/s1/"+stash)
		r.git("", "checkout", "-q", ".")
	}
	r.git("", "notes", "merge", "-q", "refs/stepbox/s1/notes/commits")
	if note := r.git("", "log", "-1", "--format=%N"); note != "note" {
		t.Errorf("the note is %q", note)
	}
}
