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

// rolling is what the rollback command was told.
type rolling struct {
	applying // for its way to ask, and to print a conflict
	target   api.RollbackTarget
	chosen   api.Selection
	hash     string
	reason   string
}

func rollback(connect Connect) *cobra.Command {
	var r rolling
	var home bool
	cmd := wrap(connect, "rollback [SESSION] | --home SESSION [PATH...]", "Roll back an action alone, or to before it", cobra.ArbitraryArgs, func(c command, args []string) error {
		b := r
		b.command = c
		if home {
			b.target.Home = &api.HomePaths{Paths: homePaths(args[min(1, len(args)):])}
		} else if len(args) > 1 {
			return usage("rollback takes one session; paths go with --path or --home")
		}
		s, err := c.session(optional(args))
		if err != nil {
			return err
		}
		return b.run(s)
	})
	cmd.Long = "Roll back what actions changed in a running session's files; the agent lives on.\n\n" +
		"  --action N     that action's changes alone: later ones of other files stay, and those\n" +
		"                 of other lines of the same files. --path narrows it down.\n" +
		"  --to-before N  roll back: all that changed since just before action N. Of it, what\n" +
		"                 still runs is ended first.\n" +
		"  --redo ID      what that rollback took away comes again, or what it had come again\n" +
		"                 goes; stepbox show lists them\n" +
		"  --home         what was changed in a home of the session's own (run --home session),\n" +
		"                 or only PATHs of it, for good: it becomes what it was at the start\n\n" +
		"What is in conflict stays as it is unless --resolve says what becomes of it:\n" +
		"  PATH=wanted    as it was before; later changes to the file are lost\n" +
		"  PATH=there     as it is\n" +
		"  PATH=merge:there,wanted,…  a side for each place where they meet\n\n" +
		"With --dry-run only the plan is shown; --hash carries out that very plan."
	cmd.Example = "  stepbox rollback --action 4 --dry-run\n  stepbox rollback fix-tests --action 4 --path 'src/**' --yes\n  stepbox rollback --redo 1\n  stepbox rollback --home fix-tests .claude/skills .bashrc"
	f := cmd.Flags()
	f.IntSliceVar(&r.chosen.Actions, "action", nil, "roll back what this action changed; may be given more than once")
	f.StringArrayVar(&r.chosen.Globs, "path", nil, "only paths like this, as 'src/**'; may be given more than once")
	f.IntVar(&r.target.ToBefore, "to-before", 0, "the action to go back to just before of")
	f.Int64Var(&r.target.Redo, "redo", 0, "the rollback whose changes come again")
	f.BoolVar(&home, "home", false, "roll back what was changed in the session's home")
	f.StringArrayVar(&r.resolve, "resolve", nil, "what becomes of a file in conflict: PATH=wanted, PATH=there or PATH=merge:…")
	f.BoolVar(&r.dry, "dry-run", false, "only show what would be done")
	f.BoolVarP(&r.yes, "yes", "y", false, "don't ask")
	f.StringVar(&r.reason, "reason", "", "one line that the agent is told")
	f.StringVar(&r.hash, "hash", "", "carry out the plan that was shown with this hash")
	return cmd
}

func (r *rolling) run(s api.Session) error {
	chosen := len(r.chosen.Actions) > 0
	switch n := count(chosen, r.target.ToBefore != 0, r.target.Redo != 0, r.target.Home != nil); {
	case n != 1 || r.target.ToBefore < 0:
		return usage("--action N, --to-before ACTION, --redo ID or --home says what goes back; stepbox show lists the actions and rollbacks")
	case !chosen && len(r.chosen.Globs) > 0:
		return usage("--path goes with --action")
	case (r.target.ToBefore != 0 || r.target.Home != nil) && len(r.resolve) > 0:
		return usage("going back to before an action, or of the home, meets no conflicts: --resolve goes with --action and --redo")
	case s.Live() && r.target.ToBefore == 0 && !r.dry && !r.yes && r.hash == "" && !Terminal():
		return usage("it asks before it writes, and there is no terminal: look with --dry-run, then use --yes or --hash")
	}
	if chosen {
		r.target.Selection = &r.chosen
	}
	return r.over(s, r.roll(s))
}

func count(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// over says what can be done with a session that has ended.
func (r *rolling) over(s api.Session, err error) error {
	if api.CodeOf(err) != api.CodeNotLive || s.Live() {
		return err
	}
	words := fmt.Sprintf("session %s has ended: nothing in it can be rolled back before stepbox resume %s goes on with it", s.Name, s.ID)
	for i, n := range r.chosen.Actions {
		if i == 0 {
			words += "; stepbox apply " + s.ID
		}
		words += fmt.Sprintf(" --without %d", n)
	}
	if len(r.chosen.Actions) > 0 {
		words += " leaves those changes out"
	}
	return api.Problemf(api.CodeNotLive, "%s", words)
}

func (r *rolling) roll(s api.Session) error {
	req := api.RollbackRequest{RollbackTarget: r.target}
	var plan api.RollbackPlan
	var err error
	if r.dry || r.hash == "" || len(r.resolve) > 0 {
		if plan, err = r.client.RollbackPlan(r.ctx, s.ID, req); err != nil {
			return err
		}
	}
	if len(r.resolve) > 0 {
		if req.Resolve, err = resolutions(r.resolve, plan.Conflicts); err != nil {
			return err
		}
		r.request.Resolve = req.Resolve
		if plan, err = r.client.RollbackPlan(r.ctx, s.ID, req); err != nil {
			return err
		}
	}
	show := func(w io.Writer) { r.printRollback(w, plan) }
	if r.dry {
		return r.print(plan, show)
	}
	if plan.Hash != "" && !r.json {
		if err := r.print(plan, show); err != nil {
			return err
		}
	}
	if r.target.ToBefore == 0 && r.hash == "" {
		if plan.Restores+plan.Removes == 0 {
			return api.Problemf(api.CodeInvalid, "nothing was done: there is nothing to restore or remove")
		}
		if !r.yes {
			what := "Restore " + paint.Files(plan.Restores)
			switch {
			case plan.Restores == 0:
				what = "Remove " + paint.Files(plan.Removes)
			case plan.Removes > 0:
				what += " and remove " + paint.Files(plan.Removes)
			}
			if err := r.ask(fmt.Sprintf("%s in session %s?", what, s.Name)); err != nil {
				return err
			}
		}
	}
	req.Hash, req.By, req.Reason = cmp.Or(r.hash, plan.Hash), "cli", r.reason
	done, err := r.client.Rollback(r.ctx, s.ID, req)
	if err != nil {
		return err
	}
	return r.print(done, func(w io.Writer) {
		how := ""
		if len(plan.Problems) > 0 {
			how = ", not all as before"
		}
		fmt.Fprintf(w, "%s: %s%s\n", rollbackWords(done), paint.Files(done.Files), how)
		for _, t := range plan.Problems {
			fmt.Fprintf(w, "but %s: %s\n", t.Path, t.Why)
		}
		if left := leftWords(done); left != "" {
			fmt.Fprintln(w, left)
		}
		if done.ToBefore == 0 && done.Home == nil {
			undone := "has it come again"
			if done.PutsIn() {
				undone = "takes it away again"
			}
			fmt.Fprintf(w, "stepbox rollback %s --redo %d %s\n", s.ID, done.ID, undone)
		}
	})
}

// rollbackWords says what a roll back did.
func rollbackWords(r api.Rollback) string {
	switch {
	case r.Home != nil:
		return "rolled back the home"
	case r.ToBefore != 0:
		return fmt.Sprintf("rolled back to before #%d", r.ToBefore)
	case r.Away:
		return fmt.Sprintf("what rollback %d had come again was taken away", r.Redo)
	case r.Redo != 0:
		return fmt.Sprintf("what rollback %d took away came again", r.Redo)
	case r.Selection != nil && len(r.Selection.Actions) > 0:
		some := "rolled back "
		if len(r.Actions) == 0 {
			some = "rolled back parts of "
		}
		return some + api.Numbered(r.Selection.Actions)
	}
	return "rolled back some of the session's changes"
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
	return paint.Files(n) + " changed meanwhile and left as they are: " + names
}

// printRollback prints what would be done.
func (r *rolling) printRollback(w io.Writer, p api.RollbackPlan) {
	if len(p.Actions) > 0 {
		verb := "rolls back"
		if p.Redo != 0 && !p.Away {
			verb = "brings again"
		}
		fmt.Fprintf(w, "%s\t%s\n", verb, api.Numbered(p.Actions))
	}
	if len(p.Ends) > 0 {
		fmt.Fprintf(w, "ends, still running\t%s\n", api.Numbered(p.Ends))
	}
	if len(p.Lives) > 0 {
		fmt.Fprintf(w, "goes on running\t%s: it may write again\n", api.Numbered(p.Lives))
	}
	for _, f := range p.Files {
		line := f.Status + "\t" + f.Path
		if f.Words != "" {
			line += "\t" + f.Words
		}
		fmt.Fprintln(w, line)
	}
	if p.More > 0 {
		fmt.Fprintf(w, "…\tand %d more\n", p.More)
	}
	if n := p.Restores + p.Removes; n > 0 {
		fmt.Fprintf(w, "restores\t%d\nremoves\t%d\n", p.Restores, p.Removes)
	}
	if len(p.Conflicts) > 0 {
		fmt.Fprintf(w, "in conflict\t%d\n", len(p.Conflicts))
		for _, c := range p.Conflicts {
			r.printConflict(w, c)
		}
	}
	trouble := "can't be put back"
	if p.Home != nil {
		trouble = "beware"
		if p.Restores+p.Removes > 0 {
			fmt.Fprint(w, "for good\tnothing of a home is in the record: what goes can't be had again\n")
		}
	}
	for _, t := range p.Problems {
		fmt.Fprintf(w, "%s\t%s\n", trouble, t)
	}
	fmt.Fprintf(w, "hash\t%s\n", p.Hash)
}
