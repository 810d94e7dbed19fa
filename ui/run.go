package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/ui/display"
	"stepbox/ui/link"
	"stepbox/ui/state"
)

// Run shows the interface until the person leaves it or ctx is done. Sessions go
// on either way. All goroutines it started have ended when it returns.
func Run(ctx context.Context, o Options) error {
	if o.Client == nil || o.NewTerminal == nil {
		return errors.New("cannot run the interface without a client and a terminal emulator")
	}
	o.In = cmp.Or[io.Reader](o.In, os.Stdin)
	o.Out = cmp.Or[io.Writer](o.Out, os.Stdout)
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	m := New(o)
	defer m.Close()
	if m.err != nil {
		return m.err
	}
	p := &program{Model: m}
	// Nothing is drawn by the library: see package display. Its ticker can't be
	// stopped, but slowed. Signals end ctx: its own handler may wait for ever to tell
	// the loop of one that has ended by then.
	in := o.In
	if f, ok := in.(*os.File); ok {
		in = keyboard{f}
	}
	run := tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(o.Out), tea.WithEnvironment(o.Environ),
		tea.WithoutRenderer(), tea.WithFPS(1), tea.WithoutSignalHandler())
	var err error
	if p.display, err = display.Open(o.In, o.Out, o.Environ, m.Draw, run.Send); err != nil {
		return fmt.Errorf("cannot show the interface: %w", err)
	}
	m.away = p.display.Away
	_, err = run.Run()
	p.display.Close()
	var emptied error
	if err == nil && ctx.Err() == nil { // else what was deleted can still be brought back
		emptied = m.home.Empty(ctx)
	}
	m.Close()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot run the interface: %w", err)
	}
	if m.err != nil {
		return m.err
	}
	if emptied != nil {
		return emptied
	}
	if m.farewell != "" {
		fmt.Fprintln(o.Out, m.farewell)
	}
	return nil
}

// ErrGone says that the interface ended because its terminal did.
var ErrGone = errors.New("the terminal is gone")

// keyboard is a terminal to read keys from. Read by keys it ends only when it is gone,
// which the library would take for a person who presses nothing any more; or it fails, for who
// reads it just when it goes (pts(4)).
type keyboard struct{ *os.File }

func (k keyboard) Read(p []byte) (int, error) {
	n, err := k.File.Read(p)
	if err == io.EOF || errors.Is(err, syscall.EIO) {
		err = ErrGone
	}
	return n, err
}

// Close leaves the session that is shown and waits for what the model started.
func (m *Model) Close() {
	m.cancel()
	m.close()
	m.home.Unwatch()()
	m.links.Wait()
}

// program is the Model as the library runs it, with its display.
type program struct {
	*Model
	display *display.Display

	due   time.Time // when a beat is to be heard; zero: none is
	until time.Time // when no more is needed
}

// A beat is heard again and again for a while after a key. One that is late tells that the
// program stood still, and heard no key meanwhile.
type beat struct{}

const (
	beatEach = state.QuietTime / 8
	beatFor  = 3 * state.QuietTime // a decision is taken a moment after its key
)

func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	began := p.opt.Now()
	if !p.due.IsZero() && p.due.Before(began) {
		p.Deaf(began.Sub(p.due))
	}
	p.Drawn(p.display.Late())
	var cmd tea.Cmd
	switch msg.(type) {
	case beat:
		p.due = time.Time{}
		msg = nil
	case tea.KeyPressMsg, tea.PasteMsg:
		p.until = began.Add(beatFor)
	}
	if msg != nil && !p.display.Update(msg) {
		cmd = p.Model.Update(msg)
	}
	p.display.Refresh()
	now := p.opt.Now()
	p.Deaf(now.Sub(began))
	switch {
	case !p.due.IsZero() && p.due.Before(now):
		p.due = now // what was before it is counted
	case p.due.IsZero() && now.Before(p.until):
		p.due = now.Add(beatEach)
		cmd = tea.Batch(cmd, p.beat)
	}
	return p, cmd
}

func (p *program) beat() tea.Msg {
	if !link.Pause(p.ctx, beatEach) {
		return nil
	}
	return beat{}
}

// View draws nothing: the display does, when it is time.
func (p *program) View() tea.View { return tea.View{} }
