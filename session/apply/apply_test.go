package apply

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/ledger"
	"stepbox/session/project"
	"stepbox/session/scratch"
	"stepbox/store"
)

func (r *rig) undo(n int64) (api.Apply, error) {
	r.Helper()
	p, err := r.UndoPlan(r.Context(), sessionID, n)
	r.must(err)
	return r.Undo(r.Context(), sessionID, n, api.UndoRequest{Hash: p.Hash}, func(api.Progress) {})
}

func (r *rig) is(want map[string]string) {
	r.Helper()
	if got := r.has(); !maps.Equal(got, want) {
		r.Errorf("the project has %q\nand should have %q", got, want)
	}
}

// session is what the record has of it.
func (r *rig) session() api.Session {
	r.Helper()
	s, err := ledger.Doc[api.Session](r.Context(), r.Store, sessionID, store.KindSession, 0)
	r.must(err)
	return s
}

// What was applied is in the project, is taken back whole, and comes again.
func TestApplyUndoApplyAgain(t *testing.T) {
	base := map[string]string{"a": "1\n", "dir/b": "b\n", "dir/c": "!c\n", "old": "the same\n", "file": "x", "link": "→a", "folder/in": "y"}
	r := newRig(t, base)
	r.agent("a", "!2\n")
	r.gone("dir")
	r.gone("old")
	r.agent("sub/deep/new", "the same\n")
	r.agent("file/in", "z")
	r.agent("folder", "was one")
	r.agent("link", "→sub")
	r.action(api.ReviewOpen)
	want := map[string]string{"a": "!2\n", "sub/deep/new": "the same\n", "file/in": "z", "folder": "was one", "link": "→sub"}
	for range 2 {
		rec, err := r.apply(api.ApplyRequest{By: "test"})
		r.must(err)
		r.is(want)
		if rec.State != api.ApplyDone || rec.Journal == "" || rec.Files != 9 || r.session().Applies != 1 {
			t.Errorf("%+v, and the session says %d", rec, r.session().Applies)
		}
		if p := r.plan(api.ApplyRequest{}); len(p.Files) > 0 || p.There != 9 || !strings.Contains(p.Blocked, "nothing") {
			t.Errorf("once it is applied, %q, %d there, blocked %q", words(p), p.There, p.Blocked)
		}
		rec, err = r.undo(rec.ID)
		r.must(err)
		r.is(base)
		if rec.State != api.ApplyUndone || rec.UndoneAt.IsZero() || r.session().Applies != 0 {
			t.Errorf("%+v, and the session says %d", rec, r.session().Applies)
		}
		if _, err := r.UndoPlan(t.Context(), sessionID, rec.ID); err == nil {
			t.Error("what was undone can be undone")
		}
	}
	all, err := r.History.Applies(t.Context(), sessionID)
	if err != nil || len(all) != 2 || all[1].ID != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

// Changes say whether an apply that stands wrote them as they are.
func TestAppliedIsMarked(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n", "gone": "x"})
	r.History.Applied = r.Written
	marked := func(want string) {
		t.Helper()
		out, err := r.History.Changes(t.Context(), sessionID, api.Scope{}, api.Page{})
		r.must(err)
		var got []string
		for _, c := range out.Files {
			if c.Applied {
				got = append(got, c.Path)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("applied are %q, and should be %q", got, want)
		}
	}
	r.agent("a", "2\n")
	r.agent("b", "2\n")
	r.gone("gone")
	r.action(api.ReviewKept)
	marked("")
	rec, err := r.apply(api.ApplyRequest{})
	r.must(err)
	marked("a b gone")
	then, err := r.History.Changes(t.Context(), sessionID, api.Scope{To: "1"}, api.Page{})
	r.must(err)
	for _, c := range then.Files {
		if c.Applied || c.Host != "" {
			t.Errorf("as action 1 left it, %s is said to be applied (%v) or %q", c.Path, c.Applied, c.Host)
		}
	}
	if len(then.Files) != 3 {
		t.Errorf("action 1 left %d changes", len(then.Files))
	}
	r.agent("a", "3\n")
	r.action(api.ReviewKept)
	marked("b gone")
	_, err = r.undo(rec.ID)
	r.must(err)
	marked("")
}

// An older apply is undone as long as nothing else touched its files.
func TestUndoOlder(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n", "b": "1\n"})
	r.agent("a", "2\n")
	r.action(api.ReviewKept)
	first, err := r.apply(api.ApplyRequest{})
	r.must(err)
	r.agent("b", "2\n")
	r.action(api.ReviewKept)
	_, err = r.apply(api.ApplyRequest{})
	r.must(err)
	_, err = r.undo(first.ID)
	r.must(err)
	r.is(map[string]string{"a": "1\n", "b": "2\n"})

	again, err := r.apply(api.ApplyRequest{})
	r.must(err)
	r.host("a", "the person's\n")
	p, err := r.UndoPlan(t.Context(), sessionID, again.ID)
	if err != nil || len(p.Conflicts) != 1 || !strings.Contains(p.Blocked, "changed since") {
		t.Errorf("%q, blocked %q, %v", words(p), p.Blocked, err)
	}
	if _, err := r.Undo(t.Context(), sessionID, again.ID, api.UndoRequest{Hash: p.Hash}, nil); err == nil {
		t.Error("it was undone over what the person wrote")
	}
	r.is(map[string]string{"a": "the person's\n", "b": "2\n"})
}

// A conflict stays as it is until a person says what becomes of it.
func TestConflictsAreResolved(t *testing.T) {
	base, there, wanted := "1\n2\n3\n4\n5\n6\n7\n", "one\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\n6\nseven\n"
	clash := "ONE\n2\n3\n4\n5\n6\nSEVEN\n"
	for name, c := range map[string]struct {
		there, wanted string
		resolve       *api.Resolution
		want          string // of the project; "-" for nothing, "" for a refusal
	}{
		"nobody said":          {there, wanted, nil, there},
		"merged":               {there, wanted, &api.Resolution{Way: api.WayMerge}, oracle(t, base, there, wanted)},
		"wanted":               {there, wanted, &api.Resolution{Way: api.WayWanted}, wanted},
		"there":                {there, wanted, &api.Resolution{Way: api.WayThere}, there},
		"clash, without sides": {there, clash, &api.Resolution{Way: api.WayMerge}, ""},
		"clash, with a side":   {there, clash, &api.Resolution{Way: api.WayMerge, Sides: []api.Way{api.WayThere}}, "one\n2\n3\n4\n5\n6\nSEVEN\n"},
		"clash, the other":     {there, clash, &api.Resolution{Way: api.WayMerge, Sides: []api.Way{api.WayWanted}}, clash},
		"deleted there":        {"-", wanted, &api.Resolution{Way: api.WayWanted}, wanted},
		"deleted here":         {there, "-", &api.Resolution{Way: api.WayWanted}, "-"},
		"a word that is none":  {there, wanted, &api.Resolution{Way: "mine"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, map[string]string{"a": base})
			r.agent("other", "x")
			if c.wanted == "-" {
				r.gone("a")
			} else {
				r.agent("a", c.wanted)
			}
			r.action(api.ReviewKept)
			if c.there == "-" {
				r.must(os.Remove(filepath.Join(r.project, "a")))
			} else {
				r.host("a", c.there)
			}
			q := api.ApplyRequest{}
			p := r.plan(q)
			if len(p.Conflicts) != 1 || p.Blocked != "" {
				t.Fatalf("%q, blocked %q", words(p), p.Blocked)
			}
			if c.resolve != nil {
				q.Resolve = []api.Resolution{{Key: p.Conflicts[0].Key, Way: c.resolve.Way, Sides: c.resolve.Sides}}
			}
			if c.want == "" {
				if p, err := r.ApplyPlan(t.Context(), sessionID, q); err == nil {
					t.Errorf("it plans %q", words(p))
				}
				return
			}
			_, err := r.apply(q)
			r.must(err)
			want := map[string]string{"other": "x", "a": c.want}
			if c.want == "-" {
				delete(want, "a")
			}
			r.is(want)
			_, err = r.undo(1)
			r.must(err)
			want = map[string]string{"a": c.there}
			if c.there == "-" {
				delete(want, "a")
			}
			r.is(want)
		})
	}
}

// oracle is what git makes of two changes.
func oracle(t *testing.T, base, there, wanted string) string {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for name, text := range map[string]string{"1there": there, "2base": base, "3wanted": wanted} {
		p := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(p, []byte(text), 0o600))
		names = append(names, p)
	}
	slices.Sort(names)
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"merge-file", "-p"}, names...)...).Output()
	must.OK(t, err)
	return string(out)
}

// A check that fails stops the apply; what it said is in the record.
func TestChecksStop(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n", ".stepbox.yaml": "checks: [go vet, go test]\n"})
	r.agent("a", "2\n")
	r.gone(".stepbox.yaml")
	r.action(api.ReviewKept)
	r.box.result = func(c string) api.CheckResult {
		if c == "go vet" {
			return passed(c)
		}
		return api.CheckResult{Command: c, Exit: &api.Exit{Code: 2}, Output: "FAIL\n"}
	}
	_, err := r.apply(api.ApplyRequest{})
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.CodeChecked || !strings.Contains(p.Message, "go test (exit 2)") {
		t.Fatalf("%v", err)
	}
	if got := r.has()["a"]; got != "1\n" {
		t.Errorf("it was applied: %q", got)
	}
	all, err := r.History.Applies(t.Context(), sessionID)
	if err != nil || len(all) != 1 || all[0].State != api.ApplyFailed || len(all[0].Checks) != 2 || all[0].Checks[1].Output != "FAIL\n" {
		t.Errorf("%+v, %v", all, err)
	}
	// It ran on the state that would be: of what is written nothing is as it was.
	state := r.box.states[0]
	if e := state.Lookup("a"); e == nil || e.Size != 2 || state.Lookup(".stepbox.yaml").Kind != manifest.KindWhiteout || state.Len() != 2 {
		t.Errorf("they ran on %+v", state.Root)
	}
	if _, err := r.apply(api.ApplyRequest{NoChecks: true}); err != nil {
		t.Error(err)
	}
	if len(r.box.ran) != 2 {
		t.Errorf("%q ran", r.box.ran)
	}
	// Nobody knows how long one takes, and no share of it is told.
	r.agent("a", "3\n")
	r.action(api.ReviewKept)
	q := api.ApplyRequest{Looked: true, Checks: []string{"go vet"}}
	q.Hash = r.plan(q).Hash
	var told []api.Progress
	_, err = r.Apply(t.Context(), sessionID, q, func(p api.Progress) { told = append(told, p) })
	if r.must(err); len(told) < 2 || told[0] != (api.Progress{Stage: "check", Text: "go vet"}) || told[1].Text != "go vet: running" {
		t.Errorf("of a check it is told %+v", told)
	}
}

// What was shown and what would be done by now must be the same.
func TestStalePlan(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n"})
	r.agent("a", "2\n")
	r.action(api.ReviewKept)
	p := r.plan(api.ApplyRequest{})
	r.host("a", "the person's\n")
	_, err := r.Apply(t.Context(), sessionID, api.ApplyRequest{Hash: p.Hash}, nil)
	if !errors.Is(err, ErrStale) {
		t.Errorf("%v", err)
	}
	r.is(map[string]string{"a": "the person's\n"})
}

// What the session writes after the plan was shown isn't in it, and doesn't spoil it.
func TestShownStateIsApplied(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n"})
	r.agent("a", "2\n")
	r.action(api.ReviewKept)
	p := r.plan(api.ApplyRequest{})
	r.agent("a", "3\n")
	r.agent("b", "3\n")
	r.action(api.ReviewKept)
	_, err := r.Apply(t.Context(), sessionID, api.ApplyRequest{Hash: p.Hash}, func(api.Progress) {})
	r.must(err)
	r.is(map[string]string{"a": "2\n"})
}

// Who cancels finds the project as it was.
func TestCancelled(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n"})
	for _, n := range []string{"a", "b", "c", "d"} {
		r.agent(n, "2\n")
	}
	r.action(api.ReviewKept)
	p := r.plan(api.ApplyRequest{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := r.Apply(ctx, sessionID, api.ApplyRequest{Hash: p.Hash}, func(api.Progress) { cancel() })
	if err == nil || !strings.Contains(err.Error(), "as it was") {
		t.Errorf("%v", err)
	}
	r.is(map[string]string{"a": "1\n"})
	if all, err := r.History.Applies(t.Context(), sessionID); err != nil || all[0].State != api.ApplyFailed {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := r.apply(api.ApplyRequest{}); err != nil {
		t.Error(err)
	}
}

// Two at once don't get in each other's way: one is refused.
func TestOneAtATime(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n"})
	r.agent("a", "2\n")
	r.action(api.ReviewKept)
	release, err := r.Owner(sessionID).Hold(t.Context())
	r.must(err)
	_, err = r.apply(api.ApplyRequest{})
	if p := (*api.Problem)(nil); !errors.As(err, &p) || p.Code != api.CodeBusy {
		t.Errorf("%v", err)
	}
	release()
	_, err = r.apply(api.ApplyRequest{})
	r.must(err)
}

// A body that the record lost, or that is damaged, is named, and all else is applied.
func TestMissingBody(t *testing.T) {
	for name, c := range map[string]struct {
		size  int
		spoil func(path string) error
		late  bool // seen only when it is written
		says  string
	}{
		"gone":             {30_000, os.Remove, false, "not in the record"},
		"a chunk is gone":  {9 << 20, os.Remove, false, "parts are gone"},
		"cut off":          {30_000, func(p string) error { return os.Truncate(p, 10) }, false, "instead of 30000"},
		"other bytes":      {30_000, garble, true, "not in the record"},
		"other in a chunk": {9 << 20, garble, true, "parts are gone"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			large := strings.Repeat("large", c.size/5)
			r.agent("a", large)
			r.agent("b", "small\n")
			r.action(api.ReviewKept)
			found, err := filepath.Glob(filepath.Join(filepath.Dir(r.project), "data/bodies/*/*"))
			r.must(err)
			spoilt := false
			for _, p := range found {
				if st, err := os.Stat(p); err == nil && !spoilt && st.Size() >= min(int64(c.size), 1<<20) {
					r.must(c.spoil(p))
					spoilt = true
				}
			}
			if c.late {
				if _, err := r.apply(api.ApplyRequest{}); err == nil || !strings.Contains(err.Error(), "a: can't be written") {
					t.Fatalf("applied: %v", err)
				}
			}
			plan := words(r.plan(api.ApplyRequest{}))
			if len(plan) != 2 || plan[0] != "A b" || !strings.Contains(plan[1], "left a: its content isn't in the record any more, or not whole: ") || !strings.Contains(plan[1], c.says) {
				t.Fatalf("the plan is %q", plan)
			}
			_, err = r.apply(api.ApplyRequest{})
			r.must(err)
		})
	}
}

// A renamed file whose new half can't be written stays under its old name.
func TestHalfRename(t *testing.T) {
	text := strings.Repeat("line\n", 6000)
	for name, c := range map[string]struct {
		to    string
		spoil func(r *rig)
	}{
		"its content is lost": {"new", func(r *rig) {
			found, err := filepath.Glob(filepath.Join(filepath.Dir(r.project), "data/bodies/*/*"))
			r.must(err)
			for _, p := range found {
				r.must(os.Remove(p))
			}
		}},
		"its folder is a file by now": {"d/new", func(r *rig) { r.host("d", "the person's") }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, map[string]string{"old": text})
			r.gone("old")
			r.agent(c.to, text)
			r.agent("other", "small\n")
			r.action(api.ReviewKept)
			if plan := words(r.plan(api.ApplyRequest{})); plan[0] != "R "+c.to+" from old" {
				t.Fatalf("the plan is %q", plan)
			}
			c.spoil(r)
			if plan := words(r.plan(api.ApplyRequest{})); len(plan) != 2 || plan[0] != "A other" || !strings.HasPrefix(plan[1], "left "+c.to+": ") {
				t.Fatalf("the plan is %q", plan)
			}
			_, err := r.apply(api.ApplyRequest{})
			r.must(err)
			if has := r.has(); has["old"] == "" || has["other"] == "" {
				t.Errorf("the project has %d files, and the renamed one or another isn't among them", len(has))
			}
		})
	}
}

// garble changes bytes of a file, and nothing else about it.
func garble(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("XXXX"), 1000)
	return errors.Join(err, f.Close())
}

// The agent's commits are listed when they are asked for, and fetched.
func TestCommits(t *testing.T) {
	r := newRig(t, nil)
	r.agent("a", "1\n")
	r.agent(".git/x", "1\n")
	r.action(api.ReviewKept)
	r.box.commits = scratch.Commits{List: []api.Commit{{Hash: "abc", Subject: "s", Danger: "it deletes all"}}}
	r.box.fetched = scratch.Fetched{Commits: r.box.commits, Ref: "refs/stepbox/x/", How: []string{"git merge"}}
	if p := r.plan(api.ApplyRequest{}); len(p.Commits) > 0 {
		t.Error("commits that nobody asked for")
	}
	if p := r.plan(api.ApplyRequest{Commits: true}); p.Dangerous != 1 || len(p.Left) != 1 || !strings.HasSuffix(p.Left[0].Why, "; its commits are fetched") {
		t.Errorf("%d are dangerous, left out is %+v", p.Dangerous, p.Left)
	}
	rec, err := r.apply(api.ApplyRequest{Commits: true})
	if err != nil || len(rec.Fetched) != 1 || rec.Ref != "refs/stepbox/x/" || len(rec.How) != 1 {
		t.Errorf("%+v, %v", rec, err)
	}
	// When all files are there already, the commits can be fetched alone.
	rec, err = r.apply(api.ApplyRequest{Commits: true})
	if err != nil || rec.Journal != "" || len(rec.Fetched) != 1 {
		t.Errorf("%+v, %v", rec, err)
	}
	r.box.failure = errors.New("no room")
	if rec, err = r.apply(api.ApplyRequest{Commits: true}); err != nil || rec.State != api.ApplyDone || !strings.Contains(rec.Failure, "no room") {
		t.Errorf("%+v, %v", rec, err)
	}
}

// What a plan deletes, and no more than that, isn't told again of its commits.
func TestWhatGoesWithAPlan(t *testing.T) {
	r := newRig(t, map[string]string{"gone": "1\n", "dir/in": "1\n", "file": "1\n", "link": "1\n", "edited": "1\n", "left": "1\n", "unchosen": "1\n", "other": "1\n"})
	r.agent("unchosen", "2\n")
	r.gone("gone")
	r.gone("left")
	r.gone("dir")
	r.agent("dir", "a file\n")
	r.gone("file")
	r.must(os.Remove(filepath.Join(r.upper, "file")))
	r.agent("file/in", "1\n")
	r.agent("link", "→edited")
	r.agent("edited", "2\n")
	r.action(api.ReviewKept)
	r.plan(api.ApplyRequest{Commits: true, Selection: api.Selection{Globs: []string{"gone", "dir", "dir/in", "file", "file/in", "link", "edited"}}})
	for path, want := range map[string]bool{"gone": true, "dir/in": true, "file": true, "link": false, "edited": false, "left": false, "other": false, "none": false} {
		if got := r.box.shown.Deletes(path); got != want {
			t.Errorf("%s goes: %v", path, got)
		}
	}
	if e, err := r.box.shown.Writes("unchosen"); e != nil || err != nil {
		t.Errorf("what wasn't chosen becomes %v (%v)", e, err)
	}
}

// What a plan leaves of a file is told beside its commits: of one that both changed both, and the
// session's where they meet.
func TestWhatAPlanWrites(t *testing.T) {
	has := map[string]string{"both": "1\n2\n3\n4\n5\n", "stays": "1\n2\n3\n", "its": "1\n", "bytes": "\x00\n", "taken": "1\n", "left": "1\n", "gone": "1\n"}
	r := newRig(t, has)
	r.agent("both", "1\n2\n3 agent\n4\n5 agent\n")
	r.agent("stays", "1\n2\nagent\n")
	r.agent("its", "2\n")
	r.agent("bytes", "\x00agent\n")
	r.agent("taken", "agent\n")
	r.gone("gone")
	r.action(api.ReviewKept)
	r.host("both", "1 mine\n2\n3\n4\n5 mine\n")
	r.host("stays", "mine\n2\n3\n")
	r.host("bytes", "\x00mine\n")
	r.host("taken", "mine\n")
	r.plan(api.ApplyRequest{Commits: true, Resolve: []api.Resolution{{Key: api.KeyOf("taken"), Way: api.WayWanted}, {Key: api.KeyOf("stays"), Way: api.WayThere}}})
	for path, want := range map[string]string{"both": "1 mine\n2\n3 agent\n4\n5 agent\n", "stays": "", "its": "2\n", "bytes": "", "taken": "agent\n", "left": "", "gone": ""} {
		e, err := r.box.shown.Writes(path)
		r.must(err)
		got := ""
		if e != nil {
			text, err := r.files.Read(r.Context(), &diff.File{Path: path, Entry: *e}, 100)
			r.must(err)
			got = string(text)
		}
		if got != want {
			t.Errorf("%s is written: %q", path, got)
		}
	}
}

// What an earlier apply wrote isn't the person's: what the session made of it since
// takes its place. What the person has in it, or changed since, is in conflict.
func TestAgain(t *testing.T) {
	r := newRig(t, map[string]string{"edited": "1\n", "gone": "1\n", "person": "1\n", "merged": "1\n2\n3\n4\n", "undone": "1\n"})
	for _, name := range []string{"edited", "new", "person", "undone"} {
		r.agent(name, "agent\n")
	}
	r.agent("merged", "1\n2\n3\nagent\n")
	r.action(api.ReviewKept)
	r.host("merged", "host\n2\n3\n4\n")
	key := r.plan(api.ApplyRequest{}).Conflicts[0].Key
	_, err := r.apply(api.ApplyRequest{Resolve: []api.Resolution{{Key: key, Way: api.WayMerge}}})
	r.must(err)
	for _, name := range []string{"edited", "new", "person", "merged"} {
		r.agent(name, "agent again\n")
	}
	r.host("person", "agent\nhost\n")
	r.action(api.ReviewKept)
	var conflicts []string
	for _, c := range r.plan(api.ApplyRequest{}).Conflicts {
		conflicts = append(conflicts, c.Path)
	}
	if want := []string{"merged", "person"}; !slices.Equal(conflicts, want) {
		t.Errorf("in conflict are %q, and should be %q", conflicts, want)
	}
	if p := r.plan(api.ApplyRequest{Selection: api.Selection{Without: []int{2}}}); p.Written > 0 {
		t.Errorf("without the later action it writes %q", words(p))
	}
	_, err = r.apply(api.ApplyRequest{})
	r.must(err)
	for name, want := range map[string]string{"edited": "agent again\n", "new": "agent again\n", "person": "agent\nhost\n", "merged": "host\n2\n3\nagent\n"} {
		if got, err := os.ReadFile(filepath.Join(r.project, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), and should be %q", name, got, err, want)
		}
	}
}

// What a killed process left is settled by the next: the record says what the
// project says, whatever was recorded last.
func TestSettled(t *testing.T) {
	for name, c := range map[string]struct {
		state   api.ApplyState // that the record was left with
		undone  bool           // the journal had been undone already
		written bool           // the project had been written, with a journal
		want    api.ApplyState
		applies int
		said    string
		commits bool // they were asked for, too
	}{
		"before anything was written": {state: api.ApplyOpen, want: api.ApplyFailed, said: "was undone"},
		"after all was":               {state: api.ApplyOpen, written: true, want: api.ApplyDone, applies: 1, said: "is finished now"},
		"before commits were fetched": {state: api.ApplyOpen, written: true, want: api.ApplyDone, applies: 1, said: "but for its commits", commits: true},
		"before it was undone":        {state: api.ApplyUndoing, written: true, want: api.ApplyDone, applies: 0, said: "it stands"},
		"after it was undone":         {state: api.ApplyUndoing, written: true, undone: true, want: api.ApplyUndone, said: "finished now"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, map[string]string{"a": "1\n"})
			r.agent("a", "2\n")
			r.action(api.ReviewKept)
			rec := api.Apply{ID: 1, State: c.state, Journal: sessionID + "-1", Files: 1, Commits: c.commits}
			if c.written {
				p, err := r.planned()
				r.must(err)
				r.must(r.write(t.Context(), p, &rec, func(api.Progress) {}))
			}
			if c.undone {
				f, err := project.Open(r.project)
				r.must(err)
				_, err = f.Undo(t.Context(), r.Journals, rec.Journal, nil)
				r.must(errors.Join(err, f.Close()))
			}
			r.must(ledger.Append(t.Context(), r.Store, sessionID, nil, api.Event{Kind: eventStarted, Apply: &rec}))
			// Who has the session just now is left alone.
			release, err := r.Owner(sessionID).Hold(t.Context())
			r.must(err)
			if said, err := r.Recover(t.Context()); err != nil || len(said) > 0 {
				t.Errorf("under another process it says %q, %v", said, err)
			}
			release()
			said, err := r.Recover(t.Context())
			if err != nil || len(said) != 1 || !strings.Contains(said[0], c.said) {
				t.Errorf("it says %q, %v", said, err)
			}
			all, err := r.History.Applies(t.Context(), sessionID)
			if err != nil || all[0].State != c.want || strings.Contains(all[0].Failure, "--commits") != c.commits || r.session().Applies != c.applies {
				t.Errorf("%+v (%v), and the session says %d", all, err, r.session().Applies)
			}
			if said, err := r.Recover(t.Context()); err != nil || len(said) > 0 {
				t.Errorf("again it says %q, %v", said, err)
			}
		})
	}
}

func (r *rig) planned() (*plan, error) {
	return r.Applier.plan(r.Context(), sessionID, r.Owner(sessionID), api.ApplyRequest{Looked: true})
}

// What a session that is over has left to apply is what its project lacks, also
// where a person brought some of it there by hand.
func TestLeftToApply(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n", "b": "1\n", "c": "1\n"})
	for _, name := range []string{"a", "b", "c", ".git/x"} {
		r.agent(name, "2\n")
	}
	r.action(api.ReviewKept)
	left := func(want int) {
		t.Helper()
		if s := r.session(); s.Unapplied != want {
			t.Errorf("%d changes are left to apply, and should be %d", s.Unapplied, want)
		}
	}
	r.host("b", "2\n") // as git merge brings it
	_, err := r.apply(api.ApplyRequest{Selection: api.Selection{Globs: []string{"a"}}})
	r.must(err)
	left(1)
	second, err := r.apply(api.ApplyRequest{})
	r.must(err)
	left(0)
	_, err = r.undo(second.ID)
	r.must(err)
	left(1)
	_, err = r.undo(1)
	r.must(err)
	left(2)
}
