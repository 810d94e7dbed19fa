package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

func grep(connect Connect) *cobra.Command {
	var w wish
	var in string
	var each int
	cmd := wrap(connect, "grep WORD...", "Find what happened in sessions: commands, paths, hosts and what was printed", cobra.MinimumNArgs(1), func(c command, args []string) error {
		q, err := w.query(strings.Join(args, " "))
		if err != nil {
			return err
		}
		if in != "" {
			s, err := c.session(in)
			if err != nil {
				return err
			}
			q.Session = s.ID
		}
		if q.Hits = each; each < 1 {
			return usage("-n is at least 1")
		}
		page, err := c.find(q, -1)
		if err != nil {
			return err
		}
		places := 0
		for _, x := range page.Found { // a session may be called so only
			places += len(x.Hits)
		}
		err = c.print(page.Found, func(w io.Writer) {
			for _, x := range page.Found {
				for _, h := range x.Hits {
					fmt.Fprintln(w, hitLine(x.Session, h))
				}
				if x.More {
					fmt.Fprintf(w, "%s (%d) has more: stepbox grep --in %s -n %d\n", x.Session.Name, x.Session.Number, x.Session.ID, 10*each)
				}
			}
			for _, n := range page.Notes {
				fmt.Fprintln(w, n)
			}
		})
		if err == nil && places == 0 {
			return fmt.Errorf("nothing was found (%w)", ErrSaid)
		}
		return err
	})
	cmd.Long = "Find the places of sessions that have all words, or of sessions that have them in different places, each of those.\n" +
		"The last word may be begun only. \"Words in quotes\" follow each other. The exit code is 1 when there is nothing."
	cmd.Flags().StringVar(&in, "in", "", "in this session alone")
	cmd.Flags().IntVarP(&each, "most", "n", 10, "at most so many places of each session")
	w.flags(cmd)
	return cmd
}

// hitLine says where something was found.
func hitLine(s api.Session, h api.Hit) string {
	at := ""
	if h.Action > 0 {
		at = fmt.Sprintf(" #%d", h.Action)
	}
	d := h.Offset.Truncate(time.Second)
	return fmt.Sprintf("%s (%d)%s +%02d:%02d:%02d %s: %s", s.Name, s.Number, at, int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60, h.Kind, h.Text)
}
