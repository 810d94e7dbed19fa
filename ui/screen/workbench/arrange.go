package workbench

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/layout"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// arrangement is where the panes are, which of them has the focus, and what the
// mouse moves.
type arrangement struct {
	cols, rows int
	panes      layout.Panes
	agent      uv.Rectangle // where the Terminal is, or would be without an opened question
	focus      intent.Pane
	zoom       bool
	side       intent.Pane // that is shown where there is room for one
	shapes     layout.Shapes
	usual      intent.Preset // where the person has chosen none
	linear     func() bool   // one pane is shown at a time
	drag       intent.Border // that is being moved with the mouse
	changed    bool          // a shape isn't kept yet
	keeping    bool          // one is being kept
	pressed    bool          // a button went down inside of the agent's screen
	tabAt      []uv.Rectangle
}

// arrange divides the screen anew, with the transport line or without. want says how many
// rows an opened question would like to have, in so many columns; 0: there is none.
func (a *arrangement) arrange(transport bool, want func(cols int) int) {
	shape := *a.shape()
	shape.Preset = cmp.Or(shape.Preset, a.usual)
	wish := layout.Wish{
		Cols: a.cols, Rows: a.rows, Focus: a.focus, Zoom: a.zoom, Side: a.side, Shape: shape, Transport: transport, Linear: a.linear != nil && a.linear(),
	}
	a.panes = layout.Workbench(wish)
	a.agent = a.panes.Of(intent.Terminal)
	wish.Dock = 1
	if wish.Dock = want(layout.Workbench(wish).Dock.Dx()); wish.Dock > 0 {
		a.panes = layout.Workbench(wish)
	}
}

// shape is how the person divides as much room as there is.
func (a *arrangement) shape() *layout.Shape { return &a.shapes[layout.KindOf(a.cols, a.rows)] }

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
	case intent.Resize:
		a.resize(i.DX, i.DY)
	case intent.Flat:
		s := a.shape()
		s.Flat, a.changed = !s.Flat, true
	case intent.Arrange:
		a.preset(i.Preset)
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
	a.drag, a.pressed = intent.NoBorder, false
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

// resize moves the border beside the focused pane, or the one above or below it.
func (a *arrangement) resize(dx, dy int) {
	b := intent.Columns
	if dx == 0 {
		if b = intent.Strip; a.focus == intent.Changes || a.focus == intent.Network {
			b = intent.Between
		}
	}
	share, ok := a.panes.Step(b, dx+dy)
	if !ok && b == intent.Between {
		b = intent.Strip
		share, ok = a.panes.Step(b, dy)
	}
	if ok {
		a.divide(b, share)
	}
}

// divide moves a border.
func (a *arrangement) divide(b intent.Border, share int) {
	*a.shape() = a.shape().With(b, share)
	a.changed = true
}

// preset divides the screen in a way that has a name; "": the next one. It never
// gives the focus to the Terminal: the next key would be the agent's.
func (a *arrangement) preset(p intent.Preset) {
	s := a.shape()
	if p == "" {
		now := slices.Index(intent.Presets, cmp.Or(s.Preset, a.usual, intent.Usual))
		p = intent.Presets[(now+1)%len(intent.Presets)]
	}
	*s = layout.Shape{Preset: p, Flat: s.Flat}
	a.changed, a.zoom = true, false
	switch p {
	case intent.Reviewing:
		a.setFocus(intent.Changes)
	case intent.Deciding:
		a.setFocus(intent.Actions)
	}
}

// keep has the shape kept that was changed, one at a time, so that the last is what stays.
func (s *Screen) keep() tea.Cmd {
	v, keep := &s.view, s.cfg.Kept.Layout().Keep
	if !v.changed || v.keeping || v.drag != intent.NoBorder {
		return nil
	}
	v.changed, v.keeping = false, true
	kind, shape := layout.KindOf(v.cols, v.rows), *v.shape()
	return s.do(func(context.Context, link.Client, string) func() tea.Cmd {
		err := keep(kind, shape)
		return func() tea.Cmd {
			v.keeping = false
			if err != nil {
				s.warn("%s", paint.Clean(err.Error()))
			}
			return nil
		}
	})
}

// tabs are the panes' names where only one is shown at a time.
func (a *arrangement) tabs(r uv.Rectangle, f paint.Frame) {
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
		n := f.Text(x, r.Min.Y, r.Max.X, fmt.Sprintf("%s%d %s", mark, pane, pane), k)
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
