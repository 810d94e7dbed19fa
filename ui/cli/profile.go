package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// profile is the command on profiles, with all that are below it.
func profile(rules Connect) *cobra.Command {
	cmd := &cobra.Command{
		Use: "profile", Short: "Say what is known about the kinds of agents",
		Long: "A profile says of one kind of agent how it is recognised, which variables and hosts it needs, and how it runs\n" +
			"commands. Yours are files in the folder profiles beside your policy.yaml, and go over\n" +
			"those that are built in. See docs/profiles.md.",
		Args: known, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2 // letters
	cmd.AddCommand(profileList(rules), profileShow(rules))
	return cmd
}

func profileList(connect Connect) *cobra.Command {
	return wrap(connect, "ls", "List the profiles, and where each is from", cobra.NoArgs, func(c command, _ []string) error {
		all, err := c.client.Profiles(c.ctx)
		if err != nil {
			return err
		}
		return c.print(all, func(w io.Writer) {
			for _, p := range all {
				from := cmp.Or(short(p.File), "built-in")
				if p.Replaces {
					from += ", in place of the built-in"
				}
				if p.Problem != "" {
					from, p.Title = p.Problem, "can't be used"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, p.Title, from)
			}
		})
	})
}

func profileShow(connect Connect) *cobra.Command {
	cmd := wrap(connect, "show NAME", "Print a profile: in words, and the file that is in force", cobra.ExactArgs(1), func(c command, args []string) error {
		p, err := c.client.Profile(c.ctx, args[0])
		return printed(c, p, err, printProfile)
	})
	cmd.Long = "Print what is known about one kind of agent, in words as comments, and then the file that says so: all of it is a\n" +
		"file to begin one of your own with."
	return cmd
}

func printProfile(w io.Writer, p api.Profile) {
	say := func(what string, list []string) {
		for _, x := range list {
			fmt.Fprintf(w, "# %-12s %s\n", what, x)
			what = ""
		}
	}
	say("profile", []string{p.Name + ", " + cmp.Or(short(p.File), "built-in")})
	say("recognises", p.Recognised)
	say("home", []string{p.Home})
	say("sets", p.Set)
	say("passes", p.Passed)
	say("wants", p.Wanted)
	if len(p.Wanted) > 0 {
		say("", []string{"(each passes with --env NAME)"})
	}
	if p.SignIn != "" {
		say("signs in", []string{p.SignIn})
	}
	say("told", p.Args)
	say("reaches", p.Hosts)
	say("is denied", p.Refused)
	say("flags", p.Prompts)
	if len(p.Prompts) > 0 {
		say("", []string{"(these turn off its own questions or sandbox: give them if you like, Stepbox's stay)"})
	}
	say("wrappers", []string{paint.Count(p.Wrappers, "way", "ways") + " of running commands that are known"})
	fmt.Fprintln(w)
	for line := range strings.Lines(p.Text) {
		fmt.Fprintln(w, api.Escape(strings.TrimSuffix(line, "\n")))
	}
}
