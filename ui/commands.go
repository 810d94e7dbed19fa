package ui

import (
	"context"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/config"
	"stepbox/ui/intent"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/screen/workbench"
)

// tick is the clock's next message.
func (m *Model) tick() tea.Cmd {
	return func() tea.Msg {
		if !link.Pause(m.ctx, tick) {
			return nil
		}
		return clock{}
	}
}

// find reads what is known of a session before it is joined.
func (m *Model) find(o opened) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, request)
		defer cancel()
		o.session, o.err = m.opt.Client.Session(ctx, o.id)
		o.shapes = m.opt.Kept.Layout().Shapes()
		return o
	}
}

// start starts a session, or another one.
func (m *Model) start(f func(context.Context) (string, error)) tea.Cmd {
	m.home.Starting = true
	return func() tea.Msg {
		id, err := f(m.ctx)
		return started{id, err}
	}
}

// resume goes on over the files of a session.
func (m *Model) resume(id string) tea.Cmd {
	return m.start(func(ctx context.Context) (string, error) { return m.opt.Resume(ctx, id) })
}

// join opens the workbench of a session.
func (m *Model) join(o opened) tea.Cmd {
	m.home.Opening, m.beginning = false, false
	if o.err != nil {
		if o.id == m.opt.Session {
			// Asked for on the command line: there is nothing else to show.
			m.err = fmt.Errorf("cannot open session %q: %w", o.id, o.err)
			return tea.Quit
		}
		words := o.err.Error()
		var p *api.Problem
		if errors.As(o.err, &p) {
			words = p.Message
		}
		m.home.Notice = "can't open it: " + paint.Clean(words)
		return nil
	}
	m.close()
	m.list.leave()
	m.links.Go(m.home.Unwatch())
	m.home.Notice = ""
	may := m.opt.Config.Copies
	if _, known := m.copies[o.id]; !known && (may == config.Allow || may == config.Deny) {
		m.copies[o.id] = may == config.Allow
	}
	m.bench = workbench.New(workbench.Config{
		Client: m.opt.Client,
		Link:   link.Open(m.ctx, m.opt.Client, o.id, m.opt.NewTerminal),
		Now:    m.opt.Now, Known: o.session, At: o.at, Words: o.words, Watching: m.opt.Watching, Kept: m.opt.Kept,
		Layout: m.opt.Config.Layout, Shapes: o.shapes, Copies: m.copies, Then: o.then, NoTour: m.opt.NoTour,
		Key: m.key, Pressed: m.pressed,
		Method: func() ansi.Method { return m.method },
		Signs:  func() paint.Signs { return m.palette.Signs },
		Copy:   m.copy, Open: m.open,
		Here: m.opt.Here, Export: m.opt.Export, Save: m.opt.Save, Browse: m.opt.Browse, CanResume: m.opt.Resume != nil, CanFork: m.opt.Fork != nil,
	})
	if m.notify.focus == elsewhere {
		m.bench.Window(false)
	}
	if r := m.opt.Replay; r != nil && o.id == m.opt.Session {
		m.opt.Replay = nil // the first time alone
		m.bench.ReplayFrom(r.At, r.Speed)
	}
	if _, replay := o.then.(intent.Replay); replay {
		m.bench.ReplayFrom("", 1)
	}
	cmd := tea.Batch(m.bench.Init(), m.bench.Resize(m.cols, m.rows))
	if words := m.unsaid; words != "" {
		m.unsaid = ""
		cmd = tea.Batch(cmd, m.bench.Tell(themes.Warn, words))
	}
	return cmd
}
