package layout

import (
	"cmp"
	"image"

	"stepbox/ui/intent"
)

// Shape is how a person wants the panes divided, apart from which has the focus.
// Shares are in thousandths; 0 is what the preset gives.
type Shape struct {
	Preset intent.Preset `json:"preset,omitempty"`
	Left   int           `json:"left,omitempty"`  // the left column's share of the width
	Strip  int           `json:"strip,omitempty"` // the Actions strip's share of the height
	Net    int           `json:"net,omitempty"`   // Network's share of the side column
	Flat   bool          `json:"flat,omitempty"`  // changes as a list, not as a tree
}

// Shapes are those for each kind of room.
type Shapes [Wide + 1]Shape

// limits are the least and the largest share that each border can be moved to.
var limits = map[intent.Border][2]int{
	intent.Columns: {300, 750},
	intent.Strip:   {50, 700},
	intent.Between: {100, 900},
}

// Shares beyond the limits, which only presets have: the column isn't shown unless
// a pane of it has the focus.
const (
	noLeft = 1
	noSide = 1000
)

const leftDefault = 600

// Clean is the shape with what it can't have left out, wherever it came from.
func (s Shape) Clean() Shape {
	if !s.Preset.Valid() {
		s.Preset = ""
	}
	for b, share := range map[intent.Border]*int{intent.Columns: &s.Left, intent.Strip: &s.Strip, intent.Between: &s.Net} {
		if *share != 0 {
			*share = clamp(b, *share)
		}
	}
	return s
}

func clamp(b intent.Border, share int) int { return max(limits[b][0], min(share, limits[b][1])) }

// With is the shape with a border at a share.
func (s Shape) With(b intent.Border, share int) Shape {
	switch share = clamp(b, share); b {
	case intent.Columns:
		s.Left = share
	case intent.Strip:
		s.Strip = share
	case intent.Between:
		s.Net = share
	}
	return s
}

// on is the shape with what its preset gives in so much room.
func (s Shape) on(k Kind) Shape {
	var p Shape
	switch s.Preset {
	case intent.Watching:
		if p.Left, p.Strip = limits[intent.Columns][1], limits[intent.Strip][0]; k == Medium {
			p.Left = noSide
		}
	case intent.Reviewing:
		p.Left, p.Strip, p.Net = noLeft, limits[intent.Strip][0], 200
	case intent.Deciding:
		p.Strip = 500
	}
	s.Left, s.Strip, s.Net = cmp.Or(s.Left, p.Left), cmp.Or(s.Strip, p.Strip), cmp.Or(s.Net, p.Net)
	return s
}

// Border is the border between panes at a point, where there is one that can be moved.
func (p Panes) Border(x, y int) intent.Border {
	t, c, n, a := p.of[intent.Terminal], p.of[intent.Changes], p.of[intent.Network], p.of[intent.Actions]
	side := c.Union(n)
	switch {
	case a.Min.Y > p.Title.Max.Y && y < a.Max.Y && (y == a.Min.Y || y == a.Min.Y-1) && !p.zoom:
		return intent.Strip
	case !c.Empty() && !n.Empty() && x > c.Min.X && x < c.Max.X && (y == n.Min.Y || y == n.Min.Y-1):
		return intent.Between
	case !t.Empty() && !side.Empty() && (x == side.Min.X || x == side.Min.X-1) && y > t.Min.Y && y < t.Max.Y-1:
		return intent.Columns
	}
	return intent.NoBorder
}

// Share is the share that a border has if it is moved to a point.
func (p Panes) Share(b intent.Border, x, y int) int {
	part := func(n, of int) int { return (n*1000 + of - 1) / max(of, 1) }
	a, n := p.of[intent.Actions], p.of[intent.Network]
	switch b {
	case intent.Columns:
		return part(x, p.Title.Dx())
	case intent.Strip:
		return part(a.Max.Y-y, p.Held.Max.Y)
	case intent.Between:
		return part(n.Max.Y-y, n.Max.Y-p.of[intent.Changes].Min.Y)
	}
	return 0
}

// at is where a border is now; not ok where there is none.
func (p Panes) at(b intent.Border) (at image.Point, ok bool) {
	t, c, n, a := p.of[intent.Terminal], p.of[intent.Changes], p.of[intent.Network], p.of[intent.Actions]
	switch b {
	case intent.Columns:
		return t.Max, !t.Empty() && t.Max.X < p.Title.Max.X
	case intent.Strip:
		return a.Min, a.Min.Y > p.Title.Max.Y && !p.zoom
	case intent.Between:
		return n.Min, !c.Empty() && !n.Empty()
	}
	return at, false
}

// Step is the share of a border after so many steps of a key, up or to the left when
// negative; not ok where there is no such border.
func (p Panes) Step(b intent.Border, by int) (share int, ok bool) {
	at, ok := p.at(b)
	if b != intent.Columns {
		by = -by // these shares are of what is below
	}
	return p.Share(b, at.X, at.Y) + by*step, ok
}

// step is how far a key moves a border.
const step = 40
