package session_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// driven is a session whose agent does the lines that a FIFO gives it, one
// command each.
type driven struct {
	*world
	do func(line string)
	n  int
}

func drive(t *testing.T, mode api.Mode, prepare func(project string)) *driven {
	t.Helper()
	script := `mkfifo /tmp/feed; exec 3<>/tmp/feed; while read -r -u 3 line; do told=/tmp/told; [ -e /tmp/here ] && told=noise; bash -c "$line" 2>>$told; done`
	d := &driven{}
	if prepare == nil {
		prepare = func(string) {}
	}
	d.world = startWith(t, mode, script, prepare)
	d.action("the FIFO", func(a api.Action) bool { return strings.HasPrefix(a.Title, "mkfifo") && a.State == api.ActionEnded })
	d.do = d.feed("feed")
	return d
}

// run has the agent run a line and gives the action that it is, once it has ended.
func (d *driven) run(line string) int {
	d.Helper()
	d.n++
	mark := ": " + strings.Repeat("i", d.n) + "; "
	d.do(mark + line)
	return d.action(line, func(a api.Action) bool {
		return strings.Contains(a.Title, strings.TrimSuffix(mark, "; ")) && a.State == api.ActionEnded
	}).N
}

func only(actions ...int) api.RollbackTarget {
	return api.RollbackTarget{Selection: &api.Selection{Actions: actions}}
}

// take plans a roll back and carries it out.
func (w *world) take(target api.RollbackTarget, resolve ...api.Resolution) (api.RollbackPlan, api.Rollback) {
	w.Helper()
	plan, err := w.RollbackPlan(w.Context(), api.RollbackRequest{RollbackTarget: target, Resolve: resolve})
	w.must(err)
	done, err := w.Rollback(w.Context(), api.RollbackRequest{RollbackTarget: target, Resolve: resolve, Hash: plan.Hash, By: "test"})
	w.must(err)
	return plan, done
}

// has is what a file of the upper has; "" when there is none.
func (w *world) has(name string) string {
	w.Helper()
	b, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "upper", name))
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	return string(b)
}

func (w *world) review(n int) api.Review {
	w.Helper()
	list, err := w.read.Actions(w.Context(), w.ID())
	w.must(err)
	return list[n-1].Review
}

const seven = "1\n2\n3\n4\n5\n6\n7\n"

// TestTakeBackOneAction: later changes to other files and other lines stay, and
// what was taken back comes again, byte for byte.
func TestTakeBackOneAction(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, func(project string) {
		for name, text := range map[string]string{"a": seven, "gone": "host\n"} {
			must.OK(t, os.WriteFile(filepath.Join(project, name), []byte(text), 0o600))
		}
	})
	first := d.run("sed -i s/1/one/ a; echo 1 >made; rm gone; mkdir dir; echo 1 >dir/x")
	d.run("sed -i s/7/seven/ a; echo 2 >other; echo 2 >dir/later")
	before := d.changed(0)
	plan, done := d.take(only(first))
	if len(plan.Conflicts) > 0 || plan.Restores != 2 || plan.Removes != 2 || len(plan.Ends) > 0 {
		t.Errorf("the plan is %+v", plan)
	}
	words := make(map[string]string)
	for _, f := range plan.Files {
		words[f.Path] = f.Words
	}
	if words["a"] != "restored, with later changes of other lines" || words["gone"] != "put back" || words["made"] != "removed" {
		t.Errorf("the plan says %q", words)
	}
	if got, want := d.changed(0), []string{"M a", "A dir/later", "A other"}; !slices.Equal(got, want) {
		t.Errorf("the changes are %q, want %q", got, want)
	}
	if got, want := d.has("a"), strings.Replace(seven, "7", "seven", 1); got != want {
		t.Errorf("a is %q, want %q", got, want)
	}
	if !slices.Equal(done.Actions, []int{first}) || done.Before == 0 || done.After == 0 || d.review(first) != api.ReviewRolledBack {
		t.Errorf("it is recorded as %+v, and the action is %q", done, d.review(first))
	}
	if _, err := d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: only(first)}); code(err) != api.CodeInvalid {
		t.Errorf("rolled back again: %v", err)
	}
	_, again := d.take(api.RollbackTarget{Redo: done.ID})
	if got := d.changed(0); !slices.Equal(got, before) || d.has("a") != "one\n2\n3\n4\n5\n6\nseven\n" || d.has("dir/x") != "1\n" {
		t.Errorf("after it came again the changes are %q, want %q", got, before)
	}
	if d.review(first) != api.ReviewOpen {
		t.Errorf("the action is %q", d.review(first))
	}
	if _, err := d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.RollbackTarget{Redo: done.ID}}); code(err) != api.CodeInvalid {
		t.Errorf("it came again twice: %v", err)
	}
	d.take(api.RollbackTarget{Redo: again.ID}) // and away again
	if got := d.has("dir/x"); got != "" || d.review(first) != api.ReviewRolledBack {
		t.Errorf("dir/x is %q, and the action is %q", got, d.review(first))
	}
	notes := ""
	d.happened("the note of it", func(e api.Event) bool {
		if e.Note != nil && strings.HasPrefix(e.Note.Text, "the agent is told") {
			notes += e.Note.Text + "\n"
		}
		return strings.Count(notes, "\n") == 3
	})
	if strings.Count(notes, "were rolled back") != 2 || strings.Count(notes, "were put in again") != 1 {
		t.Errorf("the agent is told %q", notes)
	}
}

// TestTakeBackConflicts: what both changed stays, is shown, and becomes what a
// person says.
func TestTakeBackConflicts(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, nil)
	d.run(`printf '1\n2\n3\n' >text; printf 'a\0b' >binary; ln -s here link`)
	first := d.run(`sed -i s/2/two/ text; printf 'c\0d' >binary; ln -sf there link; echo mine >made`)
	later := d.run(`sed -i s/two/TWO/ text; printf 'e\0f' >binary; ln -sf elsewhere link; echo more >>made`)
	plan, err := d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: only(first)})
	d.must(err)
	var named []string
	resolve := []api.Resolution{}
	for _, c := range plan.Conflicts {
		named = append(named, c.Path)
		if !strings.Contains(c.Why, "#"+string(rune('0'+later))) {
			t.Errorf("%s doesn't say who: %s", c.Path, c.Why)
		}
		way := api.Resolution{Key: c.Key, Way: api.WayWanted}
		switch c.Path {
		case "text":
			if len(c.Clashes) != 1 || c.Clashes[0].Line != 2 || c.Clashes[0].Base[0] != "two" || c.Clashes[0].There[0] != "TWO" || c.Clashes[0].Wanted[0] != "2" {
				t.Errorf("the clashes are %+v", c.Clashes)
			}
			way = api.Resolution{Key: c.Key, Way: api.WayMerge, Sides: []api.Way{api.WayWanted}}
		case "made":
			way.Way = api.WayThere
		}
		resolve = append(resolve, way)
	}
	if want := []string{"binary", "link", "made", "text"}; !slices.Equal(named, want) || len(plan.Files) > 0 {
		t.Fatalf("in conflict are %q, want %q; it writes %v", named, want, plan.Files)
	}
	_, done := d.take(only(first), resolve...)
	target, err := os.Readlink(filepath.Join(d.store.SessionDir(d.ID()), "upper", "link"))
	d.must(err)
	if d.has("text") != "1\n2\n3\n" || d.has("binary") != "a\x00b" || target != "here" || d.has("made") != "mine\nmore\n" {
		t.Errorf("there are %q, %q, %q, %q", d.has("text"), d.has("binary"), target, d.has("made"))
	}
	if len(done.Actions) > 0 || d.review(first) != api.ReviewOpen {
		t.Errorf("%v are said to be rolled back, and the action is %q: made stayed", done.Actions, d.review(first))
	}
}

// TestTakeBackWhileSomethingWrites: readers and writers live on, and what they
// write meanwhile isn't touched.
func TestTakeBackWhileSomethingWrites(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, nil)
	d.run("(while :; do echo x >>ticks; sleep 0.01; done) >/dev/null 2>&1 & (while :; do cat *; done) >/dev/null 2>&1 & sleep 0.1")
	first := d.run("echo 1 >one; echo 1 >two")
	d.run("echo 2 >>two")
	plan, _ := d.take(only(first))
	if len(plan.Ends) > 0 || !slices.ContainsFunc(plan.Conflicts, func(c api.Conflict) bool { return c.Path == "two" }) {
		t.Errorf("the plan is %+v", plan)
	}
	size := len(d.has("ticks"))
	d.happened("another tick", func(api.Event) bool { return len(d.has("ticks")) > size })
	if d.has("one") != "" || d.has("two") != "1\n2\n" {
		t.Errorf("one is %q, two is %q", d.has("one"), d.has("two"))
	}
}

// TestTakeBackIsStale: a file of the plan that is written to after it was shown is
// neither lost nor passed over.
func TestTakeBackIsStale(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, nil)
	first := d.run("echo 1 >one")
	plan, err := d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: only(first)})
	d.must(err)
	d.run("echo 2 >elsewhere")
	again, err := d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: only(first)})
	d.must(err)
	if again.Hash != plan.Hash {
		t.Error("a file elsewhere makes another plan of it")
	}
	d.run("echo 2 >>one")
	_, err = d.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: only(first), Hash: plan.Hash, By: "test"})
	if code(err) != api.CodeStale || d.has("one") != "1\n2\n" {
		t.Errorf("it gives %v, and one is %q", err, d.has("one"))
	}
}

// TestTakeBackOfWhatMovesOn: a plan holds while others go on writing what it leaves
// to them: other lines of a file that is merged, and a file that is in conflict.
func TestTakeBackOfWhatMovesOn(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, nil)
	d.run("seq 30 >merged; echo 1 >conflict")
	first := d.run("sed -i 1s/1/one/ merged; echo 2 >conflict")
	d.run("sed -i 30s/30/thirty/ merged; echo 3 >conflict")
	plan, err := d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: only(first)})
	d.must(err)
	d.run("sed -i 20s/20/twenty/ merged; echo 4 >conflict")
	_, err = d.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: only(first), Hash: plan.Hash, By: "test"})
	d.must(err)
	if got := d.has("merged"); !strings.HasPrefix(got, "1\n2\n") || !strings.Contains(got, "\ntwenty\n") || !strings.HasSuffix(got, "\nthirty\n") {
		t.Errorf("merged is %q", got)
	}
	if got := d.has("conflict"); got != "4\n" {
		t.Errorf("conflict is %q", got)
	}
	plan, err = d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: only(first)})
	d.must(err)
	resolve := []api.Resolution{{Key: plan.Conflicts[0].Key, Way: api.WayMerge, Sides: []api.Way{api.WayWanted}}}
	plan, err = d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: only(first), Resolve: resolve})
	d.must(err)
	d.run("echo 5 >conflict")
	_, err = d.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: only(first), Resolve: resolve, Hash: plan.Hash, By: "test"})
	if code(err) != api.CodeStale || d.has("conflict") != "5\n" {
		t.Error("a conflict was resolved that isn't the one that was seen")
	}
}

// TestTakeBackOverALink: a word on a conflict is about the link and the permissions
// that were seen, too.
func TestTakeBackOverALink(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, nil)
	d.run("ln -s one link; echo 1 >file")
	first := d.run("ln -sfn two link; echo 2 >file")
	d.run("ln -sfn three link; echo 3 >file")
	for _, c := range []struct{ path, command string }{{"link", "ln -sfn four link"}, {"file", "chmod 700 file"}} {
		target := only(first)
		target.Selection.Globs = []string{c.path}
		plan, err := d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: target})
		d.must(err)
		resolve := []api.Resolution{{Key: plan.Conflicts[0].Key, Way: api.WayWanted}}
		plan, err = d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: target, Resolve: resolve})
		d.must(err)
		d.run(c.command)
		if _, err = d.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: target, Resolve: resolve, Hash: plan.Hash, By: "test"}); code(err) != api.CodeStale {
			t.Errorf("%s: what wasn't seen was written over: %v", c.path, err)
		}
	}
}

// TestTakeBackOfHardLinks: a file that got another name since is in conflict, and the
// other name keeps what it is; names that were one file are one again, unless the
// one that is left has changed.
func TestTakeBackOfHardLinks(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, nil)
	upper := filepath.Join(d.store.SessionDir(d.ID()), "upper")
	one := func(a, b string) bool {
		x, xerr := os.Stat(filepath.Join(upper, a))
		y, yerr := os.Stat(filepath.Join(upper, b))
		return xerr == nil && yerr == nil && os.SameFile(x, y)
	}
	d.run("echo 1 >named; echo 1 >a; ln a b; echo 1 >c; ln c d")
	changed := d.run("echo 2 >named")
	d.run("ln named other")
	plan, err := d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: only(changed)})
	d.must(err)
	if len(plan.Conflicts) != 1 || plan.Conflicts[0].Path != "named" || !strings.Contains(plan.Conflicts[0].Why, "it has the name other too by now") || plan.Restores != 0 {
		t.Fatalf("the plan is %+v", plan)
	}
	d.take(only(changed), api.Resolution{Key: plan.Conflicts[0].Key, Way: api.WayWanted})
	if d.has("named") != "1\n" || d.has("other") != "2\n" {
		t.Errorf("named is %q, other is %q", d.has("named"), d.has("other"))
	}

	removed := d.run("rm b d")
	d.run("echo 2 >c")
	plan, _ = d.take(only(removed))
	if len(plan.Problems) != 1 || plan.Problems[0].Path != "d" || !strings.Contains(plan.Problems[0].Why, "it was one file with c, which has changed since: they are two now") {
		t.Errorf("the plan is %+v", plan)
	}
	if !one("a", "b") || d.has("b") != "1\n" || one("c", "d") || d.has("c") != "2\n" || d.has("d") != "1\n" {
		t.Errorf("a and b are one file: %v; c and d are: %v; b is %q, c is %q, d is %q", one("a", "b"), one("c", "d"), d.has("b"), d.has("c"), d.has("d"))
	}
}

// TestTakeBackHunks: one hunk goes, the other and other files stay.
func TestTakeBackHunks(t *testing.T) {
	t.Parallel()
	long := seven + strings.Repeat("0\n", 20) + seven
	d := drive(t, api.ModePolicy, func(project string) {
		must.OK(t, os.WriteFile(filepath.Join(project, "a"), []byte(long), 0o600))
	})
	n := d.run("sed -i '1s/1/one/;$s/7/seven/' a; echo 1 >b")
	list, err := d.read.Changes(t.Context(), d.ID(), api.Scope{Action: n}, api.Page{})
	d.must(err)
	diff, err := d.read.Diff(t.Context(), d.ID(), list.Files[0].Key, api.Scope{Action: n})
	d.must(err)
	target := only(n)
	target.Selection.Files = []api.Choice{{Key: list.Files[0].Key, Hunks: []int{0}, Of: diff.Hash}}
	_, done := d.take(target)
	if want := strings.TrimSuffix(long, "7\n") + "seven\n"; d.has("a") != want || d.has("b") != "1\n" {
		t.Errorf("a is %q, b is %q", d.has("a"), d.has("b"))
	}
	if len(done.Actions) > 0 || d.review(n) != api.ReviewOpen {
		t.Errorf("the action is %q, rolled back are %v", d.review(n), done.Actions)
	}
}

// TestAgentIsToldWhatWasTakenBack: once, on the standard error of its next
// command, in one line, and not in a file of the project.
func TestAgentIsToldWhatWasTakenBack(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, nil)
	d.run("echo 1 >kept; echo 2 >b")
	first := d.run("echo 2 >kept; echo 1 >made; echo 1 >$'e\\e[2Jvil'")
	d.run("touch /tmp/here")
	d.take(only(first))
	d.run("rm /tmp/here")
	if got := d.has("noise"); got != "" {
		t.Errorf("the command's own file has %q", got)
	}
	d.run("true")
	d.run("true")
	told, err := os.ReadFile(filepath.Join(d.store.SessionDir(d.ID()), "tmp", "told"))
	d.must(err)
	line := string(told)
	if !strings.HasPrefix(line, "stepbox: your changes of `") || strings.Count(line, "\n") != 1 {
		t.Errorf("it is told %q", line)
	}
	for _, words := range []string{"were rolled back by the person: ", "kept restored", "made removed", "e\\x1b[2Jvil removed"} {
		if !strings.Contains(line, words) {
			t.Errorf("it is told %q, without %q", line, words)
		}
	}
	d.happened("the note", func(e api.Event) bool { return e.Note != nil && strings.Contains(e.Note.Text, "made removed") })
}
