package workbench

import (
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/selection"
)

const (
	clickAgain = 400 * time.Millisecond // within it a click goes on the one before
	scrollOn   = 60 * time.Millisecond  // between rows while the mouse is beyond an edge
)

// place is where the mouse selects: a part of the screen that scrolls.
type place struct {
	region func() selection.Region
	scroll func(by int)
}

// dragging is the selection of text by the mouse, within one place.
type dragging struct {
	*core
	agent *agent
	drawn uv.Screen // the last frame: what is selected is read from it
	told  bool      // the agent has the mouse meanwhile, and the person was told
	grip
}

// grip is what the button holds since it went down.
type grip struct {
	held   bool // the button is down
	some   bool // something is selected
	in     place
	term   bool // it is in the Terminal, whose text stands still meanwhile, in copy mode
	began  bool // copy mode began with it, and ends with it
	mode   selection.Mode
	from   uv.Position // where the button went down, on the screen
	at     uv.Position // where the mouse is
	is     selection.Range
	rows   map[int]selection.Row // of the place that were in view by now
	beyond bool                  // the mouse is beyond an edge, and a scroll is due

	clicks int
	last   time.Time
}

// placeAt is what can be selected at a point.
func (s *Screen) placeAt(x, y int) (p place, ok bool) {
	if d := s.asking.dialogs.Top(); d != nil {
		p = place{region: d.Text, scroll: d.Wheel}
	} else {
		switch s.view.panes.At(x, y) {
		case intent.Changes:
			p = place{region: func() selection.Region { return s.changes.pane.Text(x, y) }, scroll: func(by int) { s.changes.pane.Wheel(x, y, by) }}
		case intent.Network:
			p = place{region: s.reach.pane.Text, scroll: func(by int) { s.reach.pane.List.Scroll(by, s.reach.pane.Total()) }}
		case intent.Actions:
			p = place{region: s.asking.list.Text, scroll: func(by int) { s.asking.list.List.Scroll(by, s.asking.list.Total()) }}
		case intent.Terminal:
			return p, uv.Pos(x, y).In(s.agent.pane.Inner())
		}
	}
	return p, p.region != nil && uv.Pos(x, y).In(p.region().Area)
}

// press begins to select at a point.
func (s *Screen) press(e tea.Mouse) {
	p, ok := s.placeAt(e.X, e.Y)
	s.drag.pressed(e, p, ok)
}

// pressed begins to select where the button went down, and selects a word or a line where it
// did so again, if there is some at that place.
func (d *dragging) pressed(e tea.Mouse, p place, ok bool) {
	clicks, now := 1, d.cfg.Now()
	if at := uv.Pos(e.X, e.Y); at == d.from && now.Sub(d.last) < clickAgain {
		clicks = d.clicks%3 + 1
	}
	d.grip = grip{clicks: clicks, last: now, from: uv.Pos(e.X, e.Y), at: uv.Pos(e.X, e.Y)}
	if !ok || e.Button != tea.MouseLeft {
		return
	}
	if e.Mod.Contains(tea.ModAlt) {
		d.mode = selection.Block
	}
	d.held, d.in, d.term = true, p, p.region == nil
	switch {
	case d.term:
		d.pressedInTerminal()
	case clicks > 1 && d.drawn != nil:
		d.read()
		at := p.region().At(e.X, e.Y)
		if d.some = true; clicks == 2 {
			from, to := selection.Word(d.rows[at.Y], at.X)
			d.is = selection.Range{Anchor: uv.Pos(from, at.Y), Head: uv.Pos(to-1, at.Y)}
			return
		}
		r := p.region()
		first, last := selection.Whole(d.row, at.Y, r.Top+r.Area.Dy())
		d.is = selection.Range{Mode: selection.Lines, Anchor: uv.Pos(0, first), Head: uv.Pos(0, last)}
	default:
		at := p.region().At(e.X, e.Y)
		d.is = selection.Range{Mode: d.mode, Anchor: at, Head: at}
	}
}

// pressedInTerminal moves copy mode's cursor, or selects a word or a line.
func (d *dragging) pressedInTerminal() {
	if d.began = d.agent.pane.Copy == nil; d.began && d.clicks == 1 {
		return // it may be a click: it begins once the mouse moves
	}
	c := d.agent.still()
	if c == nil {
		d.held = false
		return
	}
	at := d.inTerminal(d.from)
	if d.clicks == 1 {
		c.Point(at)
		d.is.Anchor = at
		return
	}
	d.some = true
	c.SelectAt(at, d.clicks == 3)
	d.is = c.Range()
}

// inTerminal is the place in copy mode's text of a point on the screen.
func (d *dragging) inTerminal(at uv.Position) uv.Position {
	at = at.Sub(d.agent.pane.Inner().Min)
	return d.agent.pane.Copy.At(at.X, at.Y)
}

// pulled selects up to where the mouse is by now.
func (d *dragging) pulled(e tea.Mouse) tea.Cmd {
	at := uv.Pos(e.X, e.Y)
	if at == d.at {
		return nil
	}
	d.at = at
	if d.term && d.agent.pane.Copy == nil {
		if d.agent.still() == nil {
			d.held = false
			return nil
		}
		d.is.Anchor = d.inTerminal(d.from)
	}
	d.some = true
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
	case d.at.Y < area.Min.Y:
		by = -1
	case d.at.Y >= area.Max.Y:
		by = 1
	}
	if d.term {
		c := d.agent.pane.Copy
		if by != 0 {
			c.Scroll(by)
		}
		c.Select(d.mode, d.is.Anchor, d.inTerminal(uv.Pos(d.at.X, max(area.Min.Y, min(d.at.Y, area.Max.Y-1)))))
	} else {
		d.read()
		if by != 0 {
			d.in.scroll(by)
		}
		d.is.Mode, d.is.Head = d.mode, d.in.region().At(d.at.X, d.at.Y)
	}
	if by == 0 || d.beyond {
		return nil
	}
	d.beyond = true
	return d.after(scrollOn, func() tea.Cmd {
		if d.beyond = false; !d.held || d.term && d.agent.pane.Copy == nil {
			return nil
		}
		return d.pull()
	})
}

// released copies what is selected.
func (d *dragging) released() tea.Cmd {
	text := ""
	switch {
	case !d.held || !d.some:
		if d.held && d.term && d.began && d.clicks > 1 {
			d.agent.goOn()
		}
		d.held = false
		return nil
	case d.term && d.agent.pane.Copy != nil:
		text = d.agent.pane.Copy.Text()
		if d.agent.pane.Copy.Deselect(); d.began {
			d.agent.goOn()
		}
	case !d.term:
		d.read()
		text = d.is.Text(d.row)
	}
	d.held, d.some = false, false
	return d.copyText(text)
}

// row is a row of the place, as it was when it was in view.
func (d *dragging) row(n int) selection.Row { return d.rows[n] }

// read reads what of the place is on the last frame.
func (d *dragging) read() {
	if d.rows == nil {
		d.rows = map[int]selection.Row{}
	}
	if d.drawn != nil {
		d.in.region().Read(d.drawn, d.rows)
	}
}

// draw keeps the frame, and shows what is selected.
func (d *dragging) draw(dst uv.Screen, p *paint.Palette) {
	d.drawn = dst
	if !d.held || !d.some || d.term {
		return
	}
	d.read()
	r := d.in.region()
	for i := range r.Area.Dy() {
		from, to := d.is.In(r.Top+i, d.rows[r.Top+i])
		paint.Dim(dst, uv.Rect(r.Area.Min.X+from, r.Area.Min.Y+i, to-from, 1), p.S(themes.Selected))
	}
}

// tellMouse says how text is selected while the agent has the mouse, once.
func (d *dragging) tellMouse() {
	if !d.told {
		d.told = true
		d.tell(themes.Info, "the agent has the mouse: %s selects here, or shift with the mouse", afterLeader(intent.CopyMode{}))
	}
}

// key takes a key while the mouse selects: y copies, any other lets go.
func (d *dragging) key(k tea.KeyPressMsg) tea.Cmd {
	if b, ok := keys.Find(k, keys.CopyMode); ok && b.Intent == intent.Intent(intent.Yes{}) {
		return d.released()
	}
	if d.held, d.some = false, false; d.term && d.began {
		d.agent.goOn()
	}
	return nil
}
