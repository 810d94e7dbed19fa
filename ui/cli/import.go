package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"stepbox/session/api"
)

func imports(connect Connect) *cobra.Command {
	return wrap(connect, "import FILE", "Make a session of a terminal recording (asciicast), to replay and search it", cobra.ExactArgs(1), func(c command, args []string) error {
		f, err := os.OpenFile(args[0], os.O_RDONLY|unix.O_NONBLOCK, 0) // of a pipe that nobody writes there is nothing to wait for
		if err != nil {
			return fmt.Errorf("cannot import: %w", err)
		}
		defer f.Close()
		name, err := filepath.Abs(args[0])
		if err != nil {
			return fmt.Errorf("cannot import %q: %w", args[0], err)
		}
		got, err := c.client.Import(c.ctx, name, f)
		if err != nil {
			return fmt.Errorf("cannot import %q: %w", api.Escape(args[0]), err)
		}
		return c.print(got, func(w io.Writer) {
			for _, s := range got.Skipped {
				fmt.Fprintf(w, "not as in the file: %s\n", s)
			}
			fmt.Fprintf(w, "imported as session %s (%d); stepbox replay %s plays it\n", got.Session.Name, got.Session.Number, got.Session.ID)
		})
	})
}
