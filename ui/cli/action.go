package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

func (c command) showAction(s api.Session, n int) error {
	a, err := c.client.Action(c.ctx, s.ID, n)
	if err != nil {
		return err
	}
	execs, err := c.client.Execs(c.ctx, s.ID, n)
	if err != nil {
		return err
	}
	questions, err := c.client.Questions(c.ctx, s.ID)
	if err != nil {
		return err
	}
	var held []api.Question
	for _, q := range questions {
		if q.Action == n {
			held = append(held, q)
		}
	}
	attempts, err := c.client.Attempts(c.ctx, s.ID)
	if err != nil {
		return err
	}
	attempts = slices.DeleteFunc(attempts, func(a api.Attempt) bool { return a.Action != n })
	type whole struct {
		api.Action
		Execs     []api.Exec     `json:"exec_list"`
		Questions []api.Question `json:"questions"`
		Attempts  []api.Attempt  `json:"attempt_list"`
	}
	return c.print(whole{a, execs, held, attempts}, func(w io.Writer) {
		row(w, fmt.Sprintf("#%d", a.N), "%s", a.Title)
		fmt.Fprintf(w, "state\t%s %s\n", a.State, a.Exit.Marked())
		if a.Judged() {
			row(w, "verdict", "%s by %s (%s)", a.Verdict, a.By, a.Rule)
		}
		fact(w, "reason", a.Reason)
		if a.Files > 0 {
			fmt.Fprintf(w, "changes\t%s +%d -%d %s\n", paint.Files(a.Files), a.Added, a.Removed, strings.TrimSpace(string(a.Review)+" "+a.Kept))
		}
		if len(a.SharedWith) > 0 {
			row(w, "shared", "%s ran as well and may have made some of them", api.Numbered(a.SharedWith))
		}
		if a.Effects != nil {
			for _, did := range a.Effects.Words {
				fact(w, "did", did)
			}
			if a.Effects.Committed != "" {
				row(w, "committed", "“%s”", a.Effects.Committed)
			}
		}
		if a.Claim != nil {
			row(w, "the agent says", "%s (claim %d)", a.Claim.Words(), a.Claim.N)
		}
		for _, q := range held {
			printQuestion(w, q)
		}
		for _, e := range execs {
			row(w, fmt.Sprintf("exec %d", e.Pid), "%s  %s %s%s", strings.Join(e.Argv, " "), e.Verdict, e.Exit.Marked(), e.Failure)
		}
		for _, t := range attempts[:min(len(attempts), maxShown)] {
			row(w, "network", "%s  %s %s  %s", destination(t), t.Verdict, t.Rule, t.Failure)
		}
		if more := len(attempts) - maxShown; more > 0 {
			row(w, "network", "and %d more: stepbox net %s", more, s.ID)
		}
	})
}

// maxShown attempts of an action are shown with it.
const maxShown = 50

// printQuestion shows all that a decision covers.
func printQuestion(w io.Writer, q api.Question) {
	row(w, "held", "%s", q.Title)
	row(w, "why", "%s", q.Rule)
	var job []*api.Command
	if q.Command != nil {
		job = q.Command.All()
	}
	for i, c := range job {
		if i > 0 {
			row(w, "piped to", "%s", c.Title())
		}
		for i, a := range c.Argv {
			row(w, fmt.Sprintf("argv[%d]", i), "%s", a)
		}
		if c.Truncated {
			row(w, "note", "its arguments or variables are too large to be shown whole")
		}
		row(w, "program", "%s", c.Program)
		if c.Written {
			fmt.Fprintf(w, "\tthis session wrote that file\n")
		}
		if c.Uncounted != "" {
			row(w, "note", "no rule that allows counts for it: %s", c.Uncounted)
		}
		row(w, "in", "%s", c.Cwd)
		for _, s := range c.Sends {
			row(w, "sends", "%s", s)
		}
		for _, u := range c.Unpinned {
			row(w, "note", "what runs may differ from what you see: %s", u)
		}
		for _, src := range c.Sources {
			row(w, "note", "it first reads a file that the agent can write: %s", src)
		}
		for _, e := range c.Env {
			row(w, "env", "%s", e)
		}
		for _, p := range c.Parts {
			row(w, "part", "%s  %s (%s)", p.Text, p.Verdict, p.Rule)
		}
	}
	for _, f := range q.Changes {
		row(w, "changed", "%s %s %s", f.Status, f.Path, f.Words)
	}
	fmt.Fprintf(w, "hash\t%s\n", q.Hash)
}
