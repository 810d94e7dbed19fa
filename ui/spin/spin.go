// Package spin has the mark that turns beside what takes long. It ticks only
// meanwhile, and doesn't show for what is over in a moment.
package spin

import (
	"charm.land/bubbles/v2/spinner"
	tea "charm.land/bubbletea/v2"
)

// Mark is the mark. The zero Mark stands still.
type Mark struct {
	model spinner.Model
	ticks int // since something began to take long; 0 when nothing does
}

// While is called after each update with whether something takes long now.
func (m *Mark) While(busy bool) tea.Cmd {
	switch {
	case !busy:
		*m = Mark{} // the tick that is under way finds another model, and is the last one
		return nil
	case m.ticks > 0:
		return nil
	}
	m.model, m.ticks = spinner.New(spinner.WithSpinner(spinner.MiniDot)), 1
	return m.model.Tick
}

// Update takes a tick.
func (m *Mark) Update(t spinner.TickMsg) tea.Cmd {
	var next tea.Cmd
	if m.ticks > 0 {
		m.model, next = m.model.Update(t)
	}
	if next != nil {
		m.ticks++
	}
	return next
}

// String is the mark as it stands, or "" before it shows.
func (m *Mark) String() string {
	if m.ticks < 3 {
		return ""
	}
	return m.model.View()
}
