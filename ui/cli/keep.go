package cli

import (
	"errors"
	"fmt"

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
			var none *api.Problem
			if force && len(args) == 1 && word != "" && errors.As(err, &none) && none.Code == api.CodeNotFound { // its row may be gone
				s, err = api.Session{ID: word, Name: word}, nil
			}
			if err != nil {
				return err
			}
			if n := s.Unapplied; n > 0 && !force {
				return fmt.Errorf("session %s (%d) has changes that were never applied and would be lost (%s): stepbox diff %s shows them, --force removes them", s.Name, s.Number, files(n), s.ID)
			}
			if s.Unfetched != "" && !force {
				return fmt.Errorf("session %s (%d) has what was never fetched and would be lost (%s): stepbox apply %s --commits fetches it, --force removes it", s.Name, s.Number, s.Unfetched, s.ID)
			}
			if s.State == "" && !force {
				return fmt.Errorf("what session %s left can't be told, since its row is damaged: stepbox verify --all --repair makes it again, --force removes it", s.ID)
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
	cmd.Flags().BoolVar(&force, "force", false, "also those with changes that were never applied, and with commits that were never fetched")
	return cmd
}
