package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

func remove(connect Connect) *cobra.Command {
	var force bool
	cmd := wrap(connect, "rm SESSION...", "Remove sessions that have ended, with the files that they left", cobra.MinimumNArgs(1), func(c command, args []string) error {
		all, err := c.client.Sessions(c.ctx)
		if err != nil {
			return err
		}
		var chosen []api.Session
		for _, word := range args {
			s, err := Find(all, word)
			if err != nil {
				return err
			}
			if n := s.Unapplied; n > 0 && !force {
				return fmt.Errorf("%s of session %s (%d) were never applied and would be lost: stepbox diff %s shows them, --force removes them", files(n), s.Name, s.Number, s.ID)
			}
			chosen = append(chosen, s)
		}
		var failed error
		for _, s := range chosen {
			err := c.client.Remove(c.ctx, s.ID)
			lost := ""
			if s.Applies > 0 {
				lost = fmt.Sprintf("; %s of it can't be undone any more", paint.Count(s.Applies, "apply", "applies"))
			}
			failed = errors.Join(failed, c.say(s, err, "removed: %s (%d)%s", s.Name, s.Number, lost))
		}
		return failed
	})
	cmd.Long = "Remove sessions that have ended from the record, with the files that they left. They can't be had back.\n" +
		"Contents of files that other sessions may have too are removed by stepbox gc."
	cmd.Flags().BoolVar(&force, "force", false, "also those with changes that were never applied")
	return cmd
}

func collect(connect Connect) *cobra.Command {
	var dry bool
	cmd := wrap(connect, "gc", "Remove contents that no session names any more", cobra.NoArgs, func(c command, _ []string) error {
		got, err := c.client.Collect(c.ctx, dry)
		if err != nil {
			return err
		}
		return c.print(got, func(w io.Writer) {
			verb := "removed"
			if dry {
				verb = "would remove"
			}
			fmt.Fprintf(w, "%s: %s (%s), %s of sessions that are gone\n", verb,
				paint.Count(got.Bodies, "content", "contents"), paint.Bytes(got.Bytes), paint.Count(got.Folders, "folder", "folders"))
		})
	})
	cmd.Long = "Remove contents that no session names any more, after stepbox rm or a session that was cut short.\n" +
		"No session may run meanwhile, nor another Stepbox look at the record."
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	return cmd
}
