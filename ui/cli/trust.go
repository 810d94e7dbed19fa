package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

// policyTrust confirms what a project's policy allows.
func policyTrust(connect Connect) *cobra.Command {
	var yes, forget bool
	var hash string
	cmd := wrap(connect, "trust [FOLDER]", "Look at the policy that comes with a project, and let hold what it allows", cobra.MaximumNArgs(1), func(c command, args []string) error {
		folder, err := real(optional(args))
		if err != nil {
			return err
		}
		if forget {
			p, err := c.client.Distrust(c.ctx, folder)
			return c.say(p, err, "not trusted: what %s allows doesn't hold any more", projectPolicy(p))
		}
		p, err := c.client.ProjectPolicy(c.ctx, folder)
		switch {
		case err != nil:
			return err
		case p.Problem != "":
			return api.Problemf(api.CodeInvalid, "%s", p.Problem)
		case p.Hash == "":
			return api.Problemf(api.CodeNotFound, "%s has no .stepbox.yaml", api.Escape(p.Folder))
		case p.Trusted:
			return c.say(p, nil, "%s is trusted already (%.12s)", projectPolicy(p), p.Hash)
		case hash != "" && hash != p.Hash:
			return api.Problemf(api.CodeStale, "%s is another by now (%s)", projectPolicy(p), p.Hash)
		case c.json && !yes && hash == "": // it is looked at, and then confirmed by its hash
			return c.say(p, nil, "")
		}
		if !yes && hash == "" {
			texts(c.stderr(), p)
			if err := c.ask("Let hold what it allows, as long as it says just this?"); err != nil {
				return err
			}
		}
		p, err = c.client.Trust(c.ctx, api.TrustRequest{Folder: p.Folder, Hash: p.Hash})
		return c.say(p, err, "trusted: %s as it is now (%.12s)", projectPolicy(p), p.Hash)
	})
	f := cmd.Flags()
	f.BoolVar(&yes, "yes", false, "without being shown and asked")
	f.StringVar(&hash, "hash", "", "without being asked, if this is still its hash (from --json)")
	f.BoolVar(&forget, "forget", false, "don't trust it any more, however it is")
	return cmd
}

func projectPolicy(p api.ProjectPolicy) string {
	return "the policy of " + api.Escape(p.Folder)
}

// texts shows what a policy says, in printable characters.
func texts(w io.Writer, p api.ProjectPolicy) {
	for _, f := range p.Files {
		fmt.Fprintf(w, "%s\n", f.Path)
		for line := range strings.Lines(f.Text) {
			fmt.Fprintf(w, "  %s\n", api.Escape(strings.TrimSuffix(line, "\n")))
		}
	}
	fmt.Fprintf(w, "hash %s\n", p.Hash)
}
