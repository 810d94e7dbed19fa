package home

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/paint"
	"stepbox/ui/selection"
)

// Mouse takes a mouse event: dragged over text, the mouse selects and copies it.
func (s *Screen) Mouse(m tea.MouseMsg) tea.Cmd {
	d, e := &s.drag, m.Mouse()
	at := uv.Pos(e.X, e.Y)
	switch m.(type) {
	case tea.MouseClickMsg:
		d.Press(at, s.cfg.Now())
		if e.Mod.Contains(tea.ModAlt) {
			d.Mode = selection.Block
		}
		if in := s.textAt(at); in != nil && e.Button == tea.MouseLeft {
			d.Begin(in)
		}
	case tea.MouseMotionMsg:
		if d.Moved(at) {
			d.Pull()
		}
	case tea.MouseReleaseMsg:
		some := d.Some
		if d.Drop(); some {
			text := d.Text()
			return s.cfg.Copy(text, paint.Count(strings.Count(text, "\n")+1, "line", "lines"))
		}
	}
	return nil
}

// textAt is what text can be selected in at a point; nil: none.
func (s *Screen) textAt(at uv.Position) func() selection.Region {
	if d := s.dialogs.Top(); d != nil {
		if at.In(d.Text().Area) {
			return d.Text
		}
		return nil
	}
	for _, b := range s.boxes {
		if at.In(b) {
			return func() selection.Region { return selection.Region{Area: b} }
		}
	}
	return nil
}
