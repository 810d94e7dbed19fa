package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
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
	cmd.Flags().BoolVar(&r.Dry, "dry-run", false, "only say what would be removed")
	cmd.Flags().StringVar(&age, "older-than", "", "remove sessions that ended longer ago: 12h, 90d, 8w, or before a day, 2026-01-31")
	cmd.Flags().IntVar(&keep, "keep", 0, "remove all sessions but the newest so many")
	cmd.Flags().StringVar(&size, "max-size", "0", "remove sessions until the record takes no more than that: 500M, 10G")
	cmd.Flags().BoolVar(&r.Unapplied, "force", false, "also those with changes that were never applied, or commits that were never fetched, and folders of sessions that the record doesn't know")
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
