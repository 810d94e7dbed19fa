package workbench

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/pane/terminal"
)

// reading says whether the keys of the focused pane are copy mode's.
func (s *Screen) reading() bool { return s.view.focus == intent.Terminal && s.agent.pane.Copy != nil }

// still begins copy mode, unless it goes on; nil where there is no screen yet.
func (a *agent) still() *terminal.Copy {
	if p := &a.pane; p.Copy == nil {
		if emu, marks := a.link.Still(p.Screen); emu != nil {
			p.Read(emu, marks)
		}
	}
	return a.pane.Copy
}

// goOn ends copy mode.
func (a *agent) goOn() { a.pane.Copy = nil }

// copyMode begins it, with pages scrolled up.
func (s *Screen) copyMode(up int) tea.Cmd {
	c := s.agent.still()
	if c == nil {
		s.tell(themes.Info, "there is no terminal to read yet")
		return nil
	}
	c.Light = false
	s.view.setFocus(intent.Terminal)
	c.Handle(intent.Page{By: -up})
	return nil
}

// readFrom begins copy mode where an action began.
func (s *Screen) readFrom(action int) {
	had := s.agent.pane.Copy != nil
	if c := s.agent.still(); c != nil {
		if i := slices.IndexFunc(c.Marks, func(m link.Mark) bool { return m.Action == action }); i >= 0 {
			c.Light = false
			c.ToRow(c.Marks[i].At)
			s.view.setFocus(intent.Terminal)
			return
		}
	}
	if !had {
		s.agent.goOn()
	}
	s.tell(themes.Info, "the scrollback hasn't where #%d began: %s replays from there", action, keys.First(intent.Jump{}, keys.Panes))
}

// copyKey takes a key of copy mode. None is the agent's.
func (s *Screen) copyKey(k tea.KeyPressMsg) tea.Cmd {
	c := s.agent.pane.Copy
	scope := keys.CopyMode
	if c.Asking() {
		scope = keys.Input
	}
	b, ok := keys.Find(k, scope)
	switch {
	case ok:
	case c.Asking():
		c.Type(k)
		return nil
	default:
		s.tell(themes.Info, "%s isn't a key of copy mode: %s leaves it, and keys are the agent's again", keys.Pretty(k.String()), keys.First(intent.Back{}, keys.CopyMode))
		return nil
	}
	text, over, why := c.Handle(b.Intent)
	if why != "" {
		s.tell(themes.Info, "%s", why)
	}
	if over {
		s.agent.goOn()
	}
	return s.copyText(text)
}

// copyText copies what was selected, if anything was.
func (c *core) copyText(text string) tea.Cmd {
	if text == "" {
		return nil
	}
	return c.cfg.Copy(text, paint.Count(strings.Count(text, "\n")+1, "line", "lines"))
}

// wheelBack scrolls the terminal: up it begins copy mode, which ends where it is scrolled
// down again.
func (a *agent) wheelBack(by int) {
	c := a.pane.Copy
	if c == nil {
		some := false
		a.pane.Screen.With(func(e link.Emulator) { some = !e.AltScreen() && e.ScrollbackLen() > 0 })
		if by >= 0 || !some {
			return
		}
		if c = a.still(); c == nil {
			return
		}
		c.Light = true
	}
	if c.Scroll(by) && by > 0 && c.Light {
		a.goOn()
	}
}
