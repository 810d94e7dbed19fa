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
			if err == nil && !force {
				err = c.loses(s)
			}
			if err != nil {
				return err
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

// loses says what would be lost with a session, and how it isn't.
func (c command) loses(listed api.Session) error {
	s, err := c.client.Session(c.ctx, listed.ID) // a list doesn't have all
	if err != nil && listed.State != "" {
		return err
	} else if err != nil {
		s = listed // its row is damaged
	}
	what, how := "", ""
	if n := s.Unapplied; n > 0 {
		what, how = "changes that were never applied and would be lost ("+files(n)+")", "stepbox diff "+s.ID+" shows them, --force removes them"
	}
	if s.Unfetched != "" && what != "" {
		what, how = what+" and ", "stepbox apply "+s.ID+" --commits writes and fetches them, --force removes them"
	} else if s.Unfetched != "" {
		how = "stepbox apply " + s.ID + " --commits fetches it, --force removes it"
	}
	if s.Unfetched != "" {
		what += "what was never fetched and would be lost (" + s.Unfetched + ")"
	}
	switch {
	case s.State == "":
		return fmt.Errorf("what session %s left can't be told, since its row is damaged: stepbox verify --all --repair makes it again, --force removes it", s.ID)
	case what != "":
		return fmt.Errorf("session %s (%d) has %s: %s", s.Name, s.Number, what, how)
	}
	return nil
}
