package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// policy is the command on rules, with all that are below it.
func policy(connect, rules Connect) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Say what agents may do without asking, and why",
		Long: "Rules say what agents may do without asking: on commands, connections, files and more. They stand in layers, the\n" +
			"later ones more specific: built-in, the agent's profile, your policy.yaml, the project's .stepbox.yaml, and what was\n" +
			"decided in a session. A rule that denies wins wherever it stands. See docs/policy.md.",
		Args: known, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2 // letters
	cmd.AddCommand(policyInit(rules), policyCheck(rules), policyShow(connect, rules), policyExplain(connect, rules), policyTest(connect, rules), policyTry(connect), policySchema(rules), policyTrust(connect))
	return cmd
}

// place is the flags that say whose rules are meant.
type place struct {
	session, project, agent string
	files                   []string
}

func (p *place) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&p.session, "session", "s", "", "the rules of this session, with those made in it")
	f.StringVarP(&p.project, "project", "w", "", "the project folder (this one)")
	f.StringVar(&p.agent, "agent", "", "the agent whose profile counts, like claude")
	cmd.MarkFlagsMutuallyExclusive("session", "project")
	cmd.MarkFlagsMutuallyExclusive("session", "agent")
}

// by is how to connect for what the flags say: with all sessions only where one counts.
func (p *place) by(connect, rules Connect) Connect {
	return func(ctx context.Context) (*api.Client, func(), error) {
		if p.session != "" {
			return connect(ctx)
		}
		return rules(ctx)
	}
}

func (p *place) fileFlag(cmd *cobra.Command, what string) {
	cmd.Flags().StringArrayVar(&p.files, "policy", nil, what)
	cmd.MarkFlagsMutuallyExclusive("session", "policy")
}

// of is whose rules are meant.
func (c command) of(p place) (out api.PolicyOf, err error) {
	out.Agent = p.agent
	if p.session != "" {
		s, err := c.toRead(p.session)
		out.Session = s.ID
		return out, err
	}
	if out.Project, err = real(p.project); err != nil {
		return out, err
	}
	out.Files, err = absolute(p.files)
	return out, err
}

// real is a folder in full, as sessions name theirs.
func real(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("cannot tell the project folder: %w", err)
	}
	return dir, nil
}

func absolute(files []string) (out []string, err error) {
	for _, f := range files {
		if f, err = filepath.Abs(f); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func policyInit(connect Connect) *cobra.Command {
	var project bool
	var dir string
	cmd := wrap(connect, "init", "Write a file of rules to begin with", cobra.NoArgs, func(c command, _ []string) error {
		folder := ""
		if project || dir != "" {
			var err error
			if folder, err = real(dir); err != nil {
				return err
			}
		}
		made, err := c.client.InitPolicy(c.ctx, folder)
		return c.say(made, err, "%s says by examples what it can hold, and rules nothing yet", made.File)
	})
	cmd.Long = "Write a file of rules to begin with, which says by examples what it can hold: your own, or with --project\n" +
		"this folder's. A file that is there stays as it is."
	cmd.Flags().BoolVar(&project, "project", false, "the project's .stepbox.yaml, in this folder")
	cmd.Flags().StringVarP(&dir, "workspace", "w", "", "the project folder, instead of this one")
	return cmd
}

// errWrong ends policy check and policy test, which have said what is wrong.
var errWrong = errors.New("see above")

func policyCheck(connect Connect) *cobra.Command {
	cmd := wrap(connect, "check [FILE...]", "Say all that is wrong in files of rules", cobra.ArbitraryArgs, func(c command, args []string) error {
		files, err := absolute(args)
		if err == nil && len(files) == 0 {
			files, err = c.here()
		}
		if err != nil {
			return err
		}
		done, err := c.client.CheckPolicy(c.ctx, files...)
		if err != nil {
			return err
		}
		err = c.print(done, func(w io.Writer) {
			for _, p := range done.Problems {
				fmt.Fprintln(w, problemLine(p))
			}
			if len(done.Problems) == 0 {
				fmt.Fprintf(w, "%s read, nothing wrong\n", paint.Files(len(done.Files)))
			}
		})
		if err == nil && len(done.Problems) > 0 {
			err = fmt.Errorf("%s: %w", paint.Count(len(done.Problems), "problem", "problems"), errWrong)
		}
		return err
	})
	cmd.Long = "Read files of rules, with those that they include, and say all that is wrong as FILE:LINE:COLUMN: what. Without\n" +
		"files they are your policy.yaml and this folder's .stepbox.yaml, as far as they are there. Ends with 1 if anything is\n" +
		"wrong."
	return cmd
}

// here are the files of rules that there are for this folder.
func (c command) here() (files []string, err error) {
	of, err := c.of(place{})
	if err != nil {
		return nil, err
	}
	p, err := c.client.Policy(c.ctx, of)
	for _, l := range p.Layers {
		if l.File != "" && !l.Absent {
			files = append(files, l.File)
		}
	}
	if err == nil && len(files) == 0 {
		err = usage("there is no policy here yet: name a file, or have one made by stepbox policy init")
	}
	return files, err
}

func problemLine(p api.PolicyProblem) string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", short(p.File), p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", short(p.File), p.Line, p.Column, p.Message)
}

// short is a path as a person would type it from here.
func short(file string) string {
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, file); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		if rel, ok := strings.CutPrefix(file, home+"/"); ok {
			return "~/" + rel
		}
	}
	return file
}

func policyShow(connect, rules Connect) *cobra.Command {
	var at place
	cmd := wrap(at.by(connect, rules), "show", "List all rules that hold here, layer by layer", cobra.NoArgs, func(c command, _ []string) error {
		of, err := c.of(at)
		if err != nil {
			return err
		}
		p, err := c.client.Policy(c.ctx, of)
		return printed(c, p, err, printPolicy)
	})
	cmd.Long = "List all rules that hold for sessions in this folder, from the general to the specific, each with the file and\n" +
		"line that it is from, and whether the project's file is trusted."
	at.flags(cmd)
	return cmd
}

func printPolicy(w io.Writer, p api.Policy) {
	for i, l := range p.Layers {
		fmt.Fprintf(w, "%d. %s", i+1, l.Name)
		switch {
		case l.Absent:
			fmt.Fprintf(w, ": there is no %s", short(l.File))
		case l.File != "":
			fmt.Fprintf(w, ": %s", short(l.File))
			if !l.Confirmed {
				fmt.Fprint(w, ", not trusted: lines with - don't hold")
			}
		case len(l.Entries) == 0:
			fmt.Fprint(w, ": none")
		}
		fmt.Fprintln(w)
		for _, b := range l.Problems {
			fmt.Fprintf(w, "   ! %s\n", problemLine(b))
		}
		section := ""
		for _, e := range l.Entries {
			if e.Section != section {
				section = e.Section
				fmt.Fprintf(w, "   %s:\n", section)
			}
			mark, where := " ", ""
			if e.Idle {
				mark = "-"
			}
			if e.Line > 0 && l.File != "" {
				where = fmt.Sprintf("  %s:%d", short(e.File), e.Line)
			} else if e.Line > 0 {
				where = fmt.Sprintf("  line %d", e.Line)
			}
			fmt.Fprintf(w, "   %s %s%s\n", mark, e.Text, where)
		}
	}
}

func policySchema(connect Connect) *cobra.Command {
	cmd := wrap(connect, "schema", "Print the format as a JSON Schema, for editors", cobra.NoArgs, func(c command, _ []string) error {
		s, err := c.client.PolicySchema(c.ctx)
		if err != nil {
			return err
		}
		e := values(c.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(s)
	})
	cmd.Long = "Print the format of files of rules as a JSON Schema. Editors with a YAML language server complete and check such\n" +
		"files once the first line of one is: # yaml-language-server: $schema=FILE"
	return cmd
}
