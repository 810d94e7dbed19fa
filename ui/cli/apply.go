package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// applying is what the apply command was told.
type applying struct {
	command
	request api.ApplyRequest
	resolve []string // PATH=WAY
	undo    string   // the apply to be undone: a number, or lastApply; "": none
	dry     bool
	yes     bool
	done    api.Apply
}

const lastApply = "last"

func apply(connect Connect) *cobra.Command {
	var a applying
	cmd := wrap(connect, "apply [SESSION]", "Write a session's changes to the project folder, or undo that", cobra.MaximumNArgs(1), func(c command, args []string) error {
		b := a
		b.command = c
		return b.run(optional(args))
	})
	cmd.Long = "Write what a session changed to the project folder: first the plan, with what is in\n" +
		"conflict and what is dangerous, then a question, then the checks, then the files, all\n" +
		"or none. Without SESSION it is this folder's newest session with unapplied work.\n" +
		"A running session goes on; what it writes later isn't part of it.\n\n" +
		"What is in conflict stays as it is unless --resolve says what becomes of it:\n" +
		"  PATH=wanted     as the session has it; the project's changes to the file are lost\n" +
		"  PATH=there      as the project has it\n" +
		"  PATH=merge      both; where they meet, PATH=merge:there,wanted,… takes a side for each place\n\n" +
		"Exits with 0 when it is applied or there is nothing to apply, 1 when it failed, 2 for a\n" +
		"wrong command line, 3 when it was refused (the plan isn't what was shown any more,\n" +
		"nobody has looked at some changes, something else is writing the project), 4 when a\n" +
		"check failed. With --yes it is 3, too, when files are in conflict: those stay as they are,\n" +
		"and all others are written; and with --commits it is 1 when some couldn't be fetched, though\n" +
		"the files are written. Else the project folder is as it was unless it is 0, or it says\n" +
		"that it was stopped too late."
	cmd.Example = "  stepbox apply\n  stepbox apply --check 'go test ./...' --yes --looked\n  stepbox apply fix-tests --without 4 --path 'src/**'\n  stepbox apply --undo"
	f := cmd.Flags()
	f.IntSliceVar(&a.request.Actions, "action", nil, "only what this action changed; may be given more than once")
	f.IntSliceVar(&a.request.Without, "without", nil, "not what this action changed; may be given more than once")
	f.StringArrayVar(&a.request.Globs, "path", nil, "only paths like this, as 'src/**'; may be given more than once")
	f.StringArrayVar(&a.request.Checks, "check", nil, "a shell command that must succeed on the result, in a sandbox; may be given more than once (the project's own)")
	f.BoolVar(&a.request.NoChecks, "no-checks", false, "run no checks, not the project's own either")
	f.BoolVar(&a.request.Commits, "commits", false, "also fetch the agent's commits, below refs/stepbox/")
	f.BoolVar(&a.request.Looked, "looked", false, "the changes that aren't reviewed have been looked at")
	f.StringArrayVar(&a.resolve, "resolve", nil, "what becomes of a file in conflict: PATH=merge, PATH=wanted or PATH=there")
	f.StringVar(&a.request.Hash, "hash", "", "only if the plan still has this hash")
	f.StringVar(&a.undo, "undo", "", "undo the last apply, or the one of this number (--undo=3)")
	f.Lookup("undo").NoOptDefVal = lastApply
	f.BoolVar(&a.dry, "dry-run", false, "only show the plan")
	f.BoolVarP(&a.yes, "yes", "y", false, "don't ask")
	return cmd
}

func (a *applying) run(word string) error {
	a.request.By = "cli"
	for _, word := range a.resolve { // before anything begins
		if _, _, err := resolved(word); err != nil {
			return err
		}
	}
	switch {
	case a.undo != "" && (len(a.request.Actions)+len(a.request.Without)+len(a.request.Globs)+len(a.request.Checks)+len(a.resolve) > 0 || a.request.Commits):
		return usage("--undo undoes a whole apply: of the other flags it takes --dry-run, --yes, --hash and --json")
	case a.request.NoChecks && len(a.request.Checks) > 0:
		return usage("--check and --no-checks exclude each other")
	case !a.dry && !a.yes && !Terminal():
		return usage("an apply asks before it writes, and there is no terminal: look with --dry-run, then use --yes, with --looked when nobody reviewed it before")
	}
	s, err := a.find(word)
	if err != nil {
		return err
	}
	if a.undo != "" {
		return a.takeBack(s)
	}
	p, err := a.plan(s)
	if err != nil {
		return err
	}
	show := func(w io.Writer) { a.printPlan(w, s, p, "apply") }
	switch {
	case a.dry:
		return a.show(p, show)
	case a.request.Hash != "" && a.request.Hash != p.Hash:
		return api.Problemf(api.CodeStale, "the plan isn't the one with that hash any more; look at it again (--dry-run)")
	case len(p.Files)+len(p.Commits) == 0:
		if err := a.show(p, show); err != nil {
			return err
		}
		return a.left(p, p.Unfetched > 0)
	}
	if !a.json {
		if err := a.show(p, show); err != nil {
			return err
		}
	}
	if !a.yes {
		what := fmt.Sprintf("Write %s to %s?", paint.Files(p.Written+p.Deleted+p.Renamed+p.Retyped), s.Workspace)
		if n := len(p.Unreviewed); n > 0 && !a.request.Looked {
			what = fmt.Sprintf("%s reviewed. Have you looked at all of it, and shall it be written to %s?", paint.Count(n, "change isn't", "changes aren't"), s.Workspace)
			a.request.Looked = true
		}
		if err := a.ask(what); err != nil {
			return err
		}
	} else if p.Blocked != "" {
		return api.Problemf(api.CodeBusy, "nothing was applied: %s", p.Blocked)
	}
	a.request.Hash = p.Hash
	err = a.follow(s, func(ctx context.Context, tell func(api.Progress, error) bool) {
		a.client.Apply(ctx, s.ID, a.request)(tell)
	}, appliedWords)
	if err != nil {
		return err
	}
	return a.left(p, a.done.Failure != "")
}

// left says that commits aren't fetched and, with --yes, when nobody was asked, that files stay
// in conflict.
func (a *applying) left(p api.ApplyPlan, unfetched bool) error {
	if unfetched {
		return errors.New("not all of the agent's commits could be fetched, as said above; the files that were to be written are")
	}
	if n := len(p.Conflicts) - len(a.request.Resolve); a.yes && n > 0 {
		return api.Problemf(api.CodeBusy, "left as they are in the project: %s in conflict; --resolve says what becomes of each", paint.Files(n))
	}
	return nil
}

// show prints a value as JSON, or in words without columns: lines of files stand
// among them.
func (a *applying) show(v any, plain func(io.Writer)) error {
	if a.json {
		return a.print(v, plain)
	}
	out := bufio.NewWriter(a.out)
	plain(out)
	return out.Flush()
}

// plan asks for the plan; what is to be resolved is named by path.
func (a *applying) plan(s api.Session) (api.ApplyPlan, error) {
	p, err := a.client.ApplyPlan(a.ctx, s.ID, a.request)
	if err != nil || len(a.resolve) == 0 {
		return p, err
	}
	if a.request.Resolve, err = resolutions(a.resolve, p.Conflicts); err != nil {
		return p, err
	}
	return a.client.ApplyPlan(a.ctx, s.ID, a.request)
}

// resolved takes a word of --resolve, PATH=WAY, apart: the way to resolve a conflict, and
// its path.
func resolved(word string) (r api.Resolution, path string, err error) {
	at := strings.LastIndex(word, "=") // a path may have some
	way, sides, _ := strings.Cut(word[at+1:], ":")
	r.Way = api.Way(way)
	for side := range strings.SplitSeq(sides, ",") {
		if side != "" {
			r.Sides = append(r.Sides, api.Way(side))
		}
	}
	known := func(w api.Way) bool { return w == api.WayWanted || w == api.WayThere }
	if at < 0 || r.Way != api.WayMerge && (!known(r.Way) || len(r.Sides) > 0) || slices.ContainsFunc(r.Sides, func(w api.Way) bool { return !known(w) }) {
		return r, "", usage("--resolve %q: use PATH=merge, PATH=wanted, PATH=there or PATH=merge:there,wanted,…", api.Escape(word))
	}
	return r, word[:at], nil
}

// resolutions are what the words of --resolve say of a plan's conflicts.
func resolutions(words []string, conflicts []api.Conflict) ([]api.Resolution, error) {
	var out []api.Resolution
	for _, word := range words {
		r, path, err := resolved(word)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(conflicts, func(c api.Conflict) bool { return c.Path == path || c.Path == api.Escape(path) })
		if i < 0 {
			return nil, usage("--resolve %q: that file isn't in conflict", api.Escape(path))
		}
		r.Key = conflicts[i].Key
		out = append(out, r)
	}
	return out, nil
}

// find is the session that is meant: by name, or of this folder the newest one
// that has work to apply, or to undo.
func (a *applying) find(word string) (api.Session, error) {
	if word != "" {
		return a.session(word)
	}
	all, err := a.client.Sessions(a.ctx)
	if err != nil {
		return api.Session{}, err
	}
	if all, err = ofHere(all); err != nil {
		return api.Session{}, err
	}
	for _, s := range all { // newest first
		if a.undo != "" {
			if s.Applies > 0 {
				return s, nil
			}
			continue
		}
		if !s.Live() && s.Unapplied == 0 {
			continue
		}
		p, err := a.client.ApplyPlan(a.ctx, s.ID, api.ApplyRequest{NoChecks: true})
		if err != nil {
			return s, err
		}
		if len(p.Files)+len(p.Conflicts) > 0 {
			return s, nil
		}
	}
	what := "has unapplied work"
	if a.undo != "" {
		what = "has an apply to undo"
	}
	return api.Session{}, api.Problemf(api.CodeNotFound, "no session of this folder %s; stepbox ls lists all, stepbox apply SESSION takes any", what)
}

// takeBack undoes an apply.
func (a *applying) takeBack(s api.Session) error {
	all, err := a.client.Applies(a.ctx, s.ID)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(a.undo, 10, 64)
	if a.undo == lastApply {
		all = slices.DeleteFunc(all, func(x api.Apply) bool { return x.State != api.ApplyDone || x.Journal == "" })
		if len(all) == 0 {
			return api.Problemf(api.CodeNotFound, "there is no apply of session %s to undo", s.Name)
		}
		n, err = all[len(all)-1].ID, nil
	}
	if err != nil {
		return usage("--undo=%s: an apply has a number", api.Escape(a.undo))
	}
	p, err := a.client.UndoPlan(a.ctx, s.ID, n)
	if err != nil {
		return err
	}
	show := func(w io.Writer) { a.printPlan(w, s, p, fmt.Sprintf("undo of apply %d", n)) }
	if a.dry || !a.json {
		if err := a.show(p, show); err != nil || a.dry {
			return err
		}
	}
	if p.Blocked != "" {
		return api.Problemf(api.CodeBusy, "nothing was undone: %s", p.Blocked)
	}
	if !a.yes {
		if err := a.ask(fmt.Sprintf("Undo apply %d: put %s in %s back as before it?", n, paint.Files(p.Written+p.Deleted+p.Renamed+p.Retyped), s.Workspace)); err != nil {
			return err
		}
	}
	return a.follow(s, func(ctx context.Context, tell func(api.Progress, error) bool) {
		a.client.Undo(ctx, s.ID, n, api.UndoRequest{Hash: cmp.Or(a.request.Hash, p.Hash), By: "cli"})(tell)
	}, func(w io.Writer, _ api.Session, x api.Apply) {
		how := " as before it"
		if len(x.Left) > 0 {
			how = ", not all as before it"
		}
		fmt.Fprintf(w, "undone: apply %d, %s%s\n", x.ID, paint.Files(x.Files), how)
		leftBehind(w, x)
	})
}

// follow shows how work goes until it is through. A signal ends the work, and
// what came of it is said.
func (a *applying) follow(s api.Session, work func(ctx context.Context, tell func(api.Progress, error) bool), words func(io.Writer, api.Session, api.Apply)) error {
	var last api.Progress
	var failed error
	live := Terminal() && !a.json
	work(a.ctx, func(p api.Progress, err error) bool {
		if err != nil {
			failed = err
			return false
		}
		last = p
		if live && p.Done == nil && p.Problem == nil {
			cols, _ := Size()
			fmt.Fprintf(a.stderr(), "\r\x1b[K%s", cut(progressWords(p), cols-1))
		}
		return true
	})
	if live {
		fmt.Fprint(a.stderr(), "\r\x1b[K")
	}
	switch {
	case a.ctx.Err() != nil:
		return a.stopped(s)
	case failed != nil:
		return failed
	case last.Problem != nil:
		return a.failed(s, last.Problem)
	case last.Done == nil:
		return errors.New("the session ended while it was applied; stepbox ls, then stepbox apply again, says how it stands")
	}
	a.done = *last.Done
	return a.show(last.Done, func(w io.Writer) { words(w, s, *last.Done) })
}

func progressWords(p api.Progress) string {
	out := map[string]string{"check": "checking", "write": "writing", "undo": "undoing", "fetch": "fetching commits"}[p.Stage]
	if p.Text != "" {
		out += " · " + p.Text
	}
	if p.Whole > 0 {
		out += fmt.Sprintf(" · %d %%", 100*p.Part/p.Whole)
	}
	return out
}

// failed shows the end of what a check printed before its failure is told.
func (a *applying) failed(s api.Session, p *api.Problem) error {
	if p.Code != api.CodeChecked || a.json {
		return p
	}
	all, err := a.client.Applies(a.ctx, s.ID)
	if err != nil || len(all) == 0 {
		return p
	}
	for _, c := range all[len(all)-1].Checks {
		if !c.Passed() {
			fmt.Fprint(a.stderr(), c.Output)
		}
	}
	return p
}

// stopWait bounds how long the end of work that was stopped is waited for.
const stopWait = time.Minute

// stopped waits until what was stopped has come to its end, and says which.
func (a *applying) stopped(s api.Session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), stopWait)
	defer cancel()
	for ctx.Err() == nil {
		all, err := a.client.Applies(ctx, s.ID)
		if err != nil {
			break
		}
		if n := len(all); n == 0 || all[n-1].State != api.ApplyOpen && !slices.ContainsFunc(all, func(x api.Apply) bool { return x.State == api.ApplyUndoing }) {
			how := "the project folder is as it was"
			if n > 0 && all[n-1].State == api.ApplyDone && a.undo == "" {
				how = fmt.Sprintf("it was too late: apply %d is done; stepbox apply --undo undoes it", all[n-1].ID)
			}
			fmt.Fprintln(a.stderr(), "stepbox: stopped;", how)
			return context.Cause(a.ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	fmt.Fprintln(a.stderr(), "stepbox: stopped; the next stepbox command says how the project folder stands")
	return context.Cause(a.ctx)
}
