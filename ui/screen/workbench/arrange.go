package workbench

import (
	"fmt"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/layout"
	"stepbox/ui/paint"
)

// arrangement is where the panes are, which of them has the focus, and what the
// mouse moves.
type arrangement struct {
	cols, rows int
	panes      layout.Panes
	focus      intent.Pane
	zoom       bool
	side       intent.Pane // that is shown where there is room for one
	split      int         // percent of the left column; 0 is the usual
	drag       bool        // the border between the columns is being moved
	pressed    bool        // a button went down inside of the agent's screen
	tabAt      []uv.Rectangle
}

// arrange divides the screen anew, with the transport line or without.
func (a *arrangement) arrange(transport bool) {
	a.panes = layout.Workbench(layout.Wish{
		Cols: a.cols, Rows: a.rows, Focus: a.focus, Zoom: a.zoom, Side: a.side, Split: a.split, Transport: transport,
	})
}

// handle takes the intents that move the focus or the borders, and says whether
// i was one.
func (a *arrangement) handle(i intent.Intent) bool {
	switch i := i.(type) {
	case intent.Focus:
		a.setFocus(i.Pane)
	case intent.FocusStep:
		a.stepFocus(i.By)
	case intent.FocusTo:
		a.moveFocus(i.DX, i.DY)
	case intent.Zoom:
		a.zoom = !a.zoom
	case intent.SideCycle:
		a.cycleSide()
	case intent.Split:
		a.setSplit(a.splitNow() + i.By)
	default:
		return false
	}
	return true
}

func (a *arrangement) setFocus(p intent.Pane) {
	if p == intent.NoPane {
		return
	}
	a.focus = p
	if p == intent.Changes || p == intent.Network {
		a.side = p
	}
	a.drag, a.pressed = false, false
}

func (a *arrangement) stepFocus(by int) {
	n := int(a.focus) - 1 + by
	a.setFocus(intent.Pane((n%4+4)%4 + 1))
}

// moveFocus focuses the pane in a direction, as they lie on the screen.
func (a *arrangement) moveFocus(dx, dy int) {
	from := a.panes.Of(a.focus)
	if from.Empty() {
		return
	}
	at := from.Min.Add(from.Max).Div(2)
	at.X += dx * (from.Dx()/2 + 2)
	at.Y += dy * (from.Dy()/2 + 2)
	if p := a.panes.At(at.X, at.Y); p != intent.NoPane {
		a.setFocus(p)
	}
}

func (a *arrangement) cycleSide() {
	next := intent.Changes
	if a.side == intent.Changes {
		next = intent.Network
	}
	a.side = next
	if a.focus == intent.Changes || a.focus == intent.Network {
		a.focus = next
	}
}

func (a *arrangement) splitNow() int {
	if a.split != 0 {
		return a.split
	}
	if t := a.panes.Of(intent.Terminal); a.cols > 0 && !t.Empty() {
		return t.Dx() * 100 / a.cols
	}
	return layout.SplitDefault
}

func (a *arrangement) setSplit(percent int) {
	a.split = max(layout.SplitLeast, min(percent, layout.SplitMost))
}

// onSplit says whether a point is on the border between the columns.
func (a *arrangement) onSplit(e tea.Mouse) bool {
	t := a.panes.Of(intent.Terminal)
	return e.Button == tea.MouseLeft && !a.zoom && a.panes.Kind >= layout.Medium && !t.Empty() &&
		(e.X == t.Max.X-1 || e.X == t.Max.X) && e.Y > t.Min.Y && e.Y < t.Max.Y-1
}

// tabs are the panes' names where only one is shown at a time.
func (a *arrangement) tabs(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	a.tabAt = a.tabAt[:0]
	if r.Empty() {
		return
	}
	x := r.Min.X + 1
	for _, pane := range intent.Panes {
		mark, k := " ", themes.Title
		if pane == a.focus {
			mark, k = "▸", themes.TitleFocus
		}
		n := paint.Text(dst, x, r.Min.Y, r.Max.X, fmt.Sprintf("%s%d %s", mark, pane, pane), f.P.S(k))
		a.tabAt = append(a.tabAt, uv.Rect(x, r.Min.Y, n-x, 1))
		x = n + 2
	}
}

func (a *arrangement) clickTab(e tea.Mouse) {
	for i, r := range a.tabAt {
		if uv.Pos(e.X, e.Y).In(r) {
			a.setFocus(intent.Pane(i + 1))
		}
	}
}
