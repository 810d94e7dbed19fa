package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

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
