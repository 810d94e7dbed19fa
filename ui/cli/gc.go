package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

func collect(connect Connect) *cobra.Command {
	var r api.CollectRequest
	var age, size string
	var keep int
	cmd := wrap(connect, "gc", "Remove old sessions, if told to, and contents that no session names any more", cobra.NoArgs, func(c command, _ []string) error {
		since, err := moment(age)
		if err != nil {
			return err
		}
		if age != "" {
			r.OlderThan = max(time.Since(since), 1)
		}
		if r.MaxSize, err = ParseSize(size); err != nil {
			return usage("%w", err)
		}
		if c.given("max-size") {
			r.MaxSize = max(r.MaxSize, 1)
		}
		if c.given("keep") {
			r.Keep = &keep
		}
		return c.collect(r)
	})
	cmd.Long = "Remove contents that no session names any more, after stepbox rm or a session that was cut short, and sessions\n" +
		"that have ended, the oldest first: older ones, more than so many, or as many as it takes to keep to a size. Pinned\n" +
		"ones stay, and those with changes that were never applied, or commits that were never fetched. Contents stay while a session needs them, its forks too.\n" +
		"No session may run meanwhile, nor another Stepbox look at the record."
	f := cmd.Flags()
	f.BoolVar(&r.Dry, "dry-run", false, "only say what would be removed")
	f.StringVar(&age, "older-than", "", "remove sessions that ended longer ago: 12h, 90d, 8w, or before a day, 2026-01-31")
	f.IntVar(&keep, "keep", 0, "remove all sessions but the newest so many")
	f.StringVar(&size, "max-size", "0", "remove sessions until the record takes no more than that: 500M, 10G")
	f.BoolVar(&r.Unapplied, "force", false, "also those with changes that were never applied, or commits that were never fetched, and folders of sessions that the record doesn't know")
	return cmd
}

// collect collects, and says what goes as it goes.
func (c command) collect(r api.CollectRequest) error {
	show, done := progressOn(os.Stderr)
	defer done()
	all := struct {
		api.Collected
		Dropped []api.Dropped `json:"dropped,omitempty"`
	}{}
	for p, err := range c.client.Collect(c.ctx, r) {
		if err == nil && p.Problem != nil {
			err = p.Problem
		}
		switch {
		case err != nil:
			if done(); all.Sessions > 0 && c.json { // what is gone is said all the same
				err = errors.Join(c.print(all, nil), err)
			}
			return err
		case p.Done != nil:
			all.Collected = *p.Done
		case p.Dropped == nil:
			show(fmt.Sprintf("looking at what sessions have: %d of %d", p.Weighed, p.Of))
		case c.json:
			if all.Dropped = append(all.Dropped, *p.Dropped); p.Dropped.Stays == "" {
				all.Sessions++
				all.Freed += p.Dropped.Bytes
			}
		default:
			done()
			fmt.Fprintln(c.out, dropped(*p.Dropped, r.Dry))
		}
	}
	done()
	return c.print(all, func(w io.Writer) {
		verb := "removed"
		if r.Dry {
			verb = "would remove"
		}
		if all.Sessions > 0 {
			fmt.Fprintf(w, "%s: %s (%s); %s are left\n", verb, paint.Count(all.Sessions, "session", "sessions"), paint.Bytes(all.Freed), paint.Bytes(all.Left))
		}
		fmt.Fprintf(w, "%s: %s (%s), %s of sessions that are gone\n", verb,
			paint.Count(all.Bodies, "content", "contents"), paint.Bytes(all.Bytes), paint.Count(all.Folders, "folder", "folders"))
	})
}

// dropped is a line on a session that goes, or stays all the same.
func dropped(d api.Dropped, dry bool) string {
	name := fmt.Sprintf("%s (%d) of %s", d.Name, d.Number, d.At.Local().Format(time.DateOnly))
	if d.Applied {
		d.Why += "; blame won't know what it applied"
	}
	switch {
	case d.Stays != "":
		return fmt.Sprintf("%s stays: %s", name, d.Stays)
	case dry:
		return fmt.Sprintf("%s would go, %s: %s", name, paint.Bytes(d.Bytes), d.Why)
	}
	return fmt.Sprintf("%s is gone, %s: %s", name, paint.Bytes(d.Bytes), d.Why)
}

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
		what, how = append(what, "what was never fetched and would be lost ("+s.Unfetched+")"), "stepbox apply "+s.ID+" --commits fetches it, or says what it can't"
	}
	if len(what) == 0 {
		return nil
	}
	return fmt.Errorf("session %s (%d) has %s: %s, --force removes the session", s.Name, s.Number, strings.Join(what, " and "), how)
}
