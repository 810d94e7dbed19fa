package cli

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

func checkout(connect Connect) *cobra.Command {
	var into string
	cmd := wrap(connect, "checkout SESSION[@MOMENT] [PATH...]", "Write the project as a session saw it at a moment into a new folder", cobra.MinimumNArgs(1), func(c command, args []string) error {
		s, at, err := c.sessionAt(args[0], false)
		if err != nil {
			return err
		}
		r := api.CheckoutRequest{At: api.Moment(at)}
		for _, a := range args[1:] {
			p, err := inProject(a)
			if err != nil {
				return err
			}
			r.Paths = append(r.Paths, []byte(p))
		}
		if into == "" {
			into = strings.ReplaceAll(s.Name, "/", "-") + "@" + at
			into = strings.TrimSuffix(into, "@")
		}
		folder, err := filepath.Abs(into)
		if err != nil {
			return fmt.Errorf("cannot tell the folder %q: %w", into, err)
		}
		r.Into = []byte(folder)
		got, err := c.client.Checkout(c.ctx, s.ID, r)
		if err != nil {
			return err
		}
		return c.print(got, func(w io.Writer) {
			fmt.Fprintf(w, "wrote %s, %d folders and %d links to %s\n", paint.Files(got.Files), got.Folders, got.Links, got.Into)
			printInexact(w, got.Inexact, got.More)
		})
	})
	cmd.Long = "Write the project as a session saw it at a moment, or what is at some paths of it, into a folder that is empty\n" +
		"or not there yet (by default one named after the session, here). MOMENT is 12 for after action 12, 12^ for\n" +
		"before it, +1h2m since the start, start or end. What can't be had as it was is named, and isn't written; git's\n" +
		"own folders and files that are hidden from the agent never are."
	cmd.Example = "  stepbox checkout fix-tests@12^\n  stepbox checkout 7@start --into /tmp/before src go.mod"
	cmd.Flags().StringVar(&into, "into", "", "the folder to write")
	return cmd
}

// printInexact lists what isn't as it was.
func printInexact(w io.Writer, list []api.Trouble, more int) {
	for _, g := range list {
		name := cmp.Or(g.Path, "the project")
		fmt.Fprintf(w, "not as it was: %s: %s\n", name, g.Why)
	}
	if more > 0 {
		fmt.Fprintf(w, "not as they were: %s more\n", paint.Files(more))
	}
}

func compare(connect Connect) *cobra.Command {
	var d differ
	cmd := wrap(connect, "compare SESSION[@MOMENT] SESSION[@MOMENT]", "Show how the projects of two sessions, or of one at two moments, differ", cobra.ExactArgs(2), func(c command, args []string) error {
		a, at, err := c.sessionAt(args[0], false)
		if err != nil {
			return err
		}
		b, then, err := c.sessionAt(args[1], false)
		if err != nil {
			return err
		}
		d.command = c
		all := c.client.Compare(c.ctx, a.ID, api.Moment(at), b.ID, api.Moment(then))
		if c.json {
			return d.asJSON(all)
		}
		return d.shown(true, func(int) error {
			if d.screen {
				return d.read(all)
			}
			p, err := c.client.ComparePatch(c.ctx, a.ID, api.Moment(at), b.ID, api.Moment(then), d.paths)
			if err != nil {
				return err
			}
			return copyLines(p, d.out)
		})
	})
	cmd.Long = "Show how what one session sees of its project differs from what another does: two forks, a fork and what it was\n" +
		"forked from. Git's own folders aren't compared. Elsewhere than on a terminal it is a patch that git apply takes."
	cmd.Example = "  stepbox compare fork-a fork-b\n  stepbox compare fix-tests@12 fix-tests"
	cmd.Flags().StringArrayVar(&d.paths, "path", nil, "only paths that match this pattern, as src/**; may be repeated")
	return cmd
}
