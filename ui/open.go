package ui

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/outside"
	"stepbox/ui/paint"
	"stepbox/ui/screen/workbench"
)

// prepared is a program of the person's that is ready to run, returned that it has.
type (
	prepared struct {
		program *outside.Program
		err     error
	}
	returned struct{ err error }
)

// open reads a file or a diff of a session, for the person's editor or pager.
func (m *Model) open(session string, r workbench.Reading) tea.Cmd {
	client, ctx, editor, pager := m.opt.Client, m.ctx, m.opt.Config.Editor, m.opt.Config.Pager
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, request)
		defer cancel()
		text, command := outside.Text{Name: r.Name, Line: r.Line}, editor
		var in io.ReadCloser
		var err error
		if r.Patch != nil {
			in, err = client.Patch(ctx, session, *r.Patch)
			text.Name, command = "changes.diff", pager
		} else {
			in, err = client.File(ctx, session, r.Key, r.At)
		}
		if err != nil {
			return prepared{err: err}
		}
		defer in.Close()
		if text.Reader = in; r.Patch != nil {
			shown := escaped(in) // a pager may pass what a terminal obeys
			defer shown.Close()
			text.Reader = shown
		}
		p, err := outside.Open(command, text)
		return prepared{p, err}
	}
}

// escaped is a text with what a terminal would obey, as escapes to be seen. Whoever reads
// it closes it: it may be longer than what is read.
func escaped(in io.Reader) io.ReadCloser {
	out, w := io.Pipe()
	go func() {
		lines := bufio.NewReader(in)
		for {
			line, err := lines.ReadString('\n')
			end := ""
			if strings.HasSuffix(line, "\n") {
				end = "\n"
			}
			if _, werr := io.WriteString(w, api.EscapeLine(line)+end); werr != nil {
				return
			}
			if err != nil {
				w.CloseWithError(err)
				return
			}
		}
	}()
	return out
}

// afterPrepare has the program run, on the terminal that the screens leave to it.
func (m *Model) afterPrepare(p prepared) tea.Cmd {
	if p.err != nil {
		return m.tell(themes.Warn, "can't open it: "+paint.Failed(p.err))
	}
	return tea.Exec(&guest{program: p.program, away: m.away}, func(err error) tea.Msg { return returned{err} })
}

// afterReturn says what was wrong with it. Keys pressed meanwhile were for it.
func (m *Model) afterReturn(r returned) tea.Cmd {
	m.Restart()
	if r.err != nil && m.ctx.Err() == nil {
		return m.tell(themes.Warn, paint.Clean(fmt.Sprint(r.err)))
	}
	return nil
}

// guest is another program on the person's terminal.
type guest struct {
	program *outside.Program
	away    func(func() error) error
	in, out *os.File
}

func (g *guest) Run() error {
	defer g.program.Close()
	if g.in == nil || g.out == nil {
		return fmt.Errorf("cannot open it: this isn't a terminal")
	}
	return g.away(func() error { return g.program.Run(g.in, g.out) })
}

func (g *guest) SetStdin(r io.Reader) {
	if k, ok := r.(keyboard); ok {
		g.in = k.File
	}
}

func (g *guest) SetStdout(w io.Writer) { g.out, _ = w.(*os.File) }
func (g *guest) SetStderr(io.Writer)   {}

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
