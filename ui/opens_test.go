package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

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
	d.shows("u, just before, opened nothing")
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
