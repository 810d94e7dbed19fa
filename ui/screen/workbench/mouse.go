package workbench

import (
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/intent"
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
