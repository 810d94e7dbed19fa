package spin

import (
	"testing"

	"charm.land/bubbles/v2/spinner"
	tea "charm.land/bubbletea/v2"
)

// It ticks while something takes long and no longer, shows only what lasts, and
// a tick of before doesn't make it turn twice as fast.
func TestMark(t *testing.T) {
	var m Mark
	tick := func(cmd tea.Cmd) spinner.TickMsg {
		t.Helper()
		if cmd == nil {
			t.Fatal("it doesn't tick")
		}
		return cmd().(spinner.TickMsg)
	}
	if m.While(false) != nil || m.String() != "" {
		t.Error("it ticks for nothing")
	}
	first := tick(m.While(true))
	if m.While(true) != nil {
		t.Error("it ticks twice")
	}
	second := tick(m.Update(first))
	if m.String() != "" {
		t.Error("it shows at once")
	}
	third := tick(m.Update(second))
	if m.Update(second) != nil {
		t.Error("an old tick goes on")
	}
	shown := m.String()
	last := tick(m.Update(third))
	if shown == "" || shown == m.String() {
		t.Errorf("it doesn't turn: %q, %q", shown, m.String())
	}
	m.While(false)
	if m.String() != "" || m.Update(last) != nil {
		t.Error("it goes on")
	}
	next := m.While(true)
	if m.Update(last) != nil {
		t.Error("a tick of before counts")
	}
	tick(next)
}
