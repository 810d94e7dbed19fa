package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
			if force && len(args) == 1 && word != "" && api.CodeOf(err) == api.CodeNotFound { // its row may be gone
				s, err = api.Session{ID: word, Name: word}, nil
			}
			switch whole := []string{s.Name, s.ID, fmt.Sprint(s.Number)}; {
			case err != nil:
				return err
			case !slices.Contains(whole, word):
				return usage("no session is %s, though %s (%d) begins so: name what is to go in full", api.Escape(word), s.Name, s.Number)
			case !force:
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
func (c command) loses(s api.Session) error {
	if s.State == "" {
		return fmt.Errorf("what session %s left can't be told, since its row is damaged: stepbox verify --all --repair makes it again, --force removes it", s.ID)
	}
	s, err := c.client.Session(c.ctx, s.ID) // a list doesn't have all
	if err != nil {
		return err
	}
	var what []string
	how := "stepbox diff " + s.ID + " shows them"
	if n := s.Unapplied; n > 0 {
		what = append(what, "changes that were never applied and would be lost ("+paint.Files(n)+")")
	}
	if s.Undone != "" {
		what, how = append(what, "what it put back of what it had committed, and didn't commit ("+s.Undone+")"), "stepbox resume "+s.ID+" -- git commit -a commits it"
	}
	if s.Unfetched != "" {
		what, how = append(what, "what was never fetched and would be lost ("+s.Unfetched+")"), "stepbox apply "+s.ID+" --commits fetches it"
	}
	if len(what) == 0 {
		return nil
	}
	return fmt.Errorf("session %s (%d) has %s: %s, --force removes the session", s.Name, s.Number, strings.Join(what, " and "), how)
}
