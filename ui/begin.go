package ui

import (
	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/paint"
)

// begun says that the session to join has been made, or why not.
type begun started

// begin makes the session to join. Whoever leaves meanwhile waits for its end, at Close.
func (m *Model) begin() tea.Cmd {
	m.beginning = true
	made := make(chan begun, 1)
	m.links.Go(func() {
		id, err := m.opt.Begin(m.ctx)
		made <- begun{id, err}
	})
	return func() tea.Msg {
		select {
		case b := <-made:
			return b
		case <-m.ctx.Done():
			return nil
		}
	}
}

// begun joins the session that was made.
func (m *Model) begun(b begun) tea.Cmd {
	if b.err != nil {
		m.err = b.err
		return tea.Quit
	}
	m.opt.Session = b.id
	return m.find(opened{id: b.id})
}

// whileBeginning takes what comes before there is a session: of keys those that leave.
// Others would be for an agent that isn't there, and are nobody's.
func (m *Model) whileBeginning(msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyPressMsg); ok && (k.String() == "ctrl+c" || k.String() == "q") {
		return tea.Quit
	}
	return nil
}

// drawBeginning draws the screen until there is a session.
func (m *Model) drawBeginning(area uv.Rectangle, f paint.Frame) {
	top := uv.Rect(area.Min.X, area.Min.Y, area.Dx(), 1)
	f.Fill(top, themes.Bar)
	f.Text(top.Min.X, top.Min.Y, top.Max.X, " stepbox ", themes.Brand)
	x, y, words := area.Min.X+2, area.Min.Y+2, "making the sandbox… "
	if m.opt.Begin == nil {
		words = "opening the session… "
	}
	x = f.Text(x, y, area.Max.X, words, themes.Text)
	f.Text(x, y, area.Max.X, f.Spin, themes.Muted)
	f.Text(area.Min.X+2, area.Max.Y-1, area.Max.X, "ctrl+c leaves it", themes.Muted)
}
