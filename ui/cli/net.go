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

// onPort makes a command on a port of a session's.
func onPort(connect Connect, use, short string, f func(c command, s api.Session, p api.Publishing) error) *cobra.Command {
	return wrap(connect, use, short, cobra.RangeArgs(1, 2), func(c command, args []string) error {
		word, last := apart(args)
		p, err := api.ParsePort(last, true)
		if err != nil {
			return usage("%w", err)
		}
		s, err := c.session(word)
		if err != nil {
			return err
		}
		return f(c, s, p)
	})
}

func publish(connect Connect) *cobra.Command {
	var exactly bool
	var during time.Duration
	cmd := onPort(connect, "publish [SESSION] PORT[:HOSTPORT]", "Reach a server of a session at a port of this machine's localhost", func(c command, s api.Session, p api.Publishing) error {
		if during < 0 {
			return usage("--for %s: use a time like 10m, or 0 for as long as the session runs", during)
		}
		p.Exactly, p.For = exactly, during
		out, err := c.client.Publish(c.ctx, s.ID, p)
		taken := ""
		if out.At != p.At {
			taken = fmt.Sprintf(" (port %d of this machine is taken)", p.At)
		}
		return c.say(out, err, "port %d of %s: %s%s", out.Port, s.Name, out.URL(), taken)
	})
	cmd.Long = "Reach a TCP server that runs in a session at a port of this machine's 127.0.0.1: the same, or the next free\n" +
		"one. It ends with the session, by unpublish, or after --for. What the server answers is the agent's."
	cmd.Example = "  stepbox publish fix-tests 3000\n  stepbox publish 3000:8080 --for 10m"
	cmd.Flags().BoolVar(&exactly, "exactly", false, "fail where that port is taken, as for a sign-in that leads back to it")
	cmd.Flags().DurationVar(&during, "for", 0, "end it after this long; 0: when the session ends")
	return cmd
}

func unpublish(connect Connect) *cobra.Command {
	return onPort(connect, "unpublish [SESSION] PORT", "End what publish began", func(c command, s api.Session, p api.Publishing) error {
		_, err := c.client.Unpublish(c.ctx, s.ID, p.Port)
		return c.say(p, err, "port %d of %s isn't published any more", p.Port, s.Name)
	})
}
