package apply

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
)

// What the session first saw, what it wants and what the project has by now make a
// step, nothing at all, or a conflict.
func TestPlan(t *testing.T) {
	base := map[string]string{"a": "1\n2\n3\n", "dir/b": "b\n", "dir/c": "c\n", "link": "→a", "old name": "the same content\n", "secret.env": "KEY=1\n"}
	for name, c := range map[string]struct {
		agent func(r *rig) // what it does
		host  func(r *rig) // what the person does meanwhile
		want  []string
		there int
	}{
		"nothing": {want: nil},
		"written, made and deleted": {
			agent: func(r *rig) { r.agent("a", "1\n2\nthree\n"); r.agent("new/deep/file", "x"); r.gone("dir/b") },
			want:  []string{"M a", "D dir/b", "A new/deep/file"},
		},
		"a mode alone": {
			agent: func(r *rig) { r.agent("a", "!1\n2\n3\n") },
			want:  []string{"M a !becomes executable"},
		},
		"the same, by the person": {
			agent: func(r *rig) { r.agent("a", "4\n"); r.gone("dir/b"); r.agent("n", "n") },
			host:  func(r *rig) { r.host("a", "4\n"); os.Remove(filepath.Join(r.project, "dir/b")); r.host("n", "n") },
			there: 3,
		},
		"copied up and not changed": {
			agent: func(r *rig) { r.agent("a", "1\n2\n3\n") },
		},
		"a folder": {
			agent: func(r *rig) { r.gone("dir") },
			want:  []string{"D dir/b", "D dir/c"},
		},
		"a file that becomes a folder": {
			agent: func(r *rig) { r.agent("a/in", "x") },
			want:  []string{"T a", "A a/in"},
		},
		"a folder that becomes a file": {
			agent: func(r *rig) { r.agent("dir", "x") },
			want:  []string{"T dir", "D dir/b", "D dir/c"},
		},
		"a rename": {
			agent: func(r *rig) { r.gone("old name"); r.agent("sub/new", "the same content\n") },
			want:  []string{"R sub/new from old name"},
		},
		"a rename of what was edited meanwhile": {
			agent: func(r *rig) { r.gone("old name"); r.agent("new", "the same content\n") },
			host:  func(r *rig) { r.host("old name", "the same content\nand more\n") },
			want:  []string{"conflict new: it was changed in the project since (clean, 0 hunks)"},
		},
		"a rename onto something": {
			agent: func(r *rig) { r.gone("old name"); r.agent("new", "the same content\n") },
			host:  func(r *rig) { r.host("new", "mine\n") },
			want:  []string{"conflict new: there is a file of that name in the project by now (1 clashes)", "left old name: the session moved it to new, which isn't written"},
		},
		"a rename over something that was changed": {
			agent: func(r *rig) { r.gone("old name"); r.agent("a", "the same content\n") },
			host:  func(r *rig) { r.host("a", "mine\n") },
			want:  []string{"conflict a: it was changed in the project since (1 clashes)", "left old name: the session moved it to a, which isn't written"},
		},
		"both, in different lines": {
			agent: func(r *rig) { r.agent("a", "1\n2\nthree\n") },
			host:  func(r *rig) { r.host("a", "one\n2\n3\n") },
			want:  []string{"conflict a: it was changed in the project since (clean, 1 hunks)"},
		},
		"both, in one line": {
			agent: func(r *rig) { r.agent("a", "1\n2\nthree\n") },
			host:  func(r *rig) { r.host("a", "1\n2\nIII\n") },
			want:  []string{"conflict a: it was changed in the project since (1 clashes)"},
		},
		"both, a mode and a line": {
			agent: func(r *rig) { r.agent("a", "!1\n2\n3\n") },
			host:  func(r *rig) { r.host("a", "one\n2\n3\n") },
			want:  []string{"conflict a: it was changed in the project since; the session changed its mode, 0644 to 0755 (clean, 0 hunks)"},
		},
		"deleted here, changed there": {
			agent: func(r *rig) { r.gone("a") },
			host:  func(r *rig) { r.host("a", "mine\n") },
			want:  []string{"conflict a: it was changed in the project since; the session deleted it"},
		},
		"changed here, deleted there": {
			agent: func(r *rig) { r.agent("a", "4\n") },
			host:  func(r *rig) { os.Remove(filepath.Join(r.project, "a")) },
			want:  []string{"conflict a: it was deleted in the project since"},
		},
		"made here and there": {
			agent: func(r *rig) { r.agent("n", "agent's\n") },
			host:  func(r *rig) { r.host("n", "mine\n") },
			want:  []string{"conflict n: there is a file of that name in the project by now (1 clashes)"},
		},
		"a folder in the way": {
			agent: func(r *rig) { r.agent("n", "agent's\n") },
			host:  func(r *rig) { r.host("n/x", "mine\n") },
			want:  []string{"conflict n: there is a folder of that name in the project by now"},
		},
		"a file in the way of a folder": {
			agent: func(r *rig) { r.agent("n/x", "agent's\n") },
			host:  func(r *rig) { r.host("n", "mine\n") },
			want:  []string{"left n/x: what it would be in isn't a folder in the project: n"},
		},
		"a link in the way of a folder": {
			agent: func(r *rig) { r.agent("dir/b", "agent's\n") },
			host: func(r *rig) {
				r.must(os.RemoveAll(filepath.Join(r.project, "dir")))
				r.host("dir", "→/etc")
			},
			want: []string{"conflict dir/b: it was deleted in the project since"},
		},
		"something new in a folder that goes": {
			agent: func(r *rig) { r.gone("dir") },
			host:  func(r *rig) { r.host("dir/mine", "x") },
			want:  []string{"D dir/b", "D dir/c"},
		},
		"something new in a folder that becomes a file": {
			agent: func(r *rig) { r.agent("dir", "x") },
			host:  func(r *rig) { r.host("dir/mine", "x") },
			want:  []string{"D dir/b", "D dir/c", "left dir: the project has something in this folder that the session didn't: mine"},
		},
		"a hidden file": {
			agent: func(r *rig) { r.agent("secret.env", "KEY=2\n") },
			want:  []string{"conflict secret.env: it was hidden from the agent, which made one of its own"},
		},
		"git's own folder": {
			agent: func(r *rig) {
				r.agent(".git/config", "x")
				r.agent("sub/.GIT/hooks/pre-commit", "!x")
				r.agent("git~1/x", "x")
				r.agent("ok", "x")
			},
			want: []string{"A ok", "left .git: 3 changes in git's own folder; its commits can be fetched"},
		},
		"what isn't a file": {
			agent: func(r *rig) { r.must(unix.Mkfifo(filepath.Join(r.upper, "fifo"), 0o644)) },
			want:  []string{"left fifo: a fifo isn't carried over"},
		},
		"setuid": {
			agent: func(r *rig) {
				r.agent("a", "!x")
				r.must(os.Chmod(filepath.Join(r.upper, "a"), 0o755|os.ModeSetuid))
			},
			want: []string{"M a !becomes executable", "left a: mode 4755 isn't carried over as it is: it gets 0755"},
		},
		"an ignored file whose content wasn't kept": {
			agent: func(r *rig) { r.host("ignored/x", "long ago"); r.files.Scan(r.Context()); r.gone("ignored/x") },
			want:  []string{"D ignored/x"},
		},
		"an ignored file that changed": {
			agent: func(r *rig) { r.host("ignored/x", "long ago"); r.gone("ignored/x") },
			host:  func(r *rig) { r.host("ignored/x", "now") },
			want:  []string{"conflict ignored/x: it was changed in the project since; the session deleted it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, base)
			if c.agent != nil {
				c.agent(r)
			}
			r.action(api.ReviewKept)
			if c.host != nil {
				c.host(r)
			}
			p := r.plan(api.ApplyRequest{})
			same(t, words(p), c.want)
			if p.There != c.there {
				t.Errorf("%d are there already, and should be %d", p.There, c.there)
			}
			if (p.Blocked == "") != (p.Written+p.Deleted+p.Renamed+p.Retyped > 0) {
				t.Errorf("it is blocked: %q", p.Blocked)
			}
			if again := r.plan(api.ApplyRequest{}); again.Hash != p.Hash {
				t.Error("the same plan has another hash")
			}
		})
	}
}

// Changes of no reviewed action are named, and block until a person has looked.
func TestUnreviewedChanges(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n", "b": "1\n", "c": "1\n"})
	r.agent("a", "2\n")
	r.action(api.ReviewKept)
	r.agent("b", "2\n")
	r.action(api.ReviewOpen)
	r.agent("c", "2\n")
	r.action(api.ReviewKept)
	p := r.plan(api.ApplyRequest{})
	if len(p.Unreviewed) != 1 || p.Unreviewed[0].Path != "b" || !strings.Contains(p.Blocked, "1 of its changes") {
		t.Fatalf("%+v, blocked %q", p.Unreviewed, p.Blocked)
	}
	if _, err := r.Apply(t.Context(), sessionID, api.ApplyRequest{Hash: p.Hash}, nil); err == nil || !strings.Contains(err.Error(), "look at them") {
		t.Errorf("what nobody looked at was applied: %v", err)
	}
	looked := r.plan(api.ApplyRequest{Looked: true})
	if looked.Blocked != "" || looked.Hash != p.Hash {
		t.Errorf("after a look it is blocked by %q, and its hash is the same: %v", looked.Blocked, looked.Hash == p.Hash)
	}
}

// A plan has another hash as soon as anything differs that a person was shown.
func TestHash(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n", "b": "1\n"})
	r.agent("a", "2\n")
	r.action(api.ReviewKept)
	seen := map[string]string{}
	differs := func(what string, q api.ApplyRequest) {
		t.Helper()
		h := r.plan(q).Hash
		if other, ok := seen[h]; ok {
			t.Errorf("%s has the hash of %s", what, other)
		}
		seen[h] = what
	}
	differs("the plan", api.ApplyRequest{})
	differs("one with a check", api.ApplyRequest{Checks: []string{"true"}})
	r.agent("b", "2\n")
	r.action(api.ReviewOpen)
	differs("another file", api.ApplyRequest{})
	r.agent("b", "3\n")
	r.action(api.ReviewKept)
	differs("other content", api.ApplyRequest{})
	r.host("b", "the person's\n")
	differs("a conflict", api.ApplyRequest{})
	differs("its resolution", api.ApplyRequest{Resolve: []api.Resolution{{Key: r.plan(api.ApplyRequest{}).Conflicts[0].Key, Way: api.WayWanted}}})
	r.host("b", "the person's other\n")
	differs("another conflict", api.ApplyRequest{})
}

// What is chosen is planned and nothing else: by action, path, file and hunk.
func TestSelections(t *testing.T) {
	lines := func(first, last string) string { return first + "\n" + strings.Repeat("same\n", 20) + last + "\n" }
	r := newRig(t, map[string]string{"a": lines("1", "1"), "src/b": "1\n"})
	r.agent("a", lines("2", "1"))
	r.action(api.ReviewKept)
	r.agent("a", lines("2", "2"))
	r.agent("src/b", "2\n")
	r.action(api.ReviewOpen)
	r.agent("src/c", "new\n")
	r.action(api.ReviewOpen)
	d, err := r.History.Diff(t.Context(), sessionID, r.plan(api.ApplyRequest{}).Files[0].Key, api.Scope{})
	r.must(err)
	if len(d.Hunks) != 2 || d.Hash == "" {
		t.Fatalf("%+v", d)
	}
	for name, c := range map[string]struct {
		in         api.Selection
		want       map[string]string // what differs from the project as it was
		unreviewed int
	}{
		"the first action":  {api.Selection{Actions: []int{1}}, map[string]string{"a": lines("2", "1")}, 0},
		"the second":        {api.Selection{Actions: []int{2}}, map[string]string{"a": lines("1", "2"), "src/b": "2\n"}, 2},
		"all but the third": {api.Selection{Without: []int{3}}, map[string]string{"a": lines("2", "2"), "src/b": "2\n"}, 2},
		"a folder":          {api.Selection{Globs: []string{"src/**"}}, map[string]string{"src/b": "2\n", "src/c": "new\n"}, 2},
		"a file":            {api.Selection{Files: []api.Choice{{Key: d.Change.Key}}}, map[string]string{"a": lines("2", "2")}, 1},
		"a hunk":            {api.Selection{Files: []api.Choice{{Key: d.Change.Key, Hunks: []int{1}, Of: d.Hash}}}, map[string]string{"a": lines("1", "2")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r.TB = t
			base := r.has()
			p := r.plan(api.ApplyRequest{Selection: c.in})
			if len(p.Unreviewed) != c.unreviewed || len(p.Conflicts) > 0 {
				t.Errorf("%q, %d not reviewed", words(p), len(p.Unreviewed))
			}
			rec, err := r.apply(api.ApplyRequest{Selection: c.in})
			r.must(err)
			want := maps.Clone(base)
			maps.Copy(want, c.want)
			r.is(want)
			_, err = r.undo(rec.ID)
			r.must(err)
			r.is(base)
		})
	}
	// Two actions that changed one line: the first can't be had without the other.
	r.TB = t
	r.agent("src/b", "3\n")
	r.action(api.ReviewOpen)
	p := r.plan(api.ApplyRequest{Selection: api.Selection{Actions: []int{4}}})
	if len(p.Conflicts) != 1 || p.Conflicts[0].Path != "src/b" {
		t.Fatalf("%q", words(p))
	}
	q := api.ApplyRequest{Selection: api.Selection{Actions: []int{4}}, Resolve: []api.Resolution{{Key: p.Conflicts[0].Key, Way: api.WayWanted}}}
	if p, err := r.ApplyPlan(t.Context(), sessionID, q); err == nil {
		t.Errorf("it is planned as %q", words(p))
	}
}
