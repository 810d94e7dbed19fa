package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

func key(connect Connect) *cobra.Command {
	var allowed bool
	cmd := wrap(connect, "key", "Show the keys that sign the record", cobra.NoArgs, func(c command, _ []string) error {
		keys, err := c.client.Keys(c.ctx)
		if err != nil {
			return err
		}
		if allowed {
			for _, k := range keys {
				fmt.Fprintln(c.out, allowedSigner(k))
			}
			return nil
		}
		return c.print(keys, func(w io.Writer) {
			if len(keys) == 0 {
				fmt.Fprintln(w, "there is no key yet: the first session makes one")
			}
			for _, k := range keys {
				where, until := "in a file", "now"
				if k.InAgent {
					where = "in the ssh-agent"
				}
				if !k.Until.IsZero() {
					until = k.Until.Local().Format(time.DateTime)
				}
				fmt.Fprintf(w, "%s\t%s\tfrom %s\tto %s\n%s\n", k.Fingerprint, where, k.From.Local().Format(time.DateTime), until, k.Public)
			}
		})
	})
	cmd.Long = "Show the keys that sign the record, the one that does now last. The first session makes one, in a file in the\n" +
		"data folder. A key that signs no more stays listed with the time until which it counted."
	cmd.Flags().BoolVar(&allowed, "allowed-signers", false, "print them as ssh-keygen -Y verify -f takes them")
	cmd.AddCommand(rotateKey(connect), useKey(connect))
	return cmd
}

func rotateKey(connect Connect) *cobra.Command {
	var r api.KeyRequest
	cmd := wrap(connect, "rotate", "Sign with a new key from now on", cobra.NoArgs, func(c command, _ []string) error { return c.changeKey(r) })
	cmd.Flags().BoolVar(&r.Lost, "lost", false, "the old key is lost and can't sign the new one")
	return cmd
}

func useKey(connect Connect) *cobra.Command {
	var r api.KeyRequest
	cmd := wrap(connect, "use FINGERPRINT", "Sign with a key of the ssh-agent from now on (ssh-add -l lists them)", cobra.ExactArgs(1), func(c command, args []string) error {
		r.Use = args[0]
		return c.changeKey(r)
	})
	cmd.Flags().BoolVar(&r.Lost, "lost", false, "the old key is lost and can't sign the new one")
	return cmd
}

func (c command) changeKey(r api.KeyRequest) error {
	k, err := c.client.ChangeKey(c.ctx, r)
	return c.say(k, err, "the record is signed by %s from now on", k.Fingerprint)
}

// allowedSigner is a key's line in a file of allowed signers, see ssh-keygen(1).
func allowedSigner(k api.Key) string {
	until := ""
	if !k.Until.IsZero() {
		until = fmt.Sprintf(`,valid-before="%s"`, k.Until.UTC().Add(time.Second).Format(signedAt))
	}
	return fmt.Sprintf(`stepbox namespaces="stepbox",valid-after="%s"%s %s`, k.From.UTC().Format(signedAt), until, k.Public)
}
