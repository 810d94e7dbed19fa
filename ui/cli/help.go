package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"stepbox/ui/config"
	"stepbox/ui/keys"
	"stepbox/ui/topics"
)

// helpOf is how the help of every command reads. It is plain, so that a pipe,
// a screen reader and a terminal get the same, and the usage line stands as it
// was written: what it says is what the command takes. The flags' texts are broken at
// the width that every terminal has.
func helpOf(c *cobra.Command) string {
	var b strings.Builder
	say := func(when bool, format string, a ...any) {
		if when {
			fmt.Fprintf(&b, format, a...)
		}
	}
	flags, group, about := c.LocalFlags(), c.HasAvailableSubCommands(), cmp.Or(c.Long, c.Short)
	say(about != "", "%s\n", about)
	say(true, "\nUsage:\n  %s", c.UseLine())
	say(group && c.Runnable(), "\n  %s COMMAND [flags]", c.CommandPath())
	say(c.HasExample(), "\n\nExamples:\n%s", c.Example)
	say(group, "\n\nCommands:")
	for _, sub := range c.Commands() {
		say(sub.IsAvailableCommand(), "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
	}
	say(flags.HasAvailableFlags(), "\n\nFlags:\n%s", strings.TrimRightFunc(flags.FlagUsagesWrapped(80), unicode.IsSpace))
	say(group, "\n\n%s COMMAND --help says more of a command.", c.CommandPath())
	if !c.HasParent() {
		var names []string
		for _, t := range topics.All {
			names = append(names, t.Name)
		}
		say(true, "\n%s help TOPIC explains: %s,\n  %s.", c.CommandPath(), strings.Join(names[:5], ", "), strings.Join(names[5:], ", "))
	}
	return b.String() + "\n"
}

// Plain sets how a root command and all below it speak: errors are the
// caller's to print, help is plain text.
func Plain(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), helpOf(c)) })
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStderr(), helpOf(c))
		return err
	})
}

// others are words by which commands go elsewhere, or what they are about.
var others = map[string][]string{
	"ls": {"history", "list", "sessions", "ps"}, "grep": {"history", "search", "find"}, "log": {"history", "events"}, "replay": {"history", "play"},
	"rollback": {"undo", "revert", "restore"}, "diff": {"changes"}, "rm": {"delete", "remove"}, "kill": {"stop", "end"}, "verify": {"integrity", "check"},
}

// Known has a root command, which has all below it by now, refuse words that are none of its
// commands, also where help is asked for; those that are nearly called so are named.
func Known(root *cobra.Command) {
	root.Args, root.SuggestionsMinimumDistance = known, 2 // letters
	for _, c := range root.Commands() {
		c.SuggestFor = others[c.Name()]
	}
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Use, help.Short = "help [TOPIC|COMMAND...]", "Explain a topic, or a command"
		command := help.Run
		help.Run = nil
		help.RunE = func(cmd *cobra.Command, args []string) error {
			if t, ok := topic(args); ok {
				return explain(cmd, root, t)
			}
			command(cmd, args)
			return nil
		}
		help.Args = func(_ *cobra.Command, args []string) error {
			if _, ok := topic(args); ok {
				return nil
			}
			cmd, rest, err := root.Find(args)
			if err != nil {
				return usage("%w", err)
			}
			return known(cmd, rest)
		}
	}
}

// topic is the page that help is asked for.
func topic(args []string) (topics.Topic, bool) {
	if len(args) != 1 {
		return topics.Topic{}, false
	}
	return topics.Find(args[0])
}

// explain prints a page, through the pager on a terminal. A page that is called like a
// command leads to that, too.
func explain(cmd, root *cobra.Command, t topics.Topic) error {
	keys.Use(config.Load(os.Getenv).Keys)
	text := strings.ToUpper(t.Name) + ": " + t.Title + "\n\n" + t.Text()
	if same, _, err := root.Find([]string{t.Name}); err == nil && same != root {
		text += "\n" + same.CommandPath() + " --help lists the flags of the command.\n"
	}
	out, done := cmd.OutOrStdout(), func() error { return nil }
	if isTerminal(out) {
		out, done = page(cmd.Context(), out)
	}
	_, err := io.WriteString(out, text)
	return errors.Join(err, done())
}

func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	words := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		words = "; is it " + strings.Join(near, " or ") + "?"
	}
	return usage("unknown command %q%s", cmd.CommandPath()+" "+args[0], words)
}
