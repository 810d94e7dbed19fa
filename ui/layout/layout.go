// Package layout divides a screen among panes. It is one pure function from a
// size and a few wishes to rectangles, so that every size can be tested.
package layout

import (
	"cmp"
	"image"

	"stepbox/ui/intent"
)

// Kind is how much room there is.
type Kind int

const (
	TooSmall Kind = iota
	Narrow        // one pane at a time, with tabs
	Medium        // the Terminal and one side pane
	Wide          // all panes
)

// String is the kind in a word.
func (k Kind) String() string {
	return [...]string{"too small", "narrow", "medium", "wide"}[max(TooSmall, min(k, Wide))]
}

// The least size in which anything can be shown, and where the kinds begin.
const (
	MinCols    = 40
	MinRows    = 12
	mediumCols = 80
	WideCols   = 120
)

// Wish is what decides a layout besides the size.
type Wish struct {
	Cols, Rows int
	Focus      intent.Pane // narrow: the pane that is shown
	Zoom       bool        // the focused pane alone
	Side       intent.Pane // medium: the side pane that is shown, Changes or Network
	Transport  bool        // a line for moving along the session's course
	Shape      Shape       // how the person has divided it
	Linear     bool        // one pane at a time, whatever the room
	Dock       int         // rows that an opened question would like to have; 0: none is open
}

// Panes are the rectangles. A pane that isn't shown has an empty one. The
// Actions strip and the held line are never empty unless the screen is too small, or the
// strip would be a second pane where one is to be shown.
type Panes struct {
	Kind              Kind
	Title, Tabs, Held image.Rectangle
	Transport         image.Rectangle // above the held line, if wished for
	Dock              image.Rectangle // of an opened question, if there is one
	of                [intent.Actions + 1]image.Rectangle
	zoom              bool
}

// Of is a pane's rectangle.
func (p Panes) Of(pane intent.Pane) image.Rectangle { return p.of[pane] }

// At is the pane under a point.
func (p Panes) At(x, y int) intent.Pane {
	for pane, r := range p.of {
		if image.Pt(x, y).In(r) {
			return intent.Pane(pane)
		}
	}
	return intent.NoPane
}

// KindOf is how much room a screen has.
func KindOf(cols, rows int) Kind {
	switch {
	case cols < MinCols || rows < MinRows:
		return TooSmall
	case cols >= WideCols:
		return Wide
	case cols >= mediumCols:
		return Medium
	}
	return Narrow
}

// Workbench divides the workbench.
func Workbench(w Wish) Panes {
	p := Panes{Kind: KindOf(w.Cols, w.Rows), zoom: w.Zoom}
	if w.Linear {
		p.Kind = min(p.Kind, Narrow)
	}
	if p.Kind == TooSmall {
		return Panes{}
	}
	w.Shape = w.Shape.Clean().on(p.Kind)
	p.Title = image.Rect(0, 0, w.Cols, 1)
	p.Held = image.Rect(0, w.Rows-1, w.Cols, w.Rows)
	top := 1
	if p.Kind == Narrow {
		p.Tabs = image.Rect(0, 1, w.Cols, 2)
		top = 2
	}
	body := image.Rect(0, top, w.Cols, w.Rows-1)
	if w.Transport {
		body.Max.Y--
		p.Transport = image.Rect(0, body.Max.Y, w.Cols, body.Max.Y+1)
	}

	alone := w.Zoom || p.Kind == Narrow
	if alone && w.Focus == intent.Actions && w.Dock == 0 {
		p.of[intent.Actions] = body
		return p
	}
	left, strip := leftCols(w, p.Kind), stripRows(w, body.Dy())
	beside := !alone && body.Dx()-left >= besideCols && body.Dy()-strip >= besideRows
	if w.Linear {
		strip = 0
	} else if w.Dock > 0 && !beside {
		strip = min(strip, dockedStrip(w.Rows))
	}
	if strip > 0 {
		p.of[intent.Actions] = image.Rect(body.Min.X, body.Max.Y-strip, body.Max.X, body.Max.Y)
	}
	body.Max.Y -= strip
	if w.Dock > 0 && !beside {
		p.Dock = body
		body.Max.Y -= dockRows(w.Dock, body.Dy())
		p.Dock.Min.Y = body.Max.Y
		if body.Empty() {
			return p
		}
	}

	if alone {
		p.of[evidence(w.Focus)] = body
		return p
	}
	side := body
	if left > 0 {
		p.of[intent.Terminal] = image.Rect(body.Min.X, body.Min.Y, body.Min.X+left, body.Max.Y)
		side.Min.X += left
	}
	if w.Dock > 0 && beside {
		side.Max.Y -= dockRows(w.Dock, side.Dy())
		p.Dock = image.Rect(side.Min.X, side.Max.Y, side.Max.X, body.Max.Y)
		p.of[sidePane(w)] = side
		return p
	}
	switch {
	case side.Empty():
	case p.Kind == Medium || side.Dy() < 10:
		p.of[sidePane(w)] = side
	default:
		p.of[intent.Changes], p.of[intent.Network] = side, side
		net := side.Max.Y - netRows(w.Shape.Net, side.Dy())
		p.of[intent.Changes].Max.Y, p.of[intent.Network].Min.Y = net, net
	}
	return p
}

func sidePane(w Wish) intent.Pane {
	switch {
	case w.Focus == intent.Changes || w.Focus == intent.Network:
		return w.Focus
	case w.Side == intent.Network:
		return intent.Network
	}
	return intent.Changes
}

// netRows is Network's height in a side column.
func netRows(share, rows int) int {
	return max(paneRows, min(rows*cmp.Or(share, 360)/1000, rows-paneRows))
}

// stripRows is the Actions strip's height in a body of so many rows, its border included.
func stripRows(w Wish, body int) (strip int) {
	const least = 3
	switch {
	case w.Zoom:
		return least
	case w.Shape.Strip > 0:
		return max(least, min(w.Rows*w.Shape.Strip/1000, body-paneRows))
	case w.Rows < 16:
		return least
	case w.Rows < 22:
		strip = 5
	case w.Rows < 30:
		strip = 6
	default:
		strip = min(max(w.Rows/4, 8), 16)
	}
	if w.Transport {
		strip-- // the other panes keep their size, and the agent's screen is seen whole
	}
	return strip
}

// leftCols is the Terminal's width. Agents draw for eighty columns, so the
// Terminal gets that many inside its border before the side column grows.
func leftCols(w Wish, k Kind) int {
	share, inSide := w.Shape.Left, w.Focus == intent.Changes || w.Focus == intent.Network
	switch {
	case share == noSide && !inSide:
		return w.Cols
	case share == noLeft && w.Focus != intent.Terminal:
		return 0
	case share == noLeft:
		share = 0
	}
	left := w.Cols * clamp(intent.Columns, cmp.Or(share, leftDefault)) / 1000
	if share == 0 && k == Wide && left < 82 && w.Cols-82 >= 44 {
		left = 82
	}
	least := 24
	if k == Wide {
		least = 30
	}
	return min(max(left, least), w.Cols-least)
}

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
