package ui

import (
	"fmt"
	"path/filepath"

	tea "charm.land/bubbletea/v2"

	"stepbox/themes"
	"stepbox/ui/config"
	"stepbox/ui/keys"
)

// reloaded is what the person has set by now.
type reloaded struct{ config *config.Config }

// watchConfig waits for changes of the file of settings.
func (m *Model) watchConfig() tea.Cmd {
	if m.opt.Config.File == "" {
		return nil
	}
	return watching(m.ctx, ofConfig, filepath.Dir(m.opt.Config.File))
}

// reconfigure takes what the person has set by now, where that is something else.
func (m *Model) reconfigure(c *config.Config) tea.Cmd {
	was := faults(m.opt.Config)
	m.opt.Config = c
	keys.Use(c.Keys)
	cmd := m.restyle()
	switch now := faults(c); {
	case now == was:
		return cmd
	case now != "":
		return tea.Batch(cmd, m.tell(themes.Warn, now))
	default:
		return tea.Batch(cmd, m.tell(themes.OK, "all of your settings hold"))
	}
}

// faults says what is wrong in a person's settings; "": nothing.
func faults(c *config.Config) string {
	switch n := len(c.Warnings); n {
	case 0:
		return ""
	case 1:
		return c.Warnings[0].String()
	default:
		return fmt.Sprintf("%s; and %d more: stepbox config show", c.Warnings[0], n-1)
	}
}

// tell says something on the screen that is shown.
func (m *Model) tell(token themes.Token, words string) tea.Cmd {
	if m.bench == nil {
		m.home.Notice = words
		return nil
	}
	return m.bench.Tell(token, words)
}
