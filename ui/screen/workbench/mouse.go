package workbench

import (
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/intent"
	"stepbox/ui/layout"
	"stepbox/ui/link"
)

// clickPause is how long after the window came back to the front clicks are
// taken for the one that brought it there.
const clickPause = 400 * time.Millisecond

// Mouse takes a mouse event. A click focuses a pane and does nothing else; one
// that brought the window to the front doesn't even do that. Inside the focused
// Terminal the mouse is the agent's, if it listens.
func (s *Screen) Mouse(m tea.MouseMsg) tea.Cmd {
	e := m.Mouse()
	if _, click := m.(tea.MouseClickMsg); click && (!s.window || s.cfg.Now().Sub(s.refocus) < clickPause) {
		return nil
	}
	switch m := m.(type) {
	case tea.MouseWheelMsg:
		s.wheel(e, m)
	case tea.MouseClickMsg:
		if s.dialog() != nil {
			break
		}
		if s.onSplit(e) {
			s.drag = true
			break
		}
		p := s.panes.At(e.X, e.Y)
		if p == intent.NoPane {
			s.clickTab(e)
			break
		}
		if p == intent.Terminal && s.focus == intent.Terminal {
			s.pressed = s.toScreen(uv.MouseClickEvent(m), e)
			break
		}
		s.setFocus(p)
	case tea.MouseReleaseMsg:
		if s.pressed {
			s.toScreen(uv.MouseReleaseEvent(m), e)
		}
		s.drag, s.pressed = false, false
	case tea.MouseMotionMsg:
		switch {
		case s.drag && s.cols > 0:
			s.setSplit((e.X*100 + s.cols/2) / s.cols)
		case s.pressed:
			s.toScreen(uv.MouseMotionEvent(m), e)
		}
	}
	return s.settle()
}

// onSplit says whether a point is on the border between the columns.
func (s *Screen) onSplit(e tea.Mouse) bool {
	t := s.panes.Terminal
	return e.Button == tea.MouseLeft && !s.zoom && s.panes.Kind >= layout.Medium && !t.Empty() &&
		(e.X == t.Max.X-1 || e.X == t.Max.X) && e.Y > t.Min.Y && e.Y < t.Max.Y-1
}

// toScreen sends a mouse event to the agent, if it listens.
func (s *Screen) toScreen(m uv.MouseEvent, e tea.Mouse) bool {
	in := s.terminal.Inner()
	if !s.live() || s.terminal.Back() > 0 {
		return false
	}
	p := s.link.Screen.Mouse(m, e.X-in.Min.X, e.Y-in.Min.Y)
	s.send(p)
	return len(p) > 0
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
	if d := s.dialog(); d != nil {
		d.Wheel(by)
		return
	}
	switch s.panes.At(e.X, e.Y) {
	case intent.Terminal:
		s.wheelTerminal(e, m, by)
	case intent.Changes:
		s.changes.Wheel(e.X, e.Y, by)
	case intent.Network:
		s.network.List.Scroll(by, s.network.Total())
	case intent.Actions:
		s.auto = false
		s.actions.List.Scroll(by, s.actions.Total())
	}
}

func (s *Screen) wheelTerminal(e tea.Mouse, m tea.MouseWheelMsg, by int) {
	if s.focus == intent.Terminal && s.toScreen(uv.MouseWheelEvent(m), e) {
		return
	}
	arrows := false
	s.link.Screen.With(func(em link.Emulator) { arrows = em.AltScreen() && em.AlternateScroll() })
	if arrows && s.focus == intent.Terminal && s.live() {
		k := uv.KeyPressEvent{Code: uv.KeyDown}
		if by < 0 {
			k.Code = uv.KeyUp
		}
		for range wheelRows {
			s.send(s.link.Screen.Key(k))
		}
		return
	}
	s.terminal.Scroll(-by)
}
