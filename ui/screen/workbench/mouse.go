package workbench

import (
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/selection"
)

// clickPause is how long after the window came back to the front clicks are
// taken for the one that brought it there.
const clickPause = 400 * time.Millisecond

// Mouse takes a mouse event. A click focuses a pane and does nothing else; one
// that brought the window to the front doesn't even do that. Dragged over text the mouse
// selects it. Inside the focused Terminal the mouse is the agent's, if it listens.
func (s *Screen) Mouse(m tea.MouseMsg) tea.Cmd {
	e := m.Mouse()
	if _, click := m.(tea.MouseClickMsg); click && (!s.window || s.cfg.Now().Sub(s.refocus) < clickPause) {
		return nil
	}
	if _, click := m.(tea.MouseClickMsg); click {
		s.letGo(tea.MouseReleaseMsg(e)) // some terminals tell of presses alone
		if s.panelled() {
			s.Restart() // what the panel lay over is new to the eye
		}
		s.leader = false
	}
	switch m := m.(type) {
	case tea.MouseWheelMsg:
		s.wheel(e, m)
	case tea.MouseClickMsg:
		if s.asking.dialogs.Top() != nil {
			s.press(e)
			break
		}
		if s.course.press(e) {
			break
		}
		border := intent.NoBorder
		if e.Button == tea.MouseLeft {
			border = s.view.panes.Border(e.X, e.Y)
		}
		if border == intent.Columns {
			s.view.drag = border
			break
		}
		p := s.view.panes.At(e.X, e.Y)
		if p == intent.NoPane {
			s.view.clickTab(e)
			break
		}
		if border != intent.NoBorder { // it has the pane's title, which focuses it
			s.view.setFocus(p)
			s.view.drag = border
			break
		}
		if p == intent.Terminal && s.view.focus == intent.Terminal {
			if s.view.pressed = !s.asking.desk.JustDecided() && s.agent.mouse(uv.MouseClickEvent(m), e); s.view.pressed {
				break
			}
		}
		s.view.setFocus(p)
		s.press(e)
		if p == intent.Changes {
			s.changes.pane.Click(e.X, e.Y)
		}
	case tea.MouseReleaseMsg:
		s.letGo(m)
		return tea.Batch(s.drag.released(), s.follow())
	case tea.MouseMotionMsg:
		switch {
		case s.course.drag:
			s.course.pull(e.X)
		case s.view.drag != intent.NoBorder:
			s.view.divide(s.view.drag, s.view.panes.Share(s.view.drag, e.X, e.Y))
		case s.view.pressed:
			s.agent.mouse(uv.MouseMotionEvent(m), e)
			s.drag.tellMouse()
		case s.drag.Held:
			return tea.Batch(s.drag.pulled(e), s.follow())
		}
	}
	return s.follow()
}

// letGo ends what a press began, here and for the agent.
func (s *Screen) letGo(m tea.MouseReleaseMsg) {
	if s.view.pressed {
		s.agent.mouse(uv.MouseReleaseEvent(m), m.Mouse())
	}
	s.view.drag, s.view.pressed, s.course.drag = intent.NoBorder, false, false
}

const wheelRows = 3

// wheel scrolls what is under it.
func (s *Screen) wheel(e tea.Mouse, m tea.MouseWheelMsg) {
	by := wheelRows
	switch e.Button {
	case tea.MouseWheelUp:
		by = -wheelRows
	case tea.MouseWheelDown:
	default:
		return
	}
	d := s.asking.dialogs.Top()
	if d != nil && (s.asking.dialogs.Over(s.asking.ruler()) || uv.Pos(e.X, e.Y).In(s.view.panes.Dock)) {
		d.Wheel(by)
		return
	}
	p := s.view.panes.At(e.X, e.Y)
	if l := s.moving(p); l != nil {
		l.Wheel(e.X, e.Y, by)
	} else if p == intent.Terminal {
		s.agent.wheel(e, m, by, d == nil && !s.asking.desk.JustDecided() && s.view.focus == intent.Terminal)
	}
}

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
