package ui

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

// The title line says where the keys go, and of a zoomed pane that it is.
func TestTitleSaysWhere(t *testing.T) {
	t.Parallel()
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4", "k")
	d.shows("fix-tests · claude › Actions › #12")
	d.press("z")
	d.shows("4 Actions · zoomed")
	d.press("2")
	d.shows("› Changes › src/parse.go")
	d.press("enter")
	d.idle()
	d.shows("› Changes › src/parse.go › hunk 1/2")
	d.press("]")
	d.shows("› hunk 2/2")
	d.shows("2 Changes · zoomed")
	d.send(tea.WindowSizeMsg{Width: 60, Height: 20}) // the end of the way gives way first
	d.shows("› Changes")
	d.lacks("hunk 2/2")
	d.press("esc")
	d.lacks("zoomed")
}
