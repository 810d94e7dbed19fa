package ui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
)

// three are the scene with three commands held, whose keys the agent has.
func three(t *testing.T, cols, rows int) *driver {
	d := bench(t, sceneWorkbench(), cols, rows, "plain")
	put(d, ask(20, 20, "npm publish"))
	put(d, ask(21, 21, "git push"))
	put(d, ask(22, 22, "make deploy"))
	return d
}

// Whoever decides from the Terminal is asked the next question, until nothing waits: no
// key that was for the one before answers it, or gets to the agent.
func TestDecidingGoesOn(t *testing.T) { alone(t, testDecidingGoesOn) }

func testDecidingGoesOn(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 35}} {
		d := three(t, size[0], size[1])
		d.press(leader, "a")
		d.shows("$ npm publish")
		d.calmly("a")
		d.decided(api.AnswerApprove)
		d.shows("$ git push")
		d.press("a", "a", "esc", "enter", "x")
		d.shows("$ git push")
		d.advance(399 * time.Millisecond)
		d.press("a")
		d.decided(api.AnswerApprove)
		d.calmly("d", "n", "o", "enter")
		d.decided(api.AnswerApprove, api.AnswerDeny)
		d.shows("$ make deploy")
		d.calmly("a")
		d.decided(api.AnswerApprove, api.AnswerDeny, api.AnswerApprove)
		d.lacks("command held")
		d.shows("Nothing waits")
		d.calmly("a", "enter")
		d.shows("esc back to the Terminal")
		d.press("esc")
		d.lacks("Nothing waits")
		if got := d.c.LastTerminal().Got(); got != "" {
			t.Errorf("the agent had %q", got)
		}
		d.press("l", "s")
		d.until("the agent has the keys", func() bool { return d.c.LastTerminal().Got() == "ls" })
		for i, want := range []int64{20, 21, 22} {
			if got := d.c.Decisions()[i].Question; got != want {
				t.Errorf("decision %d is on %d", i, got)
			}
		}
	}
}

// A question that was answered elsewhere right after it followed is gone by itself: what is
// pressed then was for it, not for the one that follows now.
func TestNextGoesByItself(t *testing.T) { alone(t, testNextGoesByItself) }

func testNextGoesByItself(t *testing.T) {
	d := three(t, 120, 35)
	d.press(leader, "a")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	d.shows("$ git push")
	d.advance(300 * time.Millisecond)
	q := ask(21, 21, "git push")
	q.Closed, q.ClosedBy = "allow", "cli"
	d.c.Put(api.Event{Question: &q})
	d.shows("$ make deploy")
	d.advance(200 * time.Millisecond)
	d.press("esc")
	d.shows("$ make deploy")
	d.advance(500 * time.Millisecond)
	d.press("esc")
	d.lacks("command held")
}

// Who leaves a question that followed is where they came from; what else waits stays held.
func TestDecidingIsLeft(t *testing.T) { alone(t, testDecidingIsLeft) }

func testDecidingIsLeft(t *testing.T) {
	d := three(t, 120, 35)
	d.press(leader, "a")
	d.calmly("a")
	d.shows("$ git push")
	d.calmly("esc")
	d.lacks("command held")
	d.shows("2 held")
	d.press("l")
	d.until("the agent has the key", func() bool { return d.c.LastTerminal().Got() == "l" })
	d.decided(api.AnswerApprove)
}

// Who decides in the list is shown whole what a row can't show, however long it takes to
// come; not again what they left, and not before they decided there.
func TestDecidingInTheListShowsTheNextWhole(t *testing.T) {
	alone(t, testDecidingInTheListShowsTheNextWhole)
}

func testDecidingInTheListShowsTheNextWhole(t *testing.T) {
	long := ask(20, 20, "npm publish "+strings.Repeat("--with-a-long-option ", 8))
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	put(d, ask(19, 19, "npm test"))
	d.press(leader, "4")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	d.advance(time.Minute)
	put(d, long)
	d.shows("#20 command held")
	d.calmly("esc")
	d.lacks("#20 command held")
	q := sceneConnection()
	d.c.Put(api.Event{Question: &q})
	d.shows("2 held")
	d.advance(time.Second)
	d.lacks("#20 command held")
	d.calmly("a")
	d.shows("#20 command held")
}

// A question that an answer's rule closes, too, doesn't stand in the way of the next one.
func TestDecidingPassesWhatARuleAnswered(t *testing.T) { alone(t, testDecidingPassesWhatARuleAnswered) }

func testDecidingPassesWhatARuleAnswered(t *testing.T) {
	d := three(t, 120, 35)
	d.press(leader, "a")
	d.calmly("a")
	d.shows("$ git push")
	q := ask(21, 21, "git push")
	q.Closed, q.ClosedBy = "allow", "allow git push (this session)"
	d.c.Put(api.Event{Question: &q})
	d.shows("$ make deploy")
	d.press("a")
	d.decided(api.AnswerApprove)
	d.calmly("a")
	d.decided(api.AnswerApprove, api.AnswerApprove)
}

// An agent asks its next question a moment after the last was answered: it follows too, and
// after a while without one the keys are the agent's again.
func TestDecidingAwaitsTheNext(t *testing.T) { alone(t, testDecidingAwaitsTheNext) }

func testDecidingAwaitsTheNext(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	put(d, ask(20, 20, "npm publish"))
	d.press(leader, "a")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	d.shows("Nothing waits")
	d.advance(2 * time.Second)
	d.press("a") // for a question that isn't there yet
	put(d, ask(21, 21, "git push"))
	d.shows("$ git push")
	d.press("a")
	d.decided(api.AnswerApprove)
	d.calmly("a")
	d.decided(api.AnswerApprove, api.AnswerApprove)
	d.shows("Nothing waits")
	d.advance(3 * time.Second)
	d.lacks("Nothing waits")
	d.advance(200 * time.Millisecond)
	d.press("a", "a")
	d.send(tea.PasteMsg{Content: "pasted"})
	d.advance(500 * time.Millisecond)
	d.press("l")
	d.until("the agent has the keys", func() bool { return d.c.LastTerminal().Got() == "l" })
}

// What takes a rule back is a key that does so where the keys are: in the Terminal the
// agent has all but the leader, and would be suspended by the other.
func TestRuleIsTakenBackFromTheTerminal(t *testing.T) { alone(t, testRuleIsTakenBackFromTheTerminal) }

func testRuleIsTakenBackFromTheTerminal(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "3", "g", "j")
	d.calmly("a")
	d.shows("in this session · ctrl+z forgets it")
	d.press("esc")
	d.shows("in this session · ctrl+] ctrl+z forgets it")
	d.press(leader, "ctrl+z")
	d.shows("forgotten: allow pastebin.com:443 in this session")
	d.idle()
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent had %q", got)
	}
}

// Over a filter that is typed no question opens by itself: it would have the next letter.
func TestNothingOpensOverAFilter(t *testing.T) { alone(t, testNothingOpensOverAFilter) }

func testNothingOpensOverAFilter(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	put(d, ask(19, 19, "npm test"))
	d.press(leader, "4")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	d.press("/", "n")
	put(d, ask(20, 20, "npm publish "+strings.Repeat("--opt ", 16)))
	d.idle()
	d.lacks("#20 command held")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	d.shows("/  na")
}
