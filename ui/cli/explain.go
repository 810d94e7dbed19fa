package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

func policyExplain(connect, rules Connect) *cobra.Command {
	var at place
	var r api.ExplainRequest
	cmd := wrap(at.by(connect, rules), "explain [-- COMMAND [ARG...]]", "Say which rule decides on a command, a host, a file, a variable, a limit or a section", cobra.ArbitraryArgs, func(c command, args []string) (err error) {
		if r.PolicyOf, err = c.of(at); err != nil {
			return err
		}
		if r.Argv = args; r.Path != "" && at.session == "" {
			if r.Path, err = filepath.Abs(r.Path); err != nil {
				return err
			}
		}
		if here, err := os.Getwd(); err == nil && at.session == "" && at.project == "" {
			r.Cwd, _ = filepath.EvalSymlinks(here) // "" where it is gone
		}
		e, err := c.client.Explain(c.ctx, r)
		return printed(c, e, err, printExplained)
	})
	cmd.Long = "Say what the rules that hold here say of a command, of a connection (--host NAME:PORT[/PROTOCOL]), of a file\n" +
		"or mount (--file), of a variable of the environment, of a limit or of a section that says one thing of a whole session,\n" +
		"which rule that is, where it stands, and why. One argument with spaces is a line for a shell."
	cmd.Example = "  stepbox policy explain -- git push origin main\n  stepbox policy explain -- 'cd src && rm -rf *'\n" +
		"  stepbox policy explain --host registry.example:443 --program /usr/bin/node\n  stepbox policy explain --file .env"
	at.flags(cmd)
	at.fileFlag(cmd, "explain by the built-in rules and this `FILE`, as if it were trusted; may be given more than once")
	f := cmd.Flags()
	f.StringVar(&r.Host, "host", "", "what a program connects to, as NAME:PORT[/PROTOCOL]")
	f.StringVar(&r.Program, "program", "", "with --host: the program, by its path or its name")
	f.StringVar(&r.Variable, "variable", "", "the `NAME` of a variable of the agent's environment")
	f.StringVar(&r.Limit, "limit", "", "the `NAME` of a limit, like memory or action.files")
	f.StringVar(&r.Section, "section", "", "what the `SECTION` names, ask or checks says")
	f.StringVar(&r.Path, "file", "", "a file of the project, or one outside")
	return cmd
}

func printExplained(w io.Writer, e api.Explained) {
	verdict := string(e.Verdict)
	if e.Treated != "" {
		verdict = e.Treated
	}
	fmt.Fprintf(w, "%s\t%s\n", verdict, cut(e.What, lineMost))
	fmt.Fprintf(w, "because\t%s\n", e.Rule)
	if where := standing(e.Ruling); where != "" {
		fmt.Fprintf(w, "from\t%s\n", where)
	}
	for _, p := range e.Parts {
		fmt.Fprintf(w, "  %s\t%s\n", p.Verdict, cut(p.Text, lineMost))
		fmt.Fprintf(w, "\t  %s\n", p.Rule)
		if where := standing(p.Ruling); where != "" {
			fmt.Fprintf(w, "\t  %s\n", where)
		}
	}
	for _, n := range e.Notes {
		fmt.Fprintf(w, "note\t%s\n", n)
	}
}

// standing is where a rule stands; "" when it is none.
func standing(r api.Ruling) string {
	switch {
	case r.Layer == "":
		return ""
	case r.Line == 0:
		return r.Layer
	case !filepath.IsAbs(r.File):
		return fmt.Sprintf("%s, line %d", r.Layer, r.Line)
	case r.Layer == filepath.Base(r.File):
		return fmt.Sprintf("%s:%d", short(r.File), r.Line)
	}
	return fmt.Sprintf("%s, %s:%d", r.Layer, short(r.File), r.Line)
}

func policyTest(connect, rules Connect) *cobra.Command {
	var at place
	cmd := wrap(at.by(connect, rules), "test FILE...", "Check rules against a file of what they are expected to say", cobra.MinimumNArgs(1), func(c command, args []string) (err error) {
		var t api.PolicyTest
		if t.PolicyOf, err = c.of(at); err != nil {
			return err
		}
		if t.Tests, err = absolute(args); err != nil {
			return err
		}
		done, err := c.client.TestPolicy(c.ctx, t)
		if err != nil {
			return err
		}
		err = c.print(done, func(w io.Writer) {
			for _, g := range done.Unmet {
				fmt.Fprintf(w, "%s:%d: %s\n  - %s\n  + %s\n", short(g.File), g.Line, g.What, g.Want, g.Got)
			}
			fmt.Fprintf(w, "%d met, %d not\n", done.Met, len(done.Unmet))
		})
		if err == nil && len(done.Unmet) > 0 {
			err = fmt.Errorf("%s not met: %w", paint.Count(len(done.Unmet), "expectation is", "expectations are"), errWrong)
		}
		return err
	})
	cmd.Long = "Check rules against files of expectations: what is expected (-) and what the rules say (+) of each that isn't met.\n" +
		"The rules are the built-in and this folder's .stepbox.yaml as if it were trusted, the same on every machine, or those\n" +
		"of --policy. Ends with 1 if any isn't met. docs/policy.md says how such a file is written."
	at.flags(cmd)
	at.fileFlag(cmd, "a `FILE` of rules to test instead of the project's; may be given more than once")
	return cmd
}
