package ui

import (
	"cmp"
	"fmt"
	"path/filepath"

	tea "charm.land/bubbletea/v2"

	"stepbox/themes"
	"stepbox/ui/config"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/state"
)

// themeFile is the name under which the chosen theme is kept.
const themeFile = "theme"

// wanted is the theme that the person wants: the one that is chosen now, that was said,
// or that was chosen in an earlier run.
func (m *Model) wanted() string {
	if m.pick != nil {
		if t, ok := m.pick.Chosen().(intent.Theme); ok {
			return t.Name
		}
	}
	said := m.opt.Config.Theme
	if !m.opt.Config.Said("theme") {
		said = cmp.Or(m.kept, said)
	}
	return cmp.Or(m.chosen, said)
}

// pickTheme offers the themes, the one that is shown first.
func (m *Model) pickTheme() {
	now := cmp.Or(m.wanted(), "auto")
	all := []keys.Binding{keys.Command(now, "as it is", intent.Theme{Name: now})}
	for _, name := range append([]string{"auto"}, themes.All(m.opt.ThemeDir)...) {
		if name != now {
			all = append(all, keys.Command(name, "", intent.Theme{Name: name}))
		}
	}
	m.pick = dialog.NewMenu("Colours", all, func(intent.Intent) string { return "" }, func() state.Target { return state.Target{} })
}

// picking takes what the person does while themes are offered, and says whether it did. What
// is selected is seen at once; esc leaves all as it was.
func (m *Model) picking(msg tea.Msg) bool {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		k := keys.ByLetter(msg)
		b, ok := keys.Find(k, m.pick.Scope())
		if !ok {
			m.pick.Type(k)
			break
		}
		switch i := m.pick.Handle(b.Intent).(type) {
		case intent.Back:
			m.closePick()
		case intent.Run:
			m.chosen = i.Intent.(intent.Theme).Name
			kept, name := m.opt.Kept.Screen(), m.chosen
			m.links.Go(func() { _ = kept.Write(themeFile, name) })
			m.closePick()
		}
	case tea.PasteMsg, tea.MouseMsg: // of what lies below nothing is meant
	default:
		return false
	}
	return true
}

// closePick gives the keys back to what lies below, where they count as after a pause.
func (m *Model) closePick() {
	m.pick = nil
	m.Restart()
}

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
