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

// The least size in which anything can be shown, and where the kinds begin.
const (
	MinCols    = 40
	MinRows    = 12
	MediumCols = 80
	WideCols   = 120
)

// Wish is what decides a layout besides the size.
type Wish struct {
	Cols, Rows int
	Focus      intent.Pane // narrow: the pane that is shown
	Zoom       bool        // the focused pane alone
	Side       intent.Pane // medium: the side pane that is shown, Changes or Network
	Transport  bool        // a line for moving along the session's course
	Split      int         // the left column's share in percent; 0 is the default
}

// Panes are the rectangles. A pane that isn't shown has an empty one. The
// Actions strip and the held line are never empty unless the screen is too small.
type Panes struct {
	Kind              Kind
	Title, Tabs, Held image.Rectangle
	Transport         image.Rectangle // above the held line, if wished for
	of                [intent.Actions + 1]image.Rectangle
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

// SplitLimits are the least and the largest share of the left column, in percent.
const (
	SplitLeast   = 30
	SplitMost    = 75
	SplitDefault = 60
)

// Workbench divides the workbench.
func Workbench(w Wish) Panes {
	var p Panes
	if w.Cols < MinCols || w.Rows < MinRows {
		return p
	}
	switch {
	case w.Cols >= WideCols:
		p.Kind = Wide
	case w.Cols >= MediumCols:
		p.Kind = Medium
	default:
		p.Kind = Narrow
	}
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

	strip := stripRows(w.Rows)
	if w.Transport && strip > 3 {
		strip-- // the other panes keep their size, and the agent's screen is seen whole
	}
	alone := w.Zoom || p.Kind == Narrow
	if alone && w.Focus == intent.Actions {
		p.of[intent.Actions] = body
		return p
	}
	if w.Zoom {
		strip = 3
	}
	p.of[intent.Actions] = image.Rect(body.Min.X, body.Max.Y-strip, body.Max.X, body.Max.Y)
	body.Max.Y -= strip

	if alone {
		p.of[max(w.Focus, intent.Terminal)] = body
		return p
	}
	left := leftCols(w, p.Kind)
	p.of[intent.Terminal] = image.Rect(body.Min.X, body.Min.Y, body.Min.X+left, body.Max.Y)
	side := image.Rect(body.Min.X+left, body.Min.Y, body.Max.X, body.Max.Y)
	if p.Kind == Medium || side.Dy() < 10 {
		p.of[sidePane(w)] = side
		return p
	}
	net := max(5, side.Dy()*36/100)
	p.of[intent.Changes] = image.Rect(side.Min.X, side.Min.Y, side.Max.X, side.Max.Y-net)
	p.of[intent.Network] = image.Rect(side.Min.X, side.Max.Y-net, side.Max.X, side.Max.Y)
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

// stripRows is the Actions strip's height, its border included.
func stripRows(rows int) int {
	switch {
	case rows < 16:
		return 3
	case rows < 22:
		return 5
	case rows < 30:
		return 6
	}
	return min(max(rows/4, 8), 16)
}

// leftCols is the Terminal's width. Agents draw for eighty columns, so the
// Terminal gets that many inside its border before the side column grows.
func leftCols(w Wish, k Kind) int {
	share := cmp.Or(w.Split, SplitDefault)
	share = min(max(share, SplitLeast), SplitMost)
	left := w.Cols * share / 100
	if w.Split == 0 && k == Wide && left < 82 && w.Cols-82 >= 44 {
		left = 82
	}
	least := 24
	if k == Wide {
		least = 30
	}
	return min(max(left, least), w.Cols-least)
}
