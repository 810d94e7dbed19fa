package cli

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/find"
)

func network(connect Connect) *cobra.Command {
	var follow bool
	var line *string
	cmd := onSession(connect, command.toRead, "net [SESSION]", "List what a session's agent tried to reach", func(c command, s api.Session) error {
		f := filter{Filter: find.Parse(*line)}
		if !follow {
			all, err := c.client.Attempts(c.ctx, s.ID)
			for i := 0; i < len(all) && err == nil; i++ {
				if f.hasAttempt(&all[i]) {
					err = c.attempt(s, all[i])
				}
			}
			return err
		}
		for e, err := range c.client.EventsOf(c.ctx, s.ID, "attempt", 0) {
			if err == nil && e.Attempt != nil && e.Kind != "attempt.changed" && f.hasAttempt(e.Attempt) {
				err = c.attempt(s, *e.Attempt)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the session ends")
	line = filterFlag(cmd)
	return cmd
}

// attempt writes one.
func (c command) attempt(s api.Session, a api.Attempt) error {
	at := a.At.Sub(s.StartedAt).Round(10 * time.Millisecond)
	if c.json {
		return values(c.out).Encode(a)
	}
	who := a.Program
	if a.Action != 0 {
		who = fmt.Sprintf("#%d %s", a.Action, who)
	}
	rule := a.Rule
	if a.Verdict == api.Ask && a.Open {
		rule = fmt.Sprintf("waits for an answer: stepbox allow %s %s", s.ID, a.Pattern())
	}
	if a.Credential != "" {
		rule += fmt.Sprintf("; looked into for the credential %s, %d requests", a.Credential, a.Requests)
	}
	_, err := fmt.Fprintln(c.out, strings.TrimRight(fmt.Sprintf("%10s  %-5s  %-4s %-40s %s  %s  %s", at, a.Verdict, a.Protocol, destination(a), who, rule, a.Failure), " "))
	for _, r := range a.Refusals {
		if err == nil {
			_, err = fmt.Fprintf(c.out, "%10s  refused %s %s: %s\n", "", r.Method, r.Path, r.Why)
		}
	}
	return err
}

// destination is where an attempt leads.
func destination(a api.Attempt) string {
	if a.Port == 0 {
		return a.Host()
	}
	return net.JoinHostPort(a.Host(), strconv.Itoa(a.Port))
}
