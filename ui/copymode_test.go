package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
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
func TestCopyModeKeys(t *testing.T) {
	t.Parallel()
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
	d.shows("✓ copied 2 lines")
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
func TestCopyModeByScrolling(t *testing.T) {
	t.Parallel()
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
