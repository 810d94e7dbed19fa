package ui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/themes"
	"stepbox/ui/paint"
	"stepbox/ui/watch"
)

// stirred says that something in watched folders changed, or that their watch
// began, or that there can't be one: then there is no channel.
type stirred struct {
	again <-chan struct{}
	of    folders
}

// folders are what is watched.
type folders int

const (
	ofThemes folders = iota
	ofList
	ofConfig
)

// watching watches folders, and tells at once that it does.
func watching(ctx context.Context, of folders, dirs ...string) tea.Cmd {
	return func() tea.Msg {
		if len(dirs) > 0 { // a watch of nothing would take one of the few that there are
			if ch, err := watch.Folders(ctx, dirs...); err == nil {
				return stirred{ch, of}
			}
		}
		return stirred{nil, of} // themes stay, and the list is read every second
	}
}

// stirred reads again what changed, and waits for the next change.
func (m *Model) stirred(s stirred) tea.Cmd {
	var read tea.Cmd
	switch {
	case s.of == ofThemes:
		read = m.restyle()
	case s.of == ofConfig:
		read = func() tea.Msg { return reloaded{m.opt.Reload()} }
	case m.bench == nil && !m.beginning:
		m.list.watched = s.again != nil
		if m.list.old = m.opt.Now().Sub(m.list.read) < tick; !m.list.old {
			m.list.read = m.opt.Now()
			read = m.home.Refresh()
		}
	}
	if s.again == nil {
		return read
	}
	return tea.Batch(read, func() tea.Msg {
		if _, open := <-s.again; !open {
			return nil
		}
		return s
	})
}

func (m *Model) watchThemes() tea.Cmd {
	if m.opt.ThemeDir == "" {
		return nil
	}
	return watching(m.ctx, ofThemes, m.opt.ThemeDir)
}

// restyle takes the theme as it is now. From a broken file the last good one
// stays, and that is said until the file is mended.
func (m *Model) restyle() tea.Cmd {
	words := ""
	if err := m.retheme(); err != nil {
		words, _, _ = strings.Cut(err.Error(), "\n") // more of it shows the file
		words = paint.Clean(words)
	}
	if words == m.theme {
		return nil
	}
	m.theme, m.home.Notice = words, words
	if m.bench == nil {
		return nil
	}
	if words == "" {
		return m.bench.Tell(themes.OK, "the theme can be read again")
	}
	return m.bench.Tell(themes.Warn, words)
}

// listing is how the list of sessions is kept as it is.
type listing struct {
	leave   context.CancelFunc // ends the watch of its folders
	watched bool               // there is one
	read    time.Time          // when it was read last
	old     bool               // it changed too soon after that: the clock has it read again
}

// longest is how long the list is believed, though nothing in its folders changed:
// a supervisor that was killed changes nothing there.
const longest = 10 * time.Second

// goHome shows the list and keeps it as it is until it is left.
func (m *Model) goHome() tea.Cmd {
	ctx, leave := context.WithCancel(m.ctx)
	m.list.leave = leave
	m.list.read = m.opt.Now()
	return tea.Batch(m.home.Watch(), m.home.Refresh(), watching(ctx, ofList, m.opt.Folders...))
}

// lookAgain is called every second.
func (m *Model) lookAgain() tea.Cmd {
	if m.list.watched && !m.list.old && m.opt.Now().Sub(m.list.read) < longest {
		return nil
	}
	m.list.read, m.list.old = m.opt.Now(), false
	return m.home.Refresh()
}
