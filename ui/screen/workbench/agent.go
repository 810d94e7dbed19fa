package workbench

import (
	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/themes"
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
		a.tell(themes.Warn, "not sent: the terminal isn't joined yet")
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
		a.tell(themes.Warn, "not sent: %s", why)
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
