package workbench

import (
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/selection"
)

// scrollOn is the time between rows while the mouse is beyond an edge.
const scrollOn = 60 * time.Millisecond

// place is where the mouse selects: a part of the screen that scrolls.
type place struct {
	region func() selection.Region
	scroll func(by int)
}

// dragging is the selection of text by the mouse, within one place. In the Terminal, whose
// text stands still meanwhile, it is copy mode's.
type dragging struct {
	*core
	agent *agent
	told  bool // the agent has the mouse meanwhile, and the person was told
	selection.Mouse
	grip
}

// grip is what else there is since the button went down.
type grip struct {
	in     place
	term   bool // it is in the Terminal
	began  bool // copy mode began with it, and ends with it
	beyond bool // the mouse is beyond an edge, and a scroll is due
}

// placeAt is what can be selected at a point.
func (s *Screen) placeAt(x, y int) (p place, ok bool) {
	in := s.view.panes.At(x, y)
	if d := s.asking.dialogs.Top(); d != nil {
		p = place{region: d.Text, scroll: d.Wheel}
	} else if l := s.list(in); l != nil {
		p = place{region: func() selection.Region { return l.Text(x, y) }, scroll: func(by int) { l.Wheel(x, y, by) }}
	} else if in == intent.Terminal {
		return p, uv.Pos(x, y).In(s.agent.pane.Inner())
	}
	return p, p.region != nil && uv.Pos(x, y).In(p.region().Area)
}

// press begins to select at a point.
func (s *Screen) press(e tea.Mouse) {
	p, ok := s.placeAt(e.X, e.Y)
	s.drag.pressed(e, p, ok)
}

// pressed begins to select where the button went down, if there is some text at that place.
func (d *dragging) pressed(e tea.Mouse, p place, ok bool) {
	d.Press(uv.Pos(e.X, e.Y), d.cfg.Now())
	d.grip = grip{in: p, term: p.region == nil}
	if !ok || e.Button != tea.MouseLeft {
		return
	}
	if e.Mod.Contains(tea.ModAlt) {
		d.Mode = selection.Block
	}
	if d.term {
		d.pressedInTerminal()
		return
	}
	d.Begin(p.region)
}

// pressedInTerminal moves copy mode's cursor, or selects a word or a line.
func (d *dragging) pressedInTerminal() {
	d.Held, d.began = true, d.agent.pane.Copy == nil
	if d.began && d.Clicks == 1 {
		return // it may be a click: it begins once the mouse moves
	}
	c := d.agent.still()
	if c == nil {
		d.Held = false
		return
	}
	at := d.inTerminal(d.From)
	if d.Clicks == 1 {
		c.Point(at)
		d.Is.Anchor = at
		return
	}
	d.Some = true
	c.SelectAt(at, d.Clicks == 3)
	d.Is = c.Range()
}

// inTerminal is the place in copy mode's text of a point on the screen.
func (d *dragging) inTerminal(at uv.Position) uv.Position {
	at = at.Sub(d.agent.pane.Inner().Min)
	return d.agent.pane.Copy.At(at.X, at.Y)
}

// pulled selects up to where the mouse is by now.
func (d *dragging) pulled(e tea.Mouse) tea.Cmd {
	if !d.Moved(uv.Pos(e.X, e.Y)) {
		return nil
	}
	if d.term && d.agent.pane.Copy == nil {
		if d.agent.still() == nil {
			d.Held = false
			return nil
		}
		d.Is.Anchor = d.inTerminal(d.From)
	}
	return d.pull()
}

// pull moves the selection's end to the mouse; while that is beyond an edge the place scrolls.
func (d *dragging) pull() tea.Cmd {
	var area uv.Rectangle
	if d.term {
		area = d.agent.pane.Inner()
	} else {
		area = d.in.region().Area
	}
	by := 0
	switch {
	case d.At.Y < area.Min.Y:
		by = -1
	case d.At.Y >= area.Max.Y:
		by = 1
	}
	if d.term {
		c := d.agent.pane.Copy
		if by != 0 {
			c.Scroll(by)
		}
		d.Some = true
		c.Select(d.Mode, d.Is.Anchor, d.inTerminal(uv.Pos(d.At.X, max(area.Min.Y, min(d.At.Y, area.Max.Y-1)))))
	} else {
		if by != 0 {
			d.in.scroll(by)
		}
		d.Pull()
	}
	if by == 0 || d.beyond {
		return nil
	}
	d.beyond = true
	return d.after(scrollOn, func() tea.Cmd {
		if d.beyond = false; !d.Held || d.term && d.agent.pane.Copy == nil {
			return nil
		}
		return d.pull()
	})
}

// released copies what is selected.
func (d *dragging) released() tea.Cmd {
	if !d.Some {
		if d.Held && d.term && d.began && d.Clicks > 1 {
			d.agent.goOn()
		}
		d.Drop()
		return nil
	}
	text := ""
	switch {
	case d.term && d.agent.pane.Copy != nil:
		text = d.agent.pane.Copy.Text()
		if d.agent.pane.Copy.Deselect(); d.began {
			d.agent.goOn()
		}
	case !d.term:
		text = d.Text()
	}
	d.Drop()
	return d.copyText(text)
}

// tellMouse says how text is selected while the agent has the mouse, once.
func (d *dragging) tellMouse() {
	if !d.told {
		d.told = true
		d.info("the agent has the mouse: %s selects here, or shift with the mouse", afterLeader(intent.CopyMode{}))
	}
}

// key takes a key while the mouse selects: y copies, any other lets go.
func (d *dragging) key(k tea.KeyPressMsg) tea.Cmd {
	if b, ok := keys.Find(k, keys.CopyMode); ok && b.Intent == intent.Intent(intent.Yes{}) {
		return d.released()
	}
	if d.Drop(); d.term && d.began {
		d.agent.goOn()
	}
	return nil
}
