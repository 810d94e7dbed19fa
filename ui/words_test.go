package ui

import (
	"errors"
	"strings"
	"testing"

	"stepbox/session/api"
)

// Neither what was sent nor what was changed elsewhere is said to be taken back.
func TestUndoIsOfTheProject(t *testing.T) { alone(t, testUndoIsOfTheProject) }

func testUndoIsOfTheProject(t *testing.T) {
	q := ask(20, 20, "git config --global x y && git push")
	q.Rule, q.Command.Before = "ask git config --global: it changes git for more than this project", 7
	d := bench(t, sceneWorkbench(q), 120, 35, "plain")
	d.press(leader, "a")
	d.shows("roll back   the project to checkpoint 7, nothing else")
}

// Of a part of an action nothing is kept by itself, which isn't said before it is asked.
func TestAPartIsApprovedOnly(t *testing.T) { alone(t, testAPartIsApprovedOnly) }

func testAPartIsApprovedOnly(t *testing.T) {
	q := ask(20, 20, "git push")
	q.Subject = api.SubjectNested
	d := bench(t, sceneWorkbench(q), 120, 35, "plain")
	d.press(leader, "a")
	d.shows("keys answer in a moment")
	d.lacks("approve, keep")
}

// A command that no rule is about takes no room for that: what is asked is to be in view.
func TestAPartThatNoRuleIsAbout(t *testing.T) { alone(t, testAPartThatNoRuleIsAbout) }

func testAPartThatNoRuleIsAbout(t *testing.T) {
	q := ask(20, 20, "ls; make x; git push")
	q.Command.Parts = []api.Part{{Text: "ls", Verdict: api.Allow, Rule: "no rule asks about it"}, {Text: "make x", Verdict: api.Allow, Rule: "allow make *"}, {Text: "git push", Verdict: api.Ask, Rule: "ask git push: it sends commits"}}
	d := bench(t, sceneWorkbench(q), 120, 35, "plain")
	d.press(leader, "a")
	d.shows("✓ allow  ls")
	d.shows("allow make *")
	d.shows("ask git push: it sends")
	d.lacks("no rule asks")
}

// Where there is no room for a rule, what it says in plain words stays.
func TestARuleOfAPartIsCutAtItsPatterns(t *testing.T) { alone(t, testARuleOfAPartIsCutAtItsPatterns) }

func testARuleOfAPartIsCutAtItsPatterns(t *testing.T) {
	q := ask(20, 20, "ls; npm publish")
	q.Command.Parts = []api.Part{{Text: "ls", Verdict: api.Allow}, {Text: "npm publish", Verdict: api.Ask, Rule: "ask npm|pnpm|yarn|bun publish|unpublish|deprecate|owner|access|dist-tag|token: it publishes"}}
	d := bench(t, sceneWorkbench(q), 80, 24, "plain")
	d.press(leader, "a")
	d.shows("  it publishes")
}

// A port of this machine is named as what it is.
func TestThisMachineIsNamed(t *testing.T) { alone(t, testThisMachineIsNamed) }

func testThisMachineIsNamed(t *testing.T) {
	q := sceneConnection()
	q.Connection.Host, q.Connection.Port, q.Connection.Rule = "host.stepbox.internal", 8080, "host.stepbox.internal:8080"
	d := bench(t, sceneWorkbench(q), 80, 24, "plain")
	d.press(leader, "a")
	d.shows("this machine's 127.0.0.1:8080")
}

// Where a row has no room for all of a rule, what it says in plain words comes first.
func TestPlainWordsComeFirst(t *testing.T) { alone(t, testPlainWordsComeFirst) }

func testPlainWordsComeFirst(t *testing.T) {
	q, a := ask(20, 20, "rm -r build"), held(20, "rm -r build")
	q.Rule = "ask rm -r|-R|--recursive **|<wide>: it deletes folders"
	a.Rule = q.Rule
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.c.Put(api.Event{Action: &a}, api.Event{Question: &q})
	d.shows("it deletes folders")
	d.lacks("ask rm")
}

// What is let through without a question is said as the mode has it.
func TestFactsSayWhichHosts(t *testing.T) { alone(t, testFactsSayWhichHosts) }

func testFactsSayWhichHosts(t *testing.T) {
	for mode, want := range map[api.Mode]string{
		api.ModePolicy: "what no rule decides is asked about", api.ModeStep: "what no rule decides is asked about",
		api.ModeWatch: "all: watch mode lets through what it records",
	} {
		d := bench(t, sceneWorkbench(), 120, 35, "plain")
		s := sceneSession()
		s.Mode, s.Hosts = mode, nil
		d.c.Put(api.Event{Session: &s})
		d.press(leader, "i")
		d.shows(want)
		d.lacks("refused")
	}
}

// Of changes that may be others' it is said whose.
func TestSharedChangesNameTheOthers(t *testing.T) { alone(t, testSharedChangesNameTheOthers) }

func testSharedChangesNameTheOthers(t *testing.T) {
	c := sceneWorkbench()
	a := api.Action{N: 15, Kind: api.KindEdit, State: api.ActionEnded, Title: "edit a.txt", Shared: true, SharedWith: []int{11, 12}}
	c.Put(api.Event{Action: &a})
	d := bench(t, c, 120, 35, "plain")
	d.press(leader, "4", "G", "enter")
	d.shows("Edit #15")
	d.shows("may be theirs: #11 and #12")
}

// A narrow footer has what a person needs next: to copy what is selected, and to apply also
// once the session has ended and its summary was left.
func TestNarrowFooter(t *testing.T) { alone(t, testNarrowFooter) }

func testNarrowFooter(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	foot := func() string { return strings.Split(d.text(), "\n")[23] }
	for _, in := range []struct{ keys, words string }{
		{"2", "enter read w apply all… space select C copy"},
		{"4", "enter details u roll back… C copy"},
	} {
		if in.keys == "2" {
			d.press(leader)
		}
		d.press(in.keys, "k")
		if got := strings.Join(strings.Fields(foot()), " "); !strings.HasPrefix(got, in.words) {
			t.Errorf("in %s: %q, want %q first", in.keys, got, in.words)
		}
	}
	over(d)
	d.calmly("enter")
	d.idle()
	if !strings.Contains(foot(), "w apply") {
		t.Errorf("after the summary: %q", foot())
	}
}

// Details of an action show what it changed.
func TestDetailsShowTheDiff(t *testing.T) { alone(t, testDetailsShowTheDiff) }

func testDetailsShowTheDiff(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	d.press(leader, "4", "k", "k", "k", "enter")
	d.shows("Edit #10")
	d.shows("C copy")
	d.press("pgdown")
	d.shows("+     if len(s) == 0 {")
}

// What an action changes while its details are shown, they show; as much of something else, too.
func TestDetailsShowTheDiffOfWhatGoesOn(t *testing.T) { alone(t, testDetailsShowTheDiffOfWhatGoesOn) }

func testDetailsShowTheDiffOfWhatGoesOn(t *testing.T) {
	for _, a := range []api.Action{{}, {Files: 1, Added: 12, After: 7}} {
		c := sceneWorkbench()
		later := c.diffs
		c.diffs = nil
		d := bench(t, c, 80, 40, "plain")
		a.N, a.Kind, a.State, a.Title, a.StartedAt = 30, api.KindCommand, api.ActionRunning, "make", sceneNow
		before := a
		d.c.Put(api.Event{Action: &before})
		d.idle()
		d.press(leader, "4", "G", "enter")
		d.shows("Command #30")
		d.idle()
		unlock := c.lock()
		c.diffs = later
		unlock()
		a.State, a.Files, a.Added, a.After = api.ActionEnded, 1, 12, 8
		d.c.Put(api.Event{Action: &a})
		d.shows("1 file, +12")
		d.send(clock{})
		d.shows("+     if len(s) == 0 {")
	}
}

// A session's summary leads to all that it counted, whatever was filtered before.
func TestReviewShowsAll(t *testing.T) { alone(t, testReviewShowsAll) }

func testReviewShowsAll(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	d.press(leader, "2", "/", "n", "o", "t", "e", "s", "enter", "4", "/", "s", "e", "d")
	over(d)
	d.calmly("enter")
	d.shows("A parse_test.go")
	d.press("4")
	d.shows("go test ./...")
}

// The last line says what esc does first.
func TestHelpSaysWhatEscDoes(t *testing.T) { alone(t, testHelpSaysWhatEscDoes) }

func testHelpSaysWhatEscDoes(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	esc := func(want string) {
		t.Helper()
		if rows := strings.Split(d.text(), "\n"); strings.TrimSpace(rows[23]) != want {
			t.Errorf("it says %q", rows[23])
		}
	}
	d.press(leader, "2", "?", "/", "z", "o", "o", "m", "enter")
	esc("esc all again")
	d.press("esc")
	esc("esc close")
}

// While the connection to the session is lost no key offers to answer, and each says why.
func TestLostConnectionAnswersNothing(t *testing.T) { alone(t, testLostConnectionAnswersNothing) }

func testLostConnectionAnswersNothing(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 80, 24, "plain")
	d.press(leader, "4")
	d.shows("a approve")
	d.c.Break(errors.New("connection reset by peer"))
	d.shows("DISCONNECTED")
	if strings.Contains(d.text(), "approve") || strings.Contains(d.text(), "deny…") {
		t.Errorf("an answer is offered:\n%s", d.text())
	}
	d.calmly("a")
	d.shows("the connection to the session is lost")
	d.press("enter")
	d.shows("! the connection to the session is lost")
	d.calmly("a")
	d.decided()
}

// The palette of the list of sessions says what does nothing, and why.
func TestHomePaletteSaysWhatDoesNothing(t *testing.T) { alone(t, testHomePaletteSaysWhatDoesNothing) }

func testHomePaletteSaysWhatDoesNothing(t *testing.T) {
	d := drive(t, many(3), 80, 24, Options{Config: themed("plain")})
	d.shows("shell-1")
	d.press("j", "j", ":", "k", "i", "l", "l")
	d.shows("it has ended")
	d.press("enter")
	d.lacks("Kill the sandbox")
	d.press("esc", ":", "d", "e", "m", "o")
	d.shows("stepbox demo starts it")
}
