package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
)

// What opens a plan is taken however fast it comes, and what follows is for the plan.
func TestPlanOpensAtOnce(t *testing.T) { alone(t, testPlanOpensAtOnce) }

func testPlanOpensAtOnce(t *testing.T) {
	for _, pause := range []time.Duration{0, 200 * time.Millisecond, 399 * time.Millisecond} {
		d := bench(t, sceneWorkbench(), 120, 35, "plain")
		d.press(leader, "4")
		d.advance(time.Second)
		d.press("k")
		d.advance(pause)
		d.press("u")
		d.shows("restores 1 file") // the plan is made
		d.calmly("y")
		d.until("it is rolled back", func() bool {
			return slices.ContainsFunc(d.c.Calls(), func(c string) bool { return strings.HasPrefix(c, "rollback") })
		})
		if slices.Contains(d.c.Calls(), "keep") {
			t.Errorf("%v: it was kept, too", pause)
		}
	}
}

// The same in an opened question: the reason of a denial is asked for at once, and nothing of
// it answers; enter does when it came as fast.
func TestReasonIsAskedAtOnce(t *testing.T) { alone(t, testReasonIsAskedAtOnce) }

func testReasonIsAskedAtOnce(t *testing.T) {
	d := three(t, 120, 35)
	d.press(leader, "a", "d", "b", "a", "d")
	d.shows("Deny command")
	d.advance(300 * time.Millisecond)
	d.press("enter")
	d.decided()
	d.shows("too soon")
	d.calmly("enter")
	d.decided(api.AnswerDeny)
	if got := d.c.Decisions()[0].Reason; got != "bad" {
		t.Errorf("the reason is %q", got)
	}
}

// After a key that opened nothing the next one decides nothing, until that could be read.
func TestNothingIsDecidedAfterALostKey(t *testing.T) { alone(t, testNothingIsDecidedAfterALostKey) }

func testNothingIsDecidedAfterALostKey(t *testing.T) {
	d := three(t, 120, 35)
	d.press(leader, "4")
	d.calmly("u") // it hasn't run
	d.shows("nothing to roll back")
	d.calmly("a")
	d.decided()
	d.shows("u, just before, wasn't done")
	d.calmly("a") // again, having read that
	d.decided(api.AnswerApprove)
}

// No key that means no elsewhere runs what is held.
func TestNoRunsNothing(t *testing.T) { alone(t, testNoRunsNothing) }

func testNoRunsNothing(t *testing.T) {
	for _, to := range []string{"4", "a"} {
		d := three(t, 120, 35)
		d.press(leader, to)
		d.calmly("n", "n")
		d.decided()
		d.advance(time.Second)
		d.calmly("o")
		d.decided(api.AnswerStepOver)
	}
}

// A key that opens something else than what it is for, or lets go of what the mouse selects, is
// lost as well: in lists, what isn't shown whole is opened, and an edit in that of all sessions.
func TestNothingIsDecidedAfterSomethingElse(t *testing.T) {
	alone(t, testNothingIsDecidedAfterSomethingElse)
}

func testNothingIsDecidedAfterSomethingElse(t *testing.T) {
	long := plainQuestion() // its row shows less than it says
	long.Command.Env = []string{"DEBUG=1"}
	for _, tt := range []struct {
		home      bool
		q         api.Question
		selects   string // by the mouse
		key, then string
	}{
		{true, sceneEdit(), "", "d", "y"},
		{true, sceneEdit(), "", "u", "y"},
		{true, plainQuestion(), "", "U", "a"}, // is none there
		{true, plainQuestion(), "$ go get", "d", "a"},
		{false, long, "", "A", "a"},
		{false, plainQuestion(), "#13  go get", "d", "a"},
	} {
		c, o, list, to := liveScene(1, tt.q), Options{Config: themed("plain")}, "Held in all sessions  1 question", []string{"tab"}
		if !tt.home {
			o.Session, list, to = c.list[0].ID, "4 Actions  1 held", []string{leader, "4"}
		}
		d := drive(t, c, 120, 35, o)
		d.shows(list)
		d.press(to...)
		if tt.selects != "" {
			x, y := d.place(tt.selects)
			d.send(click(x, y))
			d.send(tea.MouseMotionMsg{X: x + 4, Y: y, Button: tea.MouseLeft})
		}
		d.advance(time.Second)
		d.press(tt.key)
		d.advance(450 * time.Millisecond)
		d.press(tt.then)
		d.decided()
		d.shows(tt.key + ", just before, wasn't done")
	}
}
