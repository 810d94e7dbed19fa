package ui

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
)

// through goes through all of an open plan.
func through(d *driver) {
	for range 20 {
		d.press("j")
	}
}

// going makes applies go as what is sent says, until it is closed.
func going(d *driver) chan api.Progress {
	ch := make(chan api.Progress, 8)
	d.c.Steps(ch)
	return ch
}

// settle waits until what was chosen is planned, and keys answer.
func (d *driver) settle() {
	d.idle()
	d.advance(time.Second)
}

// carried are the applies that were asked for.
func (d *driver) carried(n int) []api.ApplyRequest {
	d.t.Helper()
	d.until("an apply is asked for", func() bool { return len(d.c.Carried()) >= n })
	d.idle()
	if got := d.c.Carried(); len(got) != n {
		d.t.Fatalf("%d applies were asked for, want %d", len(got), n)
	}
	return d.c.Carried()
}

// What w writes is said: what is selected, or all, not the row.
func TestApplyHint(t *testing.T) { alone(t, testApplyHint) }

func testApplyHint(t *testing.T) {
	d := bench(t, sceneWorkbench(), 200, 50, "plain")
	for _, pane := range []string{"4", "2"} {
		d.press(leader, pane)
		d.shows("w apply all…")
		d.press("space")
		d.shows("w apply 1…")
	}
}

// An apply is shown, chosen, confirmed once and carried out as it was planned;
// then there is what to do next, and undoing it goes the same way.
func TestApplyFromTheScreens(t *testing.T) { alone(t, testApplyFromTheScreens) }

func testApplyFromTheScreens(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	steps := going(d)
	d.press(leader, "2", "w")
	for _, words := range []string{"4 to write", "1 to delete", "2 in conflict", "2 dangerous", "DANGER git runs it by itself", "the agent's 2 commits", "go vet ./..."} {
		d.shows(words)
	}
	through(d)
	d.shows("v says that you have looked")
	d.shows("v I have looked   y write it")
	d.calmly("y")
	d.carried(0)
	d.calmly("v")
	d.shows("you have looked at it")
	d.lacks("v I have looked")
	d.lacks("v says that you have looked") // nor what the key before was answered with

	// What clashes is chosen by place, a check is added, one is left out.
	d.press("g")
	d.calmly("m", "j", "m", "j", "w", "c")
	d.types("go test ./...")
	d.calmly("enter")
	d.shows("[x] check: go test ./...")
	d.shows("2 conflicts decided")
	d.lacks("in conflict")
	d.lacks("M src/parse.go") // it stands above, with what was chosen
	for range 3 {
		d.press("j") // past what is dangerous and unreviewed
	}
	d.calmly("j", "space")
	d.shows("[ ] check: go vet ./...")
	d.calmly("f")
	d.shows("[ ] fetch: the agent's")
	d.calmly("f")
	d.settle()
	d.shows("this plan is as things are")
	d.press("y")
	got := d.carried(1)[0]
	want := []api.Resolution{{Key: "k1", Way: api.WayMerge}, {Key: "k3", Way: api.WayMerge, Sides: []api.Way{api.WayWanted}}}
	if !slices.EqualFunc(got.Resolve, want, func(a, b api.Resolution) bool {
		return a.Key == b.Key && a.Way == b.Way && slices.Equal(a.Sides, b.Sides)
	}) || !got.Looked || !got.Commits || !slices.Equal(got.Checks, []string{"go test ./..."}) || got.By != "tui" {
		t.Errorf("asked for %+v", got)
	}
	if plan := got; scenePlan(plan, 1).Hash != got.Hash {
		t.Errorf("the plan %q wasn't made for these choices", got.Hash)
	}
	steps <- api.Progress{Stage: "write", Part: 3, Whole: 6, Text: "src/parse.go"}
	d.shows("▮▮▮▮▮▮▮▮▮▮▯▯▯▯▯▯▯▯▯▯ 50%  src/parse.go")
	d.calmly("y", "m", "space")
	done := sceneApplied()
	steps <- api.Progress{Done: &done}
	close(steps)
	d.shows("✓ applied: 6 files of this session written to the project folder")
	d.shows("━ Applied ")
	d.lacks("project folder?")
	d.shows("git merge 1f0c3ab97d2e")
	d.shows("Z undo it")
	d.carried(1)
	d.press("esc")

	d.c.SetApplied(done)
	d.c.SetUndo(api.ApplyPlan{Hash: "undo1", Written: 5, Deleted: 1, Files: scenePlan(got, 1).Files[:1]})
	steps = going(d)
	d.press("Z")
	d.shows("6 files  applied")
	d.calmly("enter")
	d.shows("Undo apply 1?")
	d.shows("5 to write · 1 to delete")
	d.calmly("y")
	done.State = api.ApplyUndone
	steps <- api.Progress{Done: &done}
	close(steps)
	d.shows("✓ undone")
	d.shows("━ Undone ")
	if calls := d.c.Calls(); !slices.Contains(calls, "undo 1 undo1") {
		t.Errorf("asked for %v", calls)
	}
}

// Keys that come while a plan is being made, right after it came or changed,
// while it is carried out, from a paste or a key that is held down: none applies.
func TestKeysInFlightNeverApply(t *testing.T) { alone(t, testKeysInFlightNeverApply) }

func testKeysInFlightNeverApply(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	going(d)
	d.c.SetApply(looked)
	d.press(leader, "2", "w", "y", "enter")
	d.shows("DANGER")
	through(d)
	d.press("y")
	d.advance(399 * time.Millisecond)
	d.press("y")
	d.shows("too soon")
	d.carried(0)
	d.advance(time.Second)
	d.send(tea.PasteMsg{Content: "y"})
	d.press("y")
	held := key("y")
	held.IsRepeat = true
	d.advance(time.Second)
	d.send(held)
	d.carried(0)
	// A choice makes another plan: what was ready isn't any more.
	d.calmly("g", "m")
	d.idle()
	d.press("y")
	d.carried(0)
	d.send(tea.BlurMsg{})
	d.advance(time.Second)
	d.send(tea.FocusMsg{})
	d.press("y")
	d.carried(0)
	d.calmly("y")
	d.carried(1)
	// It is under way: yes means nothing more.
	d.calmly("y", "y")
	d.carried(1)
}

// looked plans an apply of what somebody has looked at.
func looked(r api.ApplyRequest) api.ApplyPlan {
	p := scenePlan(r, 1)
	p.Blocked, p.Unreviewed = "", nil
	return p
}

// What is dangerous or in conflict must have been in view before a yes counts.
func TestDangersComeIntoViewFirst(t *testing.T) { alone(t, testDangersComeIntoViewFirst) }

func testDangersComeIntoViewFirst(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	going(d)
	d.c.SetApply(looked)
	d.press(leader, "2", "w")
	d.shows("to look at below")
	d.calmly("y", "v")
	d.carried(0)
	d.press("G") // what was jumped over wasn't seen
	d.shows("to look at above")
	d.calmly("y")
	d.carried(0)
	d.press("g")
	d.shows("to look at below")
	for range 20 { // by pages nothing is jumped over
		d.press("pgdown")
	}
	d.calmly("y")
	d.carried(1)
}

// All of the session's changes are written, whichever part of them Changes shows;
// what stands beside the plan is of all of them as well.
func TestPlanShowsAllThatIsWritten(t *testing.T) { alone(t, testPlanShowsAllThatIsWritten) }

func testPlanShowsAllThatIsWritten(t *testing.T) {
	c := sceneWorkbench()
	ch, _ := sceneChanges()
	ch.Checkpoint = 14
	c.SetChanges(0, ch)
	c.SetSince(14, api.Changes{Version: 9, Checkpoint: 14})
	d := bench(t, c, 120, 35, "plain")
	d.press(leader, "2", "m")
	d.shows("marked as looked at")
	d.press("s")
	d.shows("since you looked")
	before := len(c.DiffScopes())
	d.press("w")
	d.shows("DANGER")
	through(d)
	d.until("differences are asked for", func() bool { return len(c.DiffScopes()) > before })
	for _, scope := range c.DiffScopes()[before:] {
		if (scope != api.Scope{}) {
			t.Errorf("differences of %+v stand beside the plan", scope)
		}
	}
}

// Things moved on between the plan and the yes: the new plan is shown and asks
// anew, with the choices that were made.
func TestStaleApplyPlan(t *testing.T) { alone(t, testStaleApplyPlan) }

func testStaleApplyPlan(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	steps := going(d)
	d.press(leader, "2", "w")
	d.shows("DANGER")
	through(d)
	d.calmly("v", "g", "w")
	d.shows("w ● the session's")
	through(d)
	d.settle()
	d.c.SetApply(func(r api.ApplyRequest) api.ApplyPlan { return scenePlan(r, 2) })
	d.press("y")
	d.shows("this is the new one")
	d.press("y")
	d.carried(1)
	d.shows("w ● the session's")
	d.settle()
	through(d)
	d.calmly("y")
	if again := d.carried(2)[1]; again.Hash == d.c.Carried()[0].Hash || len(again.Resolve) != 1 {
		t.Errorf("asked again for %+v", again)
	}
	close(steps)
}

// applying has an apply carried out as far as its steps go.
func applying(t *testing.T) (*driver, chan api.Progress) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	steps := going(d)
	d.press(leader, "2", "w")
	d.shows("≠ src/parse.go")
	through(d)
	d.calmly("v")
	d.settle()
	d.press("y")
	d.carried(1)
	return d, steps
}

// A check that fails shows the end of what it printed, and nothing is called applied.
func TestFailedCheckShowsItsOutput(t *testing.T) { alone(t, testFailedCheckShowsItsOutput) }

func testFailedCheckShowsItsOutput(t *testing.T) {
	d, steps := applying(t)
	failed := api.Apply{ID: 1, State: api.ApplyFailed, Failure: "the check \"go vet ./...\" failed", Checks: []api.CheckResult{
		{Command: "true", Exit: &api.Exit{}}, {Command: "go vet ./...", Exit: &api.Exit{Code: 1}, Output: strings.Repeat("much\n", 90) + "parse.go:14: unreachable code\n"},
	}}
	steps <- api.Progress{Done: &failed}
	close(steps)
	d.shows("nothing was written: the check")
	d.shows("━ Nothing was written ")
	d.shows("✗ check failed: go vet ./...  exit 1")
	d.shows("parse.go:14: unreachable code")
	d.lacks("applied")
	d.calmly("r") // once it is mended
	d.shows("≠ notes.txt")
}

// Esc cancels what is under way; what became of it is told when it has ended.
func TestCancelApply(t *testing.T) { alone(t, testCancelApply) }

func testCancelApply(t *testing.T) {
	d, steps := applying(t)
	steps <- api.Progress{Stage: "check", Text: "go vet ./..."}
	d.shows("checking  go vet ./...")
	d.press("esc")
	d.shows("cancelled")
	d.press("esc")
	d.lacks("project folder?")
}

// A check that was typed is in the next plan, too, if this one is left.
func TestLeavingAPlanKeepsItsChecks(t *testing.T) { alone(t, testLeavingAPlanKeepsItsChecks) }

func testLeavingAPlanKeepsItsChecks(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "2", "w")
	d.shows("DANGER")
	d.calmly("c", "o", "k", "enter")
	d.shows("[x] check: ok")
	d.press("esc")
	d.lacks("project folder?")
	d.press("w")
	d.shows("[x] check: ok")
}

// Actions are selected for what is done with several: rolled back, applied, left out.
func TestSelectedActions(t *testing.T) { alone(t, testSelectedActions) }

func testSelectedActions(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	going(d)
	d.press(leader, "4", "k", "space", "k", "space")
	d.shows("2 selected")
	d.calmly("u")
	d.shows("Roll back #11 and #12?")
	d.press("esc")
	d.calmly("W")
	d.shows("Write all but #11 and #12")
	d.press("esc")
	d.calmly("w")
	d.shows("Write #11 and #12")
	d.press("esc", "space")
	d.calmly("u")
	d.shows("Roll back #12?")
	d.press("esc")
}

// Changes of later actions meet the ones that go back: chosen by place, and
// named again when it is carried out. What was rolled back comes again.
func TestRollbackConflictsAndRedo(t *testing.T) { alone(t, testRollbackConflictsAndRedo) }

func testRollbackConflictsAndRedo(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	var asked []api.RollbackRequest
	d.c.SetBack(func(r api.RollbackRequest) api.RollbackPlan {
		asked = append(asked, r)
		return sceneBack(r, 1)
	})
	d.press(leader, "4", "k", "k")
	d.calmly("ctrl+r")
	d.shows("nothing was rolled back")
	d.calmly("u")
	d.shows("≠ notes.txt: both have changed it")
	d.calmly("space", "j")
	d.shows("call Ada on Monday")
	d.calmly("w")
	d.settle()
	d.shows("w ● as before") // it can still be chosen another way
	d.calmly("t")
	d.settle()
	d.shows("t ● as it is")
	d.press("y")
	d.shows("↶ rolled back: 2 files; ctrl+r brings it again")
	last := asked[len(asked)-1].Resolve
	if len(last) != 2 || last[0].Way != api.WayMerge || last[1].Way != api.WayThere || last[0].Key != "k1" {
		t.Errorf("carried out with %+v", last)
	}
	d.calmly("ctrl+r")
	d.shows("Bring again what was rolled back of #11?")
	d.settle()
	d.press("y")
	d.shows("✓ brought again: 2 files")
	if last := asked[len(asked)-1]; last.Redo != 1 || last.Selection != nil {
		t.Errorf("brought again with %+v", last)
	}
}

// What an action did is in its row, at every width: a deletion has weight.
func TestRowsSayWhatWasDone(t *testing.T) { alone(t, testRowsSayWhatWasDone) }

func testRowsSayWhatWasDone(t *testing.T) {
	for _, size := range sizes {
		d := bench(t, sceneWorkbench(), size[0], size[1], "plain")
		d.press(leader, "4", "z")
		d.shows(" −4  deletes 4 files")
	}
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4", "g", "j", "enter")
	for _, words := range []string{"deletes 4 files, 1 of them never committed", "changes tests", "Bash — “run the linter”"} {
		d.shows(words)
	}
}

// over ends the scene's session with work that nobody applied.
func over(d *driver) {
	s := sceneSession()
	s.State, s.EndedAt, s.Exit, s.Held, s.Unapplied, s.Unreviewed = api.SessionEnded, sceneNow, &api.Exit{}, 0, 5, 2
	d.c.Put(api.Event{Session: &s})
	d.c.End()
	d.shows("5 changed files aren't in your project yet")
}

// A session that ends while it is looked at sums itself up; what was being typed
// to its agent chooses nothing there.
func TestEndOffersWhatToDo(t *testing.T) { alone(t, testEndOffersWhatToDo) }

func testEndOffersWhatToDo(t *testing.T) {
	var written atomic.Value
	d := drive(t, sceneWorkbench(), 120, 35, Options{
		Session: sceneSession().ID, Config: themed("plain"), Here: "/home/me/work",
		Export: func(_ context.Context, _, file string) error {
			written.Store(file)
			return nil
		},
		Resume: func(_ context.Context, id string) (string, error) { return "m2x9aaaa", nil },
	})
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
	d.press("l", "s")
	over(d)
	d.press("w", "r", "x", "enter")
	d.idle()
	d.shows("5 changed files aren't in your project yet")
	d.calmly("x")
	d.shows("Write a patch of fix-tests")
	d.shows("/home/me/work, or where the name leads")
	d.press("esc") // asked, nothing is written
	d.calmly("x")
	if file := written.Load(); file != nil {
		t.Errorf("%q was written unasked", file)
	}
	d.press("2", "enter")
	d.shows("too soon: keys count")
	d.calmly("enter")
	d.shows("✓ written: fix-tests.patch2")
	d.press("4")
	d.calmly("w")
	d.shows("Write all of this session's changes")
	d.press("esc", "k")
	d.calmly("u")
	d.shows("it has ended: r resumes it to roll back, W applies all but this")
	d.calmly("r")
	d.shows("Resume fix-tests?")
	d.calmly("y")
	d.until("the new session is shown", func() bool { return d.m.bench != nil && d.m.bench.Link().ID == "m2x9aaaa" })
}

// A key of another pane is answered with where it is for.
func TestWrongKeyIsAnswered(t *testing.T) { alone(t, testWrongKeyIsAnswered) }

func testWrongKeyIsAnswered(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "3", "u")
	d.shows("u is for Actions: 4 goes there")
}

func TestHomeShowsWhatWaitsToBeApplied(t *testing.T) { alone(t, testHomeShowsWhatWaitsToBeApplied) }

func testHomeShowsWhatWaitsToBeApplied(t *testing.T) {
	all := newScene().Sessions
	all[0].Folder, all[1].Folder, all[2].Unapplied = "/p", "/p", 12
	d := drive(t, newFake(all...), 120, 35, Options{Config: themed("plain"), Resume: func(context.Context, string) (string, error) { return all[1].ID, nil }})
	d.shows("to apply")
	d.shows("12 files")
	d.press("v") // room for all of the row
	d.shows("shares its folder with docs")
	d.press("r")
	d.shows("it lives: enter attaches to it")
	d.press("j", "j")
	d.shows("r resume")
	d.press("r")
	d.shows("Resume bump-deps?")
	d.press("enter", "r", "n")
	d.lacks("Resume bump-deps?")
	d.press("r")
	d.calmly("y")
	d.until("the new session is shown", func() bool { return d.m.bench != nil && d.m.bench.Link().ID == all[1].ID })
}

// Of a file of which some hunks were selected, those alone are shown and go back.
func TestOnlySelectedHunksAreShown(t *testing.T) { alone(t, testOnlySelectedHunksAreShown) }

func testOnlySelectedHunksAreShown(t *testing.T) {
	c := sceneWorkbench()
	_, diff := sceneChanges()
	diff.Hash = "d1"
	c.SetDiff(diff)
	d := bench(t, c, 80, 24, "plain")
	var asked api.RollbackRequest
	d.c.SetBack(func(r api.RollbackRequest) api.RollbackPlan {
		asked = r
		return sceneBack(r, 1)
	})
	d.press(leader, "2", "enter")
	d.shows("@@ -10,8")
	d.press("]", "]", "space")
	d.shows("1 selected")
	d.calmly("u")
	d.shows("+     return p.tokens[p.at]") // as it becomes
	d.settle()
	at := strings.Index(d.text(), "Roll back")
	if shown := d.text()[at:]; !strings.Contains(shown, "t := p.tokens[p.at]") || strings.Contains(shown, "ErrEmpty") {
		t.Errorf("shows\n%s", shown)
	}
	if got := asked.Selection; got == nil || len(got.Files) != 1 || !slices.Equal(got.Files[0].Hunks, []int{1}) || got.Files[0].Of != "d1" {
		t.Errorf("asked for %+v", got)
	}
}

// What nobody has looked at isn't covered by a word on other changes: another
// plan with others asks again.
func TestLookedIsForWhatWasShown(t *testing.T) { alone(t, testLookedIsForWhatWasShown) }

func testLookedIsForWhatWasShown(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	steps := going(d)
	defer close(steps)
	d.press(leader, "2", "w")
	d.shows("DANGER")
	through(d)
	d.calmly("v")
	d.settle()
	ch, _ := sceneChanges()
	d.c.SetApply(func(r api.ApplyRequest) api.ApplyPlan {
		p := scenePlan(r, 2)
		p.Unreviewed = nil
		for _, c := range ch.Files[:3] {
			p.Unreviewed = append(p.Unreviewed, api.Open{Change: c, Why: "no action of it was reviewed"})
		}
		return p
	})
	d.press("y")
	d.shows("this is the new one")
	d.settle()
	through(d)
	d.calmly("y")
	d.shows("3 changes aren't reviewed")
	d.carried(1)
	d.calmly("v")
	d.settle()
	d.press("y")
	if got := d.carried(2)[1]; !got.Looked {
		t.Errorf("asked for %+v", got)
	}
}
