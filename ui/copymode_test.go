package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
)

// printed drives a workbench whose terminal has a scrollback.
func printed(t *testing.T, rows int) *driver {
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "line %d here\n", i)
	}
	c := sceneWorkbench()
	c.SetScreen(70, 22, b.String())
	return bench(t, c, 120, 35, "plain")
}

// From the Terminal the leader begins copy mode; its keys move, search and copy, none is the
// agent's, and neither is the key that left it, once more.
func TestCopyModeKeys(t *testing.T) { alone(t, testCopyModeKeys) }

func testCopyModeKeys(t *testing.T) {
	d := printed(t, 200)
	d.press(leader, "[")
	d.shows("copy mode  201/201")
	d.press("/", "1", "4", "2")
	d.shows("1 of 1")
	d.press("enter", "0", "V", "j")
	d.c.LastTerminal().Output(strings.Repeat("more\r\n", 100))
	d.idle()
	d.shows("line 142 here")
	d.press("J")
	d.shows("J isn't a key of copy mode: q leaves it")
	d.send(tea.PasteMsg{Content: "pasted"})
	d.press("y", "y", "y")
	d.until("it is copied", func() bool { return d.copied == "line 142 here\nline 143 here" })
	d.shows("programs copy: 2 lines")
	d.lacks("copy mode  ")
	d.shows("more")
	if d.c.LastTerminal().Got() != "" {
		t.Errorf("the agent got %q", d.c.LastTerminal().Got())
	}
	d.advance(time.Second)
	d.press("y")
	d.until("the agent has its keys again", func() bool { return d.c.LastTerminal().Got() == "y" })
}

// Scrolling up begins it, and scrolling down again ends it; a page up does as well.
func TestCopyModeByScrolling(t *testing.T) { alone(t, testCopyModeByScrolling) }

func testCopyModeByScrolling(t *testing.T) {
	d := printed(t, 200)
	up, down := tea.MouseWheelMsg{X: 5, Y: 5, Button: tea.MouseWheelUp}, tea.MouseWheelMsg{X: 5, Y: 5, Button: tea.MouseWheelDown}
	d.send(up)
	d.shows("copy mode")
	d.send(up)
	d.send(down)
	d.shows("copy mode")
	d.send(down)
	d.lacks("copy mode  ")
	d.press(leader, "pgup")
	d.shows("copy mode")
	d.lacks("line 199 here")
	d.press("x", "q")
	d.lacks("copy mode  ")
	d.shows("line 199 here")
	if d.c.LastTerminal().Got() != "" {
		t.Errorf("the agent got %q", d.c.LastTerminal().Got())
	}
	d = printed(t, 3) // there is nothing to scroll to
	d.send(up)
	d.lacks("copy mode  ")
}

// Where actions began is marked, as far as the scrollback has it, also of those that begin
// while one looks; and from an action one gets there.
func TestCopyModeMarks(t *testing.T) { alone(t, testCopyModeMarks) }

func testCopyModeMarks(t *testing.T) {
	d := printed(t, 200)
	marks := func(all ...api.Begun) {
		d.c.LastTerminal().Frame(api.MarksFrame(all))
		d.idle()
	}
	marks(api.Begun{Action: 10, Back: 100}, api.Begun{Action: 11, Back: 50}, api.Begun{Action: 9, Back: 9000})
	d.c.LastTerminal().Output("more\r\nmore\r\n")
	d.idle()
	marks(api.Begun{Action: 13})
	d.press(leader, "[", "[")
	d.shows("#11  copy mode  151/203")
	d.shows("▸line 150 here")
	d.press("[")
	d.shows("#10  copy mode  101/203")
	d.press("[")
	d.shows("no action began there")
	d.press("]", "]")
	d.shows("#13  copy mode  203/203")
	d.press("q")
	d.press(leader, "4", "G", "k", "k", "B")
	d.shows("#11  copy mode  151/203")
	d.press("q")
	d.press(leader, "4", "G", "k", "B")
	d.shows("the scrollback hasn't where #12 began")
}

// In a replay copy mode has them too, also where the screen
// isn't whole.
func TestCopyModeMarksInReplay(t *testing.T) { alone(t, testCopyModeMarksInReplay) }

func testCopyModeMarksInReplay(t *testing.T) {
	for _, lost := range []string{"", "nobody can read this"} {
		c := sceneRecord(false)
		c.SetRecord(func(r *record) {
			r.printed = []piece{{off: time.Second, data: strings.Repeat("a line\n", 10)}}
			if lost != "" {
				r.printed = append(r.printed, piece{off: 2 * time.Second, lost: lost})
			}
			r.marks = []api.Begun{{Action: 5, Back: 7}, {Action: 6, Back: 3}}
		})
		d := bench(t, c, 120, 35, "plain")
		d.press("[")
		d.shows("REPLAY")
		d.idle()
		d.press(leader, "[")
		d.shows("copy mode")
		d.press("[")
		d.shows("#6  copy mode  8/22")
		d.press("[")
		d.shows("#5  copy mode  4/22")
	}
}
