package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
)

// Run shows the interface until the person leaves it or ctx is done. Sessions go
// on either way. All goroutines it started have ended when it returns.
func Run(ctx context.Context, o Options) error {
	if o.Client == nil || o.NewTerminal == nil {
		return errors.New("cannot run the interface without a client and a terminal emulator")
	}
	m := New(o)
	defer m.Close()
	if err := m.Err(); err != nil {
		return err
	}
	opts := []tea.ProgramOption{tea.WithContext(ctx)}
	if o.In != nil {
		opts = append(opts, tea.WithInput(o.In))
	}
	if o.Out != nil {
		opts = append(opts, tea.WithOutput(o.Out))
	}
	if o.Environ != nil {
		opts = append(opts, tea.WithEnvironment(o.Environ))
	}
	_, err := tea.NewProgram(m, opts...).Run()
	m.Close()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = nil // asked to leave
	}
	if errors.Is(err, tea.ErrInterrupted) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("cannot run the interface: %w", err)
	}
	if m.err != nil {
		return m.err
	}
	if m.farewell != "" && !o.NoFarewell {
		var out io.Writer = os.Stdout
		if o.Out != nil {
			out = o.Out
		}
		fmt.Fprintln(out, m.farewell)
	}
	return nil
}

// Close leaves the session that is shown and waits for what the model started.
func (m *Model) Close() {
	m.cancel()
	m.close()
	m.links.Wait()
}
