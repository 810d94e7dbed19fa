package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

func export(connect Connect) *cobra.Command {
	var sel api.Selection
	var format, file string
	cmd := onSession(connect, command.toRead, "export [SESSION]", "Write a session's changes as a patch that git apply takes", func(c command, s api.Session) error {
		if format != "patch" {
			return fmt.Errorf("%w: %q is no format; there is: patch", ErrUsage, format)
		}
		r := api.PatchRequest{Selection: sel}
		if file != "" && file != "-" {
			return toFile(file, func(w io.Writer) error { return copyPatch(c, s, r, w) })
		}
		if isTerminal(c.out) {
			return fmt.Errorf("%w: a patch has contents as they are, which may not be fit for a terminal; name a file with -o, or use stepbox diff", ErrUsage)
		}
		return copyPatch(c, s, r, c.out)
	})
	cmd.Flags().StringVar(&format, "format", "patch", "what is written: patch")
	cmd.Flags().StringVarP(&file, "output", "o", "", "the file to write; - is standard output")
	cmd.Flags().IntSliceVar(&sel.Actions, "action", nil, "only what this action changed; may be repeated")
	cmd.Flags().IntSliceVar(&sel.Without, "without", nil, "not what this action changed; may be repeated")
	cmd.Flags().StringArrayVar(&sel.Globs, "path", nil, "only paths that match this pattern, as src/**; may be repeated")
	return cmd
}

// ToPatch writes all that a session changed as a patch, to a new file in this
// folder that has its name, and returns the file's.
func ToPatch(ctx context.Context, client *api.Client, s api.Session) (string, error) {
	for n := 1; ; n++ {
		file := cmp.Or(s.Name, s.ID) + ".patch"
		if n > 1 {
			file = fmt.Sprintf("%s-%d.patch", cmp.Or(s.Name, s.ID), n)
		}
		if _, err := os.Lstat(file); err == nil {
			continue // someone's, and it stays
		}
		return file, toFile(file, func(w io.Writer) error {
			return copyPatch(command{ctx: ctx, client: client}, s, api.PatchRequest{}, w)
		})
	}
}

// toFile has a file written whole or not at all, but for what the record lost.
func toFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".stepbox-*")
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	defer os.Remove(f.Name()) // renamed by then, if all went well
	defer f.Close()
	out := bufio.NewWriter(f)
	err = write(out)
	if lost := lostError(""); err != nil && !errors.As(err, &lost) {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return err
}
