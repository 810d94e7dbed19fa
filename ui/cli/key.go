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
	cmd := wrap(connect, "key", "Show the key that signs the record", cobra.NoArgs, func(c command, _ []string) error {
		k, err := c.client.Key(c.ctx)
		if err != nil {
			return err
		}
		if allowed {
			if k.Public != "" {
				fmt.Fprintln(c.out, allowedSigner(k))
			}
			return nil
		}
		return c.print(k, func(w io.Writer) {
			if k.Public == "" {
				fmt.Fprintln(w, "there is no key yet: the first session makes one")
				return
			}
			fmt.Fprintf(w, "%s\tfrom %s\n%s\n", k.Fingerprint, k.From.Local().Format(time.DateTime), k.Public)
		})
	})
	cmd.Long = "Show the key that signs the record. The first session makes it, in the data folder."
	cmd.Flags().BoolVar(&allowed, "allowed-signers", false, "print it as ssh-keygen -Y verify -f takes it")
	return cmd
}

// allowedSigner is a key's line in a file of allowed signers, see ssh-keygen(1).
func allowedSigner(k api.Key) string {
	return fmt.Sprintf(`stepbox namespaces="stepbox",valid-after="%s" %s`, k.From.UTC().Format(signedAt), k.Public)
}
