package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// NoArgs refuses arguments as a fault of the command line.
var NoArgs = usageArgs(cobra.NoArgs)

// Args bounds the number of arguments; a wrong one is a fault of the command line.
func Args(f cobra.PositionalArgs) cobra.PositionalArgs { return usageArgs(f) }

// Terminal says whether a person sits at standard input and output.
func Terminal() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// Size is the terminal's, or a usual one when there is none.
func Size() (cols, rows int) {
	if cols, rows, err := term.GetSize(int(os.Stdout.Fd())); err == nil && cols > 0 && rows > 0 {
		return cols, rows
	}
	return 80, 24
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
