package home

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/paint"
	"stepbox/ui/selection"
)

// dragging is what of a box's text the mouse selects. It is read from the last frame, so
// that what is copied is what was seen.
type dragging struct {
	drawn uv.Screen
	boxes []uv.Rectangle // the insides of those that were drawn, the uppermost last
	in    selection.Region
	held  bool // the button is down
	live  bool // something is selected
	is    selection.Range
}

// Mouse takes a mouse event: dragged over text, the mouse selects and copies it.
func (s *Screen) Mouse(m tea.MouseMsg) tea.Cmd {
	d, e := &s.drag, m.Mouse()
	switch m.(type) {
	case tea.MouseClickMsg:
		d.held, d.live = false, false
		for _, b := range d.boxes {
			if e.Button == tea.MouseLeft && uv.Pos(e.X, e.Y).In(b) {
				d.held, d.in = true, selection.Region{Area: b}
			}
		}
		at := d.in.At(e.X, e.Y)
		d.is = selection.Range{Anchor: at, Head: at}
		if e.Mod.Contains(tea.ModAlt) {
			d.is.Mode = selection.Block
		}
	case tea.MouseMotionMsg:
		if at := d.in.At(e.X, e.Y); d.held && at != d.is.Head {
			d.live, d.is.Head = true, at
		}
	case tea.MouseReleaseMsg:
		copies := d.held && d.live
		if d.held, d.live = false, false; copies {
			text := d.is.Text(d.row)
			return s.cfg.Copy(text, paint.Count(strings.Count(text, "\n")+1, "line", "lines"))
		}
	}
	return nil
}

func (d *dragging) row(y int) selection.Row {
	return selection.Read(d.drawn, d.in.Area, d.in.Area.Min.Y+y)
}

// draw keeps the frame, and shows what is selected.
func (d *dragging) draw(dst uv.Screen, p *paint.Palette) {
	if d.drawn = dst; !d.live {
		return
	}
	for y := range d.in.Area.Dy() {
		from, to := d.is.In(y, d.row(y))
		paint.Dim(dst, uv.Rect(d.in.Area.Min.X+from, d.in.Area.Min.Y+y, to-from, 1), p.S(themes.Selected))
	}
}
