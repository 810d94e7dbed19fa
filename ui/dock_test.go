package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
)

// A question is beside what it is about: the panes above it are less high, the agent's
// screen isn't, and where its cursor is stays in view.
func TestQuestionIsDocked(t *testing.T) { alone(t, testQuestionIsDocked) }

func testQuestionIsDocked(t *testing.T) {
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 35}, {200, 50}} {
		for _, q := range []api.Question{sceneQuestion(), sceneLongQuestion(), sceneEdit(), sceneConnection(), sceneFlood()} {
			d := bench(t, sceneWorkbench(q), size[0], size[1], "plain")
			before := d.c.LastTerminal().Sizes()
			d.press(leader, "a")
			d.shows(" held ")
			d.advance(time.Second)
			inOrder(t, d.text(), "Terminal", "> ", "4 Actions", "◆")
			if now := d.c.LastTerminal().Sizes(); !slices.Equal(before, now) {
				t.Errorf("%v: the agent's screen was resized: %v", size, now[len(before):])
			}
			d.press("esc")
			d.idle()
			if now := d.c.LastTerminal().Sizes(); !slices.Equal(before, now) {
				t.Errorf("%v: the agent's screen was resized: %v", size, now[len(before):])
			}
			d.send(tea.WindowSizeMsg{Width: size[0] + 5, Height: size[1] + 2})
			d.until("a window's size is told", func() bool { return len(d.c.LastTerminal().Sizes()) > len(before) })
		}
	}
}

// What lies over a question hides it: none of it counts as read meanwhile.
func TestCoveredQuestionIsNotRead(t *testing.T) { alone(t, testCoveredQuestionIsNotRead) }

func testCoveredQuestionIsNotRead(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 60, 12, "plain")
	d.press(leader, "a", "?")
	d.shows("Keys")
	d.send(tea.WindowSizeMsg{Width: 60, Height: 35})
	d.send(tea.WindowSizeMsg{Width: 60, Height: 12})
	d.press("esc")
	d.shows("scroll through all of it first")
	d.calmly("a")
	d.decided()
}

// At every size that shows the workbench, a question's keys leave room for the question.
func TestKeysDoNotCoverTheQuestion(t *testing.T) { alone(t, testKeysDoNotCoverTheQuestion) }

func testKeysDoNotCoverTheQuestion(t *testing.T) {
	for rows := 12; rows < 24; rows++ {
		for _, cols := range []int{40, 44, 50, 60, 80} {
			d := bench(t, sceneWorkbench(ask(20, 20, "touch marked")), cols, rows, "plain")
			d.press(leader, "a")
			if !strings.Contains(d.text(), "$ touch marked") || !strings.Contains(d.text(), "command held") {
				t.Errorf("at %dx%d the question isn't in view\n%s", cols, rows, d.text())
			}
		}
	}
}

// In a low terminal what a roll back does is in view, too, before it can count as read.
func TestPlanInALowTerminal(t *testing.T) { alone(t, testPlanInALowTerminal) }

func testPlanInALowTerminal(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneEdit()), 40, 12, "plain")
	d.press(leader, "a")
	d.calmly("u")
	d.shows("Roll back")
	d.idle()
	for _, words := range []string{"restores 1 file", "M src/parse.go"} {
		if !strings.Contains(d.text(), words) {
			t.Errorf("%q isn't in view\n%s", words, d.text())
		}
	}
}
