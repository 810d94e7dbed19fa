package apply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/api"
)

// reverted is a session whose second apply takes back what the first wrote: the agent
// made all as it was.
func reverted(t *testing.T) (r *rig, base, applied map[string]string) {
	base = map[string]string{"a": "a\n", "empty": "", "run": "!x\n", "gone/in": "y\n", "gone/deep/in": "z\n", "kind": "file\n", "old": "moved\n"}
	r = newRig(t, base)
	r.agent("a", "b\n")
	r.agent("empty", "b\n")
	r.agent("run", "x\n")
	r.agent("n", "n\n")
	r.agent("dir/sub/n", "n\n")
	r.must(os.Chmod(filepath.Join(r.upper, "dir"), 0o777))
	r.agent("kind/in", "in a folder\n")
	r.gone("gone")
	r.gone("old")
	r.agent("new", "moved\n")
	r.action(api.ReviewKept)
	_, err := r.apply(api.ApplyRequest{})
	r.must(err)
	applied = map[string]string{"a": "b\n", "empty": "b\n", "run": "x\n", "n": "n\n", "dir/sub/n": "n\n", "kind/in": "in a folder\n", "new": "moved\n"}
	r.is(applied)
	if p := r.plan(api.ApplyRequest{}); len(p.Files) > 0 {
		t.Errorf("once it is applied, %q", words(p))
	}
	r.must(os.Remove(filepath.Join(r.upper, "gone")))
	for name, text := range base {
		r.agent(name, text)
	}
	for _, name := range []string{"n", "dir", "new"} {
		r.gone(name)
	}
	r.action(api.ReviewKept)
	return r, base, applied
}

// What the session has again as it first saw it is in the project, too, by the next
// apply, whose undoing brings back what the first wrote.
func TestReturned(t *testing.T) {
	r, base, applied := reverted(t)
	for range 2 {
		rec, err := r.apply(api.ApplyRequest{})
		r.must(err)
		r.is(base)
		if got := r.session().Unapplied; got != 0 {
			t.Errorf("%d changes are left to apply", got)
		}
		if p := r.plan(api.ApplyRequest{}); len(p.Files) > 0 || !strings.Contains(p.Blocked, "nothing") {
			t.Errorf("once it is applied again, %q", words(p))
		}
		_, err = r.undo(rec.ID)
		r.must(err)
		r.is(applied)
		if got := r.session().Unapplied; got != 11 {
			t.Errorf("%d changes are left to apply", got)
		}
	}
	same(t, words(r.plan(api.ApplyRequest{})), []string{
		"M a", "D dir/sub/n", "M empty", "A gone/deep/in", "A gone/in", "T kind", "D kind/in", "D n", "D new", "A old",
		"M run !becomes executable",
	})
}

// A part of it is chosen by paths, or by the action that made it as it was.
func TestReturnedSelected(t *testing.T) {
	for name, c := range map[string]struct {
		in   api.Selection
		want []string
	}{
		"paths":                {api.Selection{Globs: []string{"[an]"}}, []string{"M a", "D n"}},
		"the action":           {api.Selection{Globs: []string{"[an]"}, Actions: []int{2}}, []string{"M a", "D n"}},
		"both":                 {api.Selection{Globs: []string{"[an]"}, Actions: []int{1, 2}}, []string{"M a", "D n"}},
		"the one before it":    {api.Selection{Globs: []string{"[an]"}, Actions: []int{1}}, nil},
		"without it":           {api.Selection{Globs: []string{"[an]"}, Without: []int{2}}, []string{"left …: what #2 changed, as it was asked for"}},
		"without what made it": {api.Selection{Globs: []string{"[an]"}, Without: []int{1}}, []string{"left …: what #1 changed, as it was asked for"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := reverted(t)
			same(t, words(r.plan(api.ApplyRequest{Selection: c.in})), c.want)
		})
	}
}

// What the person changed since the apply is in conflict, and what they have in it is theirs.
func TestReturnedIsThePersons(t *testing.T) {
	r := newRig(t, map[string]string{"changed": "1\n", "deleted": "1\n", "merged": "1\n2\n3\n4\n", "back": "1\n", "made": "1\n", ".gitignore": "ignored/\n"})
	r.History.Person = &r.Person
	for _, name := range []string{"changed", "deleted", "dir/in", "ignored/x"} {
		r.agent(name, "agent\n")
	}
	r.agent("merged", "1\n2\n3\nagent\n")
	r.agent("back", "agent\n")
	r.gone("made")
	r.action(api.ReviewKept)
	r.host("merged", "host\n2\n3\n4\n")
	key := r.plan(api.ApplyRequest{}).Conflicts[0].Key
	_, err := r.apply(api.ApplyRequest{Selection: api.Selection{Globs: []string{"*"}}, Resolve: []api.Resolution{{Key: key, Way: api.WayMerge}}})
	r.must(err)
	for _, name := range []string{"changed", "deleted", "back", "made"} {
		r.agent(name, "1\n")
	}
	r.agent("merged", "1\n2\n3\n4\n")
	r.gone("dir")
	r.gone("ignored")
	r.action(api.ReviewKept)
	r.host("changed", "host\n")
	r.must(os.Remove(filepath.Join(r.project, "deleted")))
	r.host("made", "host\n")
	r.host("dir/theirs", "host\n")
	p := r.plan(api.ApplyRequest{})
	same(t, words(p)[:5], []string{
		"M back", "D dir/in", "conflict changed: it was changed in the project since (1 clashes)",
		"conflict deleted: it was deleted in the project since", "conflict made: there is a file of that name in the project by now (1 clashes)",
	})
	_, err = r.apply(api.ApplyRequest{})
	r.must(err)
	r.is(map[string]string{"changed": "host\n", "merged": "host\n2\n3\nagent\n", "back": "1\n", "made": "host\n", ".gitignore": "ignored/\n", "dir/theirs": "host\n", "ignored/x": "agent\n"})
}

// What was renamed, applied and renamed again has its last name alone.
func TestRenamedAgain(t *testing.T) {
	r := newRig(t, map[string]string{"old": "moved\n"})
	for _, name := range []string{"new", "newer"} {
		r.gone("old")
		r.gone("new")
		r.agent(name, "moved\n")
		r.action(api.ReviewKept)
		_, err := r.apply(api.ApplyRequest{})
		r.must(err)
		r.is(map[string]string{name: "moved\n"})
	}
}

// What the agent only wrote as it was is the person's, whatever becomes of it; what it made
// as it was again after an apply of it isn't.
func TestReturnedIsntSettled(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n", "same": "1\n"})
	r.agent("a", "2\n")
	r.action(api.ReviewKept)
	_, err := r.apply(api.ApplyRequest{})
	r.must(err)
	r.agent("a", "1\n")
	r.agent("same", "1\n")
	r.action(api.ReviewKept)
	m, err := r.files.Scan(t.Context())
	r.must(err)
	settled, err := r.Settled(t.Context(), sessionID, m)
	r.must(err)
	for path, want := range map[string]bool{"a": false, "same": true} {
		if got := settled(path, m.Lookup(path), true); got != want {
			t.Errorf("%s is settled: %v", path, got)
		}
	}
}
