package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

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
