package apply

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/project"
	"stepbox/store/storetest"
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

// Of sessions of which one goes on from what is gone nobody knows that they are strangers.
func TestKinship(t *testing.T) {
	a, b, c := api.Session{ID: "a"}, api.Session{ID: "b", Parent: &api.Parent{ID: "a", Checkpoint: 2}}, api.Session{ID: "c", Parent: &api.Parent{ID: "b", Checkpoint: 5}}
	x, y := api.Session{ID: "x"}, api.Session{ID: "y", Parent: &api.Parent{ID: "gone", Checkpoint: 1}}
	round := api.Session{ID: "round", Parent: &api.Parent{ID: "round"}}
	for name, c := range map[string]struct {
		there    []api.Session
		plan, of point
		want     kin
	}{
		"a fork of a fork":     {[]api.Session{a, b, c}, point{"c", 9}, point{"a", 1}, kin{kinship: kindred, until: 1, plan: 2, own: true}},
		"of a later state":     {[]api.Session{a, b, c}, point{"c", 9}, point{"a", 3}, kin{kinship: kindred, until: 2, plan: 2}},
		"what is between gone": {[]api.Session{a, c}, point{"c", 9}, point{"a", 1}, kin{}},
		"the other way round":  {[]api.Session{a, c}, point{"a", 1}, point{"c", 9}, kin{}},
		"strangers":            {[]api.Session{a, b, x}, point{"b", 1}, point{"x", 1}, kin{kinship: strangers}},
		"perhaps strangers":    {[]api.Session{a, y}, point{"a", 1}, point{"y", 1}, kin{}},
		"both of what is gone": {[]api.Session{y, {ID: "z", Parent: y.Parent}}, point{"z", 1}, point{"y", 1}, kin{kinship: kindred, until: 1, plan: 1}},
		"removed":              {[]api.Session{a}, point{"a", 1}, point{"gone", 0}, kin{}},
		"a circle":             {[]api.Session{a, round}, point{"a", 1}, point{"round", 1}, kin{}},
	} {
		f := family{sessions: map[string]api.Session{}, files: map[string]*files.Files{}}
		for _, s := range c.there {
			f.sessions[s.ID] = s
		}
		f.line, f.whole = f.way(c.plan)
		got := f.kin(c.of)
		if (got.files != nil) != (got.kinship == kindred) {
			t.Errorf("%s: its files are %v", name, got.files)
		}
		if got.files = nil; got != c.want {
			t.Errorf("%s: it is %+v and should be %+v", name, got, c.want)
		}
	}
}

// Journals that can't be read matter where they may be of the folder, and are said to be of
// whom they are.
func TestJournalsOfOthers(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n"})
	r.agent("a", "2\n")
	r.action(api.ReviewKept)
	r.must(os.MkdirAll(r.Journals.Dir, 0o700))
	var left []string
	for _, c := range []struct {
		id  string
		doc any
		of  string
	}{
		{"bbbbbbbb", api.Session{ID: "bbbbbbbb", Name: "elsewhere", Folder: "/elsewhere"}, ""},
		{"cccccccc", api.Session{ID: "cccccccc", Name: "beside", Folder: r.project}, "session beside"},
		{"dddddddd", nil, "a removed session (dddddddd)"},
		{"ffffffff", map[string]any{"name": "nowhere"}, "session nowhere"},
		{"eeeeeeee", map[string]any{"name": 7}, "a session that was removed or is damaged (eeeeeeee)"},
	} {
		if c.doc != nil {
			storetest.Begin(t, r.Store, c.id, c.doc)
		}
		file := filepath.Join(r.Journals.Dir, c.id+"-1.apply.done")
		r.must(os.WriteFile(file, []byte("damaged"), 0o600))
		p := words(r.plan(api.ApplyRequest{}))
		r.must(os.Remove(file))
		want := []string{"M a"}
		if c.of != "" {
			const why = "nobody can tell what apply 1 of "
			want = []string{
				"conflict a: " + why + c.of + " wrote there, and whether it was changed back in the project since (clean, 1 hunks)",
				"left …: " + why + c.of + " wrote: cannot read journal \"" + c.id + "-1\": its checksum is wrong: it was changed or cut short",
			}
		}
		same(t, p, want)
		left = append(left, p...)
	}
	if !slices.Contains(left, "M a") {
		t.Error("all are in the way")
	}
}

// A journal tells the same if it is retired while it is looked for; one that is gone is
// of when the record says.
func TestRetired(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n"})
	r.agent("a", "2\n")
	r.action(api.ReviewKept)
	rec, err := r.apply(api.ApplyRequest{})
	r.must(err)
	r.Applier.wrote = nil // another process
	there, err := r.Journals.List()
	r.must(err)
	r.must(r.Journals.Retire(rec.Journal))
	w := r.wroteBy(rec.Journal, there[rec.Journal])
	if folder, err := there[rec.Journal].Project(); err != nil || folder != r.project || w.lost != nil || len(w.paths) != 1 || w.at.IsZero() {
		t.Errorf("retired, it is of %q (%v), lost %v, at %v, and wrote %v", folder, err, w.lost, w.at, w.paths)
	}
	r.Applier.wrote = nil
	r.must(r.Journals.Remove(rec.Journal))
	all, err := r.recorded(t.Context(), sessionID, there, &bounds{since: rec.At, room: 9})
	if err != nil || len(all) != 1 || !errors.Is(all[0].lost, os.ErrNotExist) || !all[0].at.Equal(rec.At) {
		t.Errorf("gone, there is %+v (%v)", all, err)
	}
	if w := r.wroteBy(rec.Journal, there[rec.Journal]); w.at.Before(rec.At) {
		t.Errorf("without a record it is of %v", w.at)
	}
}

// A file's time is only believed where it can be true.
func TestSawSince(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n", "future": "1\n"})
	r.must(os.Chtimes(filepath.Join(r.project, "future"), time.Now().Add(time.Hour), time.Now().Add(time.Hour)))
	r.agent("a", "2\n")
	r.agent("future", "2\n")
	r.action(api.ReviewKept)
	sel, err := r.History.Select(t.Context(), sessionID, api.Selection{})
	r.must(err)
	folder, err := project.Open(r.project)
	r.must(err)
	defer folder.Close()
	b := r.planner(t.Context(), r.info, folder, sel)
	hourAgo := time.Now().Add(-time.Hour)
	if !b.sawSince("a", hourAgo) || b.sawSince("a", time.Now()) || b.sawSince("future", hourAgo) || b.sawSince("none", hourAgo) {
		t.Error("the times of files are taken for what they aren't")
	}
}
