package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stepbox/session/api"
	"stepbox/ui/config"
	"stepbox/ui/intent"
	"stepbox/ui/layout"
	"stepbox/ui/paint"
)

// NoArgs refuses arguments as a fault of the command line.
var NoArgs = Args(cobra.NoArgs)

// Terminal says whether a person sits at standard input and output, at a terminal that can
// show screens: a dumb one can't move its cursor.
func Terminal() bool {
	return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// Size is the terminal's, or a usual one when there is none.
func Size() (cols, rows int) {
	if rows, cols, err := pty.Getsize(os.Stdout); err == nil && cols > 0 && rows > 0 {
		return cols, rows
	}
	return 80, 24
}

// PaneSize is the size of the workbench's Terminal on this terminal. An agent
// that starts with it has nothing to draw anew when the workbench opens.
func PaneSize() (cols, rows int) { return paneSize(Size()) }

func paneSize(cols, rows int) (int, int) {
	p := layout.Workbench(layout.Wish{Cols: cols, Rows: rows, Focus: intent.Terminal}).Of(intent.Terminal).Inset(1)
	if p.Empty() {
		return cols, rows
	}
	return p.Dx(), p.Dy()
}

// Words is where words for a person are written: f, or f in ASCII where it is a terminal
// whose person's language isn't in UTF-8. Such a terminal takes parts of letters for
// control characters.
func Words(f *os.File) io.Writer {
	if name, utf8 := config.Language(os.Getenv); name == "" || utf8 || !isTerminal(f) {
		return f
	}
	return ascii{f}
}

// ascii takes any words, and writes them in ASCII.
type ascii struct{ io.Writer }

func (a ascii) Write(p []byte) (int, error) {
	if _, err := io.WriteString(a.Writer, paint.InASCII(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// terminal is w for a program of the person's, which knows their language.
func terminal(w io.Writer) io.Writer {
	if a, ok := w.(ascii); ok {
		return a.Writer
	}
	return w
}

// ErrSaid marks errors that need no more words.
var ErrSaid = errors.New("said")

// PrintError is where errors become words on the terminal.
func PrintError(w io.Writer, err error) {
	if errors.Is(err, ErrSaid) {
		return
	}
	fmt.Fprintf(w, "stepbox: %v\n", err)
	if errors.Is(err, ErrUsage) {
		fmt.Fprintln(w, "stepbox --help lists the commands")
	}
}

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

// browserTime is how long xdg-open may take to fail; with some browsers it lasts until
// they are closed.
const browserTime = 3 * time.Second

// Browser is what opens a page in the person's own browser, nil where there is none.
func Browser(getenv func(string) string) func(ctx context.Context, url string) error {
	program, err := exec.LookPath("xdg-open")
	if err != nil || getenv("DISPLAY")+getenv("WAYLAND_DISPLAY")+getenv("BROWSER") == "" {
		return nil
	}
	return func(ctx context.Context, url string) error {
		p, err := api.ParseWebPage(url)
		if err != nil {
			return fmt.Errorf("cannot open the page: %w", err)
		}
		cmd := exec.Command(program, p.URL)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the screens, and hasn't their terminal
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("cannot open the page: %w", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err = <-ended:
		case <-time.After(browserTime):
		case <-ctx.Done():
		}
		if err != nil {
			return fmt.Errorf("cannot open the page: xdg-open: %w", err)
		}
		return nil
	}
}
