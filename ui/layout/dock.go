package layout

import "stepbox/ui/intent"

// An opened question has a rectangle of its own, so that it covers nothing of what it
// is about. Where the side column is wide enough it has the lower part of that, and the
// Terminal stays whole; else all columns above the Actions strip, and the panes are less
// high. The agent's screen isn't: whoever sizes it divides the screen without a question.
const (
	besideCols = 64 // of the side column, from which on the question is in it
	besideRows = 24
	paneRows   = 5 // that a pane has at least, border included; above a question no less than a quarter
	leastDock  = 8
)

// dockRows is how many rows a question gets that would like to have so many, of room.
func dockRows(want, room int) int {
	rows := min(max(want, leastDock), room-max(paneRows, room/4))
	if rows < leastDock { // too little to be read: nothing else is shown
		rows = room
	}
	return rows
}

// dockedStrip is the most that the Actions strip has below a question.
func dockedStrip(rows int) int {
	if rows < 30 {
		return 3
	}
	return 5
}

// evidence is the pane that is shown alone above a question, or without one.
func evidence(focus intent.Pane) intent.Pane {
	if focus == intent.NoPane || focus == intent.Actions {
		return intent.Terminal
	}
	return focus
}
