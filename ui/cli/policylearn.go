package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

func policyLearn(connect Connect) *cobra.Command {
	var past pastFlags
	var write string
	var times int
	cmd := wrap(connect, "learn", "Propose rules from what you answered in recorded sessions", cobra.NoArgs, func(c command, _ []string) error {
		var to api.Extent
		switch write {
		case "":
		case "user":
			to = api.ExtentAlways
		case "project":
			to = api.ExtentProject
		default:
			return fmt.Errorf("%w: --write is user or project, not %q", ErrUsage, write)
		}
		of, err := past.of(c)
		if err != nil {
			return err
		}
		learned, err := pastDone(c.client.LearnPolicy(c.ctx, api.PolicyLearn{PastOf: of, Times: times}))
		if err != nil {
			return err
		}
		if to == "" {
			return c.print(learned, func(w io.Writer) { printLearned(w, learned) })
		}
		return c.keepLearned(learned, to, past.folder)
	})
	cmd.Long = "Propose rules from what you answered in this folder's recorded sessions: what was approved at least twice and never\n" +
		"denied is to be allowed, and the other way round. They are printed as a file of rules, each with its evidence, to be\n" +
		"read before it is used; --write puts them into your policy.yaml, or the project's .stepbox.yaml. Only answers of\n" +
		"people count: what rules or watch mode let through teaches nothing."
	cmd.Example = "  stepbox policy learn --since 30d > learned.yaml\n  stepbox policy try learned.yaml\n  stepbox policy learn --write user"
	past.flags(cmd)
	cmd.Flags().StringVar(&write, "write", "", "put the rules into a file: user or project")
	cmd.Flags().IntVar(&times, "times", 2, "how often the same must have been answered")
	return cmd
}

// keepLearned puts the proposals into a file.
func (c command) keepLearned(l *api.PolicyLearned, to api.Extent, folder string) error {
	add := api.PolicyAdd{Remark: "learned on " + time.Now().Format(time.DateOnly)}
	for _, p := range l.Proposals {
		p.For = to
		add.Rules = append(add.Rules, p.Rule)
	}
	if len(add.Rules) == 0 {
		return c.print(l, func(w io.Writer) { printLearned(w, l) })
	}
	var err error
	if to == api.ExtentProject {
		if add.Project, err = real(folder); err != nil {
			return err
		}
	}
	made, err := c.client.AddToPolicy(c.ctx, add)
	if err != nil {
		return err
	}
	return c.print(made, func(w io.Writer) {
		for _, r := range made.Rules {
			fmt.Fprintln(w, r.Words())
		}
		fmt.Fprintf(w, "%s put into %s\n", paint.Count(len(made.Rules), "rule", "rules"), map[api.Extent]string{api.ExtentAlways: "your policy", api.ExtentProject: "the project's policy"}[to])
	})
}

// printLearned prints proposals as a file of rules.
func printLearned(w io.Writer, l *api.PolicyLearned) {
	fmt.Fprintf(w, "# From %s on commands and connections in %s. Read before use.\n", paint.Count(l.Answers, "answer", "answers"), paint.Count(l.Sessions, "session", "sessions"))
	if len(l.Proposals) == 0 {
		fmt.Fprintln(w, "# Nothing that would be asked about now was answered the same often enough to be a rule.")
	} else {
		fmt.Fprintln(w, "version: 1")
	}
	section := ""
	for _, p := range l.Proposals {
		in, text := "network", p.Host
		if p.Command != "" {
			in, text = "commands", p.Command
		}
		if in != section {
			section = in
			fmt.Fprintf(w, "%s:\n", section)
		}
		fmt.Fprintf(w, "  # %s; last: %s\n", p.Why, where(p.Newest))
		if len(p.Of) > 0 {
			fmt.Fprintf(w, "  # in place of %s\n", cut(strings.Join(p.Of, ", "), 160))
		}
		fmt.Fprintf(w, "  - %s: %s\n", p.Verdict, quoted(text))
	}
	for i, x := range l.Left {
		if i == 0 {
			fmt.Fprintln(w, "# No rule is proposed for:")
		}
		fmt.Fprintf(w, "#   %s: %s\n", cut(x.What, 120), x.Why)
	}
}

// quoted is a text as YAML has it, in single quotes.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
