package apply

import (
	"os"
	"path/filepath"
	"testing"

	"stepbox/session/api"
)

// What an apply wrote and a person changed back isn't written again, though the project
// has what it had before: what the session changed since is merged with it.
func TestTakenBack(t *testing.T) {
	base := map[string]string{"a": "1\n2\n3\n4\n", "b": "1\n", "gone": "1\n", "old": "moved\n", "kept": "1\n"}
	r := newRig(t, base)
	for name, text := range map[string]string{"a": "1\n2\n3\nfour\n", "b": "2\n", "n": "n\n", "in/n": "n\n", "new": "moved\n", "kept": "2\n"} {
		r.agent(name, text)
	}
	r.gone("gone")
	r.gone("old")
	r.action(api.ReviewKept)
	for n := range 2 { // what was undone can be applied again
		rec, err := r.apply(api.ApplyRequest{})
		r.must(err)
		if n == 0 {
			_, err = r.undo(rec.ID)
			r.must(err)
		}
	}
	for name, text := range base {
		if name != "kept" {
			r.host(name, text)
		}
	}
	for _, name := range []string{"n", "in", "new"} {
		r.must(os.RemoveAll(filepath.Join(r.project, name)))
	}
	r.agent("a", "one\n2\n3\nfour\n")
	r.agent("kept", "3\n")
	r.action(api.ReviewKept)
	const why = ": what apply 2 wrote there was changed back in the project since"
	p := r.plan(api.ApplyRequest{})
	same(t, words(p), []string{
		"M kept", "conflict a" + why + " (clean, 1 hunks)", "conflict b" + why + " (clean, 0 hunks)", "conflict gone" + why,
		"conflict in/n" + why, "conflict n" + why, "conflict new" + why + " (clean, 0 hunks)",
	})
	_, err := r.apply(api.ApplyRequest{Resolve: []api.Resolution{{Key: p.Conflicts[0].Key, Way: api.WayMerge}, {Key: p.Conflicts[1].Key, Way: api.WayWanted}}})
	r.must(err)
	r.is(map[string]string{"a": "one\n2\n3\n4\n", "b": "2\n", "gone": "1\n", "old": "moved\n", "kept": "3\n"})
}

// What was applied and the agent didn't touch since is the person's to go on with: it is
// no conflict, unless it is asked for.
func TestGoneOnWith(t *testing.T) {
	r := newRig(t, map[string]string{"g": "1\n", "t": "1\n"})
	for _, name := range []string{"g", "n", "deleted"} {
		r.agent(name, "agent\n")
	}
	r.action(api.ReviewKept)
	_, err := r.apply(api.ApplyRequest{})
	r.must(err)
	r.host("g", "agent\nperson\n")
	r.host("n", "agent\nperson\n")
	r.agent("t", "2\n")
	r.action(api.ReviewKept)
	const why = ": it was changed in the project since it was applied, and the session has it as it was then"
	same(t, words(r.plan(api.ApplyRequest{})), []string{"M t", "left g" + why, "left n" + why})
	same(t, words(r.plan(api.ApplyRequest{Selection: api.Selection{Globs: []string{"g"}}})), []string{"conflict g: it was changed in the project since (clean, 0 hunks)"})
	r.agent("g", "agent\nmore\n")
	r.action(api.ReviewKept)
	same(t, words(r.plan(api.ApplyRequest{})), []string{"M t", "conflict g: it was changed in the project since (1 clashes)", "left n" + why})
}
