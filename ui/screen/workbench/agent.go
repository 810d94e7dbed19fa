package workbench

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/pane/terminal"
)

// agent is the way to the agent's terminal: keys, pastes, the mouse and the size.
type agent struct {
	*core
	pane terminal.Pane
	size [2]int // what its terminal was asked to be
	told keyed  // what it knows of the focus
}

// keyed is what the agent was told of whether it has the keys.
type keyed int

const (
	untold keyed = iota // it doesn't want to know
	keysHere
	keysElsewhere
)

// attend tells an agent that wants to know whether it has the keys: its pane the focus, and
// the person's terminal theirs.
func (a *agent) attend(has bool) {
	wants := false
	a.link.Screen.With(func(e link.Emulator) { wants = e.FocusEvents() && a.types() })
	now, words := keysElsewhere, ansi.Blur
	switch {
	case !wants:
		now = untold
	case has:
		now, words = keysHere, ansi.Focus
	}
	if now != a.told && now != untold {
		a.link.Type([]byte(words)) // refused: it doesn't read, and is told again
	}
	a.told = now
}

// key sends a key, through the one queue.
func (a *agent) key(k tea.KeyPressMsg) {
	if !a.types() {
		return
	}
	if a.link.Screen.Version() == 0 {
		a.warn("not sent: the terminal isn't joined yet")
		return
	}
	a.press(uv.KeyPressEvent(k))
}

func (a *agent) paste(text string) {
	a.send(func(e link.Emulator) []byte { return e.EncodePaste(text) })
}

func (a *agent) press(k uv.KeyPressEvent) {
	a.send(func(e link.Emulator) []byte { return e.EncodeKey(k) })
}

// send sends what an emulator makes of something, if that is anything.
func (a *agent) send(encode func(link.Emulator) []byte) (any bool) {
	var p []byte
	a.link.Screen.With(func(e link.Emulator) { p = encode(e) })
	if len(p) > 0 && !a.link.Type(p) {
		why := "the agent isn't reading"
		switch {
		case a.lostTm != "":
			why = "the terminal can't be reached"
		case len(p) > link.MaxTyped:
			why = "it is more than " + paint.Bytes(link.MaxTyped)
		}
		a.warn("not sent: %s", why)
	}
	return len(p) > 0
}

// fit asks for the size of the room that there is.
func (a *agent) fit(room uv.Rectangle) {
	a.pane.ReadOnly = !a.types()
	if size := [2]int{room.Dx(), room.Dy()}; !room.Empty() && a.types() && size != a.size {
		a.size = size
		a.link.Resize(size[0], size[1])
	}
}

// claim says that the person is there, whose size the agent's terminal then has.
func (a *agent) claim() {
	if a.types() {
		a.link.Claim()
	}
}

// mouse sends a mouse event to the agent, if it listens.
func (a *agent) mouse(m uv.MouseEvent, e tea.Mouse) bool {
	in := a.pane.Inner()
	if !a.types() || a.pane.Copy != nil {
		return false
	}
	return a.send(func(em link.Emulator) []byte { return em.EncodeMouse(m, e.X-in.Min.X, e.Y-in.Min.Y) })
}

// wheel scrolls, or is the agent's when the pane has the focus.
func (a *agent) wheel(e tea.Mouse, m tea.MouseWheelMsg, by int, focused bool) {
	if focused && a.mouse(uv.MouseWheelEvent(m), e) {
		return
	}
	arrows := false
	a.link.Screen.With(func(em link.Emulator) { arrows = em.AltScreen() && em.AlternateScroll() })
	if arrows && focused && a.types() && a.pane.Copy == nil {
		k := uv.KeyPressEvent{Code: uv.KeyDown}
		if by < 0 {
			k.Code = uv.KeyUp
		}
		for range wheelRows {
			a.press(k)
		}
		return
	}
	a.wheelBack(by)
}

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
		s.info("there is no terminal to read yet")
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
	s.info("the scrollback hasn't where #%d began: %s replays from there", action, keys.First(intent.Jump{}, keys.Panes))
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
		s.info("%s isn't a key of copy mode: %s leaves it, and keys are the agent's again", keys.Pretty(k.String()), keys.First(intent.Back{}, keys.CopyMode))
		return nil
	}
	text, over, why := c.Handle(b.Intent)
	if why != "" {
		s.info("%s", why)
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
