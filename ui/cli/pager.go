package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/term"

	"stepbox/ui/config"
)

// Colours of what is printed for reading: the terminal's own, as git has them.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

// paint colours a text, unless it is to stay plain.
func (d *differ) paint(colour, text string) string {
	if d.plain || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[m"
}

// noColour says whether colours aren't wanted. See no-color.org.
func noColour() bool { return os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" }

func isTerminal(readerOrWriter any) bool {
	if a, ok := readerOrWriter.(ascii); ok {
		readerOrWriter = a.Writer
	}
	f, ok := readerOrWriter.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// page sends what is written through the person's pager, less by default, which
// ends at once when all fits on the screen. Without one it goes to out. Done waits
// until the person has left it; who leaves early is no failure.
func page(ctx context.Context, out io.Writer) (w io.Writer, done func() error) {
	line := config.Load(os.Getenv).Pager
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Stdout, cmd.Stderr = terminal(out), os.Stderr
	// What is shown can't have less run or write anything, nor act on the terminal.
	cmd.Env = append(os.Environ(), "LESSSECURE=1")
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	in, err := cmd.StdinPipe()
	if err != nil || line == "cat" || cmd.Start() != nil {
		return out, func() error { return nil }
	}
	w = left{in}
	if _, ok := out.(ascii); ok {
		w = ascii{w}
	}
	return w, func() error {
		_ = in.Close()
		var code *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &code) {
			return err
		}
		return nil
	}
}

// left takes what a pager doesn't want any more.
type left struct{ io.Writer }

func (l left) Write(p []byte) (int, error) {
	n, err := l.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		return len(p), nil
	}
	return n, err
}
