package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

// question finds what is held of an action, the one with a hash if one is given.
// What it prints and what it answers is one and the same, bound by the hash.
func (c command) question(s api.Session, n int, hash string) (api.Question, error) {
	all, err := c.client.Questions(c.ctx, s.ID)
	if err != nil {
		return api.Question{}, err
	}
	held := slices.DeleteFunc(all, func(q api.Question) bool { return q.Action != n })
	for _, q := range held {
		if q.Hash == hash {
			return q, nil
		}
	}
	if len(held) > 0 {
		return held[0], nil
	}
	if a, err := c.client.Action(c.ctx, s.ID, n); err == nil {
		state := string(a.State)
		if a.By != "" && a.Verdict != "" {
			state += fmt.Sprintf(" (%s by %s)", a.Verdict, a.By)
		}
		return api.Question{}, &api.Problem{Code: api.CodeGone, Message: fmt.Sprintf("action %d isn't held: it is %s", n, state)}
	}
	return api.Question{}, &api.Problem{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no action %d", n)}
}

func (c command) answer(args []string, hash string, answer api.Answer, reason string) error {
	s, n, err := c.sessionAnd(args)
	if err != nil {
		return err
	}
	q, err := c.question(s, n, hash)
	if err != nil {
		return err
	}
	if hash == "" && answer != api.AnswerDeny && q.Subject == api.SubjectNested {
		// One after the other may be held under the same number: what was
		// seen may have gone away and something else have come.
		return fmt.Errorf("action %d may hold another program soon; this one is approved by its hash (stepbox approve %s %d --hash %s): %s",
			n, s.ID, n, q.Hash, cut(q.Title, lineMost))
	}
	if hash == "" {
		hash = q.Hash
	}
	q, err = c.client.Decide(c.ctx, s.ID, api.Decision{Question: q.ID, Hash: hash, Answer: answer, Reason: reason, By: "cli"})
	if err != nil {
		return err
	}
	return c.print(q, func(w io.Writer) { fmt.Fprintf(w, "%s: action %d\t%s\n", q.Closed, q.Action, cut(q.Title, lineMost)) })
}

const hashHelp = "only if this is still the hash of what is held (from show or --json)"

func approve(connect Connect) *cobra.Command {
	var hash string
	var into, over, keep bool
	cmd := withJSON(&cobra.Command{
		Use: "approve [SESSION] ACTION", Short: "Let a held action run", Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: wrap(connect, func(c command, args []string) error {
			answer := api.AnswerApprove
			switch {
			case into && over, into && keep, over && keep:
				return fmt.Errorf("%w: --into, --over and --keep exclude each other", ErrUsage)
			case keep:
				answer = api.AnswerApproveKeep
			case into:
				answer = api.AnswerStepInto
			case over:
				answer = api.AnswerStepOver
			}
			return c.answer(args, hash, answer, "")
		}),
	})
	cmd.Flags().StringVar(&hash, "hash", "", hashHelp+"; needed for a program within a running action")
	cmd.Flags().BoolVar(&into, "into", false, "step into: hold each program that it starts")
	cmd.Flags().BoolVar(&over, "over", false, "step over: run it, and hold the next action")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep what it changes, too, without being asked")
	return cmd
}

func deny(connect Connect) *cobra.Command {
	var hash, reason string
	cmd := withJSON(&cobra.Command{
		Use: "deny [SESSION] ACTION", Short: "Refuse a held action; the agent is told why", Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: wrap(connect, func(c command, args []string) error { return c.answer(args, hash, api.AnswerDeny, reason) }),
	})
	cmd.Flags().StringVar(&reason, "reason", "", "one line that the agent reads on its standard error")
	cmd.Flags().StringVar(&hash, "hash", "", hashHelp)
	return cmd
}

func keep(connect Connect) *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "keep [SESSION] ACTION", Short: "Mark an action's changes as reviewed", Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: wrap(connect, func(c command, args []string) error {
			s, n, err := c.sessionAnd(args)
			if err != nil {
				return err
			}
			a, err := c.client.Keep(c.ctx, s.ID, n)
			if err != nil {
				return err
			}
			return c.print(a, func(w io.Writer) { fmt.Fprintf(w, "kept: action %d\t%s\n", a.N, cut(a.Title, lineMost)) })
		}),
	})
}

func pause(connect Connect) *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "pause [SESSION]", Short: "Freeze every process of a session's agent", Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: wrap(connect, func(c command, args []string) error {
			s, err := c.session(optional(args))
			if err == nil {
				s, err = c.client.Pause(c.ctx, s.ID)
			}
			if err != nil {
				return err
			}
			return c.print(s, func(w io.Writer) { fmt.Fprintf(w, "paused: %s\n", s.Name) })
		}),
	})
}

func resume(connect Connect) *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "continue [SESSION]", Short: "Let a paused session go on", Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: wrap(connect, func(c command, args []string) error {
			s, err := c.session(optional(args))
			if err != nil {
				return err
			}
			done := "%s isn't paused: it is running\n"
			if s.State != api.SessionRunning {
				done = "continued: %s\n"
				s, err = c.client.Continue(c.ctx, s.ID)
			}
			if err != nil {
				return err
			}
			return c.print(s, func(w io.Writer) { fmt.Fprintf(w, done, s.Name) })
		}),
	})
}

func mode(connect Connect) *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "mode [SESSION] step|policy|watch", Short: "Change which actions are held", Args: usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgs: []string{"step", "policy", "watch"},
		RunE: wrap(connect, func(c command, args []string) error {
			word, to := "", api.Mode(args[len(args)-1])
			if len(args) == 2 {
				word = args[0]
			}
			if !to.Valid() {
				return NoMode(to)
			}
			s, err := c.session(word)
			if err != nil {
				return err
			}
			if s, err = c.client.SetMode(c.ctx, s.ID, to); err != nil {
				return err
			}
			return c.print(s, func(w io.Writer) {
				fmt.Fprintf(w, "mode %s: %s\n", s.Mode, s.Name)
				if s.Held > 0 && s.Mode != api.ModeStep {
					fmt.Fprintf(w, "what was held before waits on (%d): stepbox show %s\n", s.Held, s.ID)
				}
			})
		}),
	})
}

func kill(connect Connect) *cobra.Command {
	var action int
	cmd := withJSON(&cobra.Command{
		Use: "kill [SESSION]", Short: "End a session's sandbox, or one action's processes", Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: wrap(connect, func(c command, args []string) error {
			s, err := c.session(optional(args))
			if err != nil {
				return err
			}
			if action > 0 {
				a, err := c.client.KillAction(c.ctx, s.ID, action)
				if err != nil {
					return err
				}
				return c.print(a, func(w io.Writer) { fmt.Fprintf(w, "killed: action %d\t%s\n", a.N, cut(a.Title, lineMost)) })
			}
			if s, err = c.client.Kill(c.ctx, s.ID); err != nil {
				return err
			}
			return c.print(s, func(w io.Writer) { fmt.Fprintf(w, "killed: %s\n", s.Name) })
		}),
	})
	cmd.Flags().IntVar(&action, "action", 0, "only the processes of this action")
	return cmd
}

func rollback(connect Connect) *cobra.Command {
	var before int
	var dry bool
	var hash string
	cmd := withJSON(&cobra.Command{
		Use: "rollback [SESSION] --to-before ACTION", Short: "Take the session's files back to just before an action", Args: usageArgs(cobra.MaximumNArgs(1)),
		Long: "Take the session's files back to just before an action, later actions' changes included.\n" +
			"The agent lives on. With --dry-run only the plan is shown; --hash carries out that very plan.",
		RunE: wrap(connect, func(c command, args []string) error {
			if before < 1 {
				return fmt.Errorf("%w: --to-before ACTION says where to go back to; stepbox show lists the actions", ErrUsage)
			}
			s, err := c.session(optional(args))
			if err != nil {
				return err
			}
			var plan api.RollbackPlan
			if dry || hash == "" {
				if plan, err = c.client.RollbackPlan(c.ctx, s.ID, before); err != nil {
					return err
				}
			}
			if dry {
				return c.print(plan, func(w io.Writer) { printPlan(w, plan) })
			}
			if hash == "" {
				hash = plan.Hash
			}
			r, err := c.client.Rollback(c.ctx, s.ID, api.RollbackRequest{ToBefore: before, Hash: hash, By: "cli"})
			if err != nil {
				return err
			}
			return c.print(r, func(w io.Writer) {
				if plan.Hash != "" {
					printPlan(w, plan)
				}
				fmt.Fprintf(w, "rolled back to before action %d: %s\n", r.ToBefore, files(r.Files))
				if left := leftWords(r); left != "" {
					fmt.Fprintln(w, left)
				}
			})
		}),
	})
	cmd.Flags().IntVar(&before, "to-before", 0, "the action to go back to just before of")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done")
	cmd.Flags().StringVar(&hash, "hash", "", "carry out the plan that was shown with this hash")
	return cmd
}

// leftWords says what a roll back left as it is; nothing when there is nothing.
func leftWords(r api.Rollback) string {
	n := len(r.Left) + r.LeftMore
	if n == 0 {
		return ""
	}
	names := strings.Join(r.Left, ", ")
	if r.LeftMore > 0 {
		names += fmt.Sprintf(" and %d more", r.LeftMore)
	}
	return files(n) + " changed meanwhile and left as they are: " + names
}

func printPlan(w io.Writer, p api.RollbackPlan) {
	if len(p.Actions) > 0 {
		fmt.Fprintf(w, "rolls back actions\t%s\n", strings.Trim(fmt.Sprint(p.Actions), "[]"))
	}
	if len(p.Ends) > 0 {
		fmt.Fprintf(w, "ends running actions\t%s\n", strings.Trim(fmt.Sprint(p.Ends), "[]"))
	}
	for _, f := range p.Files {
		fmt.Fprintf(w, "%s\t%s\n", f.Status, f.Path)
	}
	if p.More > 0 {
		fmt.Fprintf(w, "…\tand %d more\n", p.More)
	}
	for _, t := range p.Problems {
		fmt.Fprintf(w, "can't be put back\t%s: %s\n", t.Path, t.Why)
	}
	fmt.Fprintf(w, "hash\t%s\n", p.Hash)
}
