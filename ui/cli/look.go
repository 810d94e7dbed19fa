package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

func list(connect Connect) *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "ls", Short: "List live and past sessions", Args: usageArgs(cobra.NoArgs),
		RunE: wrap(connect, func(c command, _ []string) error {
			all, err := c.client.Sessions(c.ctx)
			if err != nil {
				return err
			}
			return c.print(all, func(w io.Writer) {
				if len(all) == 0 {
					fmt.Fprintln(w, "no sessions yet; stepbox run starts one, stepbox demo shows one")
					return
				}
				fmt.Fprintln(w, "NO\tNAME\tSTATE\tMODE\tHELD\tACTIONS\tSTARTED\tCOMMAND")
				for _, s := range all {
					state := string(s.State)
					if s.CutOff != 0 {
						state += ": " + cutOff(s)
					}
					switch {
					case s.EndedBy == api.ByFailure:
						state = "failed"
					case s.Exit != nil:
						state += " " + exitWords(s.Exit)
					}
					fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.Number, s.Name, state, s.Mode, s.Held, s.Actions, since(s.StartedAt), cut(s.Command, 60))
				}
			})
		}),
	})
}

func show(connect Connect) *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "show [SESSION [ACTION]]", Short: "Show a session with its actions, or one action whole", Args: usageArgs(cobra.MaximumNArgs(2)),
		RunE: wrap(connect, func(c command, args []string) error {
			if len(args) == 2 {
				s, n, err := c.sessionAnd(args)
				if err != nil {
					return err
				}
				return c.showAction(s, n)
			}
			s, err := c.session(optional(args))
			if err != nil {
				return err
			}
			actions, err := c.client.Actions(c.ctx, s.ID)
			if err != nil {
				return err
			}
			questions, stuck := c.client.Questions(c.ctx, s.ID)
			type whole struct {
				api.Session
				Actions   []api.Action   `json:"action_list"`
				Questions []api.Question `json:"questions"`
			}
			err = c.print(whole{s, actions, questions}, func(w io.Writer) { printSession(w, s, actions, questions) })
			return cmp.Or(err, stuck) // all but what is held is known from the record
		}),
	})
}

func cutOff(s api.Session) string {
	return fmt.Sprintf("a roll back to before %d was under way", s.CutOff)
}

func printSession(w io.Writer, s api.Session, actions []api.Action, questions []api.Question) {
	fmt.Fprintf(w, "session %d\t%s\n", s.Number, s.Name)
	fmt.Fprintf(w, "id\t%s\n", s.ID)
	row(w, "agent", "%s: %s", s.Agent, s.Command)
	fmt.Fprintf(w, "project\t%s\n", s.Workspace)
	state := string(s.State)
	if s.Exit != nil {
		state += ", " + exitWords(s.Exit)
	}
	fmt.Fprintf(w, "state\t%s, mode %s\n", state, s.Mode)
	if s.CutOff != 0 {
		fmt.Fprintf(w, "beware\t%s: files may be as they were before it or after\n", cutOff(s))
	}
	if s.Reason != "" {
		fmt.Fprintf(w, "because\t%s\n", s.Reason)
	}
	fmt.Fprintf(w, "limits\t%s\n", limitWords(s.Limits))
	for _, x := range s.Warnings {
		row(w, "warning", "%s", x)
	}
	if len(s.Hidden) > 0 {
		row(w, "hidden", "%s", strings.Join(s.Hidden, ", "))
	}
	if len(s.Redacted) > 0 {
		fmt.Fprintf(w, "without secrets\t%s\n", strings.Join(s.Redacted, ", "))
	}
	if s.Base != nil || s.Commit != "" {
		row(w, "base", "%s", baseWords(s))
	}
	fmt.Fprintln(w)
	for _, a := range actions {
		fmt.Fprintln(w, actionLine(a))
	}
	for _, q := range questions {
		fmt.Fprintf(w, "held: action %d\t%s\t(%s)\n", q.Action, cut(q.Title, 100), q.Rule)
	}
}

// baseWords say what the project was when the session started.
func baseWords(s api.Session) string {
	var parts []string
	if s.Commit != "" {
		at := "commit " + s.Commit[:min(12, len(s.Commit))]
		if name, ok := strings.CutPrefix(s.Branch, "refs/heads/"); ok {
			at += " on " + name
		}
		parts = append(parts, at)
	}
	switch b := s.Base; {
	case b == nil:
		parts = append(parts, "the files beside it aren't recorded")
	case b.Kind == "git":
		parts = append(parts, files(b.Files)+" changed or not tracked")
	default:
		parts = append(parts, "the names of "+files(b.Files))
	}
	if b := s.Base; b != nil && !b.Complete {
		parts = append(parts, "incomplete: "+b.Reason)
	}
	return strings.Join(parts, ", ")
}

func limitWords(l api.Limits) string {
	var parts []string
	if l.Memory > 0 {
		parts = append(parts, fmt.Sprintf("memory %dM", l.Memory>>20))
	}
	if l.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("cpus %g", l.CPUs))
	}
	if l.Pids > 0 {
		parts = append(parts, fmt.Sprintf("pids %d", l.Pids))
	}
	if l.WallTime > 0 {
		parts = append(parts, "wall time "+l.WallTime.String())
	}
	return strings.Join(parts, ", ") + " (" + l.Source + ")"
}

func actionLine(a api.Action) string {
	state := string(a.State)
	switch {
	case a.State == api.ActionHeld:
		state = "HELD"
	case a.Exit != nil:
		state = exitWords(a.Exit)
	}
	var more []string
	if a.Files > 0 {
		more = append(more, fmt.Sprintf("%s +%d -%d", files(a.Files), a.Added, a.Removed))
	}
	if a.Review != api.ReviewNone {
		more = append(more, string(a.Review))
	}
	if a.LeftRunning > 0 {
		more = append(more, fmt.Sprintf("%d left running", a.LeftRunning))
	}
	if a.Housekeeping {
		more = append(more, "housekeeping")
	}
	return fmt.Sprintf("%4d\t%s\t%s\t%s", a.N, state, cut(a.Title, 100), strings.Join(more, ", "))
}

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
	type whole struct {
		api.Action
		Execs     []api.Exec     `json:"exec_list"`
		Questions []api.Question `json:"questions"`
	}
	return c.print(whole{a, execs, held}, func(w io.Writer) {
		row(w, fmt.Sprintf("action %d", a.N), "%s", a.Title)
		fmt.Fprintf(w, "state\t%s %s\n", a.State, exitWords(a.Exit))
		if a.Verdict != "" {
			row(w, "verdict", "%s by %s (%s)", a.Verdict, a.By, a.Rule)
		}
		if a.Reason != "" {
			row(w, "reason", "%s", a.Reason)
		}
		if a.Files > 0 {
			fmt.Fprintf(w, "changes\t%s +%d -%d %s\n", files(a.Files), a.Added, a.Removed, strings.TrimSpace(string(a.Review)+" "+a.Kept))
		}
		for _, q := range held {
			printQuestion(w, q)
		}
		for _, e := range execs {
			row(w, fmt.Sprintf("exec %d", e.Pid), "%s  %s %s%s", strings.Join(e.Argv, " "), e.Verdict, exitWords(e.Exit), e.Failure)
		}
	})
}

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
			row(w, "piped to", "%s", c.Line)
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
		row(w, "in", "%s", c.Cwd)
		for _, u := range c.Unpinned {
			row(w, "note", "not held to what you see: %s", u)
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

func logs(connect Connect) *cobra.Command {
	var follow bool
	cmd := withJSON(&cobra.Command{
		Use: "log [SESSION]", Short: "Print what happened, one line per event, network attempts included", Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: wrap(connect, func(c command, args []string) error {
			s, err := c.session(optional(args))
			if err != nil {
				return err
			}
			enc := json.NewEncoder(c.out)
			events := c.client.Recorded
			if follow {
				events = c.client.Events
			}
			for e, err := range events(c.ctx, s.ID, 0) {
				if err != nil {
					return err
				}
				if e.Seq == 0 {
					continue
				}
				if c.json {
					if err := enc.Encode(e); err != nil {
						return err
					}
				} else if line := eventLine(s, e); line != "" {
					if _, err := fmt.Fprintln(c.out, line); err != nil {
						return err
					}
				}
			}
			return nil
		}),
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the session ends")
	return cmd
}

// eventLine is one event for people; empty for what only programs need.
func eventLine(s api.Session, e api.Event) string {
	at := e.At.Sub(s.StartedAt).Round(10 * time.Millisecond)
	line := func(format string, a ...any) string {
		return fmt.Sprintf("%10s  %-18s %s", at, api.Escape(e.Kind), cut(fmt.Sprintf(format, a...), lineMost))
	}
	switch {
	case e.Session != nil && e.Kind != "session.counted":
		return line("%s, mode %s", e.Session.State, e.Session.Mode)
	case e.Action != nil && e.Kind != "action.counted":
		return line("%d %s %s", e.Action.N, e.Action.Title, strings.TrimSpace(exitWords(e.Action.Exit)+" "+string(e.Action.Review)))
	case e.Decision != nil:
		return line("action %d: %s by %s %s", e.Decision.Action, e.Decision.Answer, e.Decision.By, e.Decision.Reason)
	case e.Exec != nil && e.Kind != "exec.ended":
		return line("[%d] pid %d %s: %s %s", e.Exec.Action, e.Exec.Pid, strings.Join(e.Exec.Argv, " "), e.Exec.Rule, e.Exec.Failure)
	case e.Attempt != nil && e.Kind != "attempt.changed":
		a := e.Attempt
		host := a.Address
		if a.Name != "" {
			host = a.Name
		}
		return line("%s %s:%d %s %s (%s) %d out %d in %s", a.Protocol, host, a.Port, a.Verdict, a.Program, a.Rule, a.Sent, a.Received, a.Failure)
	case e.Checkpoint != nil:
		return line("%d, %s", e.Checkpoint.ID, files(e.Checkpoint.Files))
	case e.Rollback != nil:
		return line("to before action %d, %s %s", e.Rollback.ToBefore, files(e.Rollback.Files), e.Rollback.Failure)
	case e.Note != nil:
		return line("%s", e.Note.Text)
	case e.Unknown():
		return line("(another Stepbox's: this one doesn't know what it is)")
	}
	return ""
}

func diff(connect Connect) *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "diff [SESSION [ACTION]]", Short: "Show what a session or one of its actions changed", Args: usageArgs(cobra.MaximumNArgs(2)),
		RunE: wrap(connect, func(c command, args []string) error {
			n := 0
			var s api.Session
			var err error
			if len(args) == 2 {
				s, n, err = c.sessionAnd(args)
			} else {
				s, err = c.session(optional(args))
			}
			if err != nil {
				return err
			}
			return c.printDiffs(s, n)
		}),
	})
}

// printDiffs prints each difference as it comes, so that a long list neither
// waits for its end nor is held in memory.
func (c command) printDiffs(s api.Session, n int) error {
	out := bufio.NewWriterSize(c.out, 64<<10)
	before := "[\n  "
	for d, err := range c.client.Diffs(c.ctx, s.ID, n) {
		if err != nil {
			return errors.Join(out.Flush(), err)
		}
		if c.json {
			b, err := json.MarshalIndent(d, "  ", "  ")
			if err != nil {
				return fmt.Errorf("cannot encode a difference: %w", err)
			}
			_, _ = out.WriteString(before) // what fails is told by Flush
			_, _ = out.Write(b)
			before = ",\n  "
		} else {
			printDiff(out, d)
		}
	}
	if c.json {
		end := "\n]\n"
		if before[0] == '[' {
			end = "[]\n"
		}
		_, _ = out.WriteString(end)
	}
	return out.Flush()
}

func printDiff(w io.Writer, d api.FileDiff) {
	fmt.Fprintf(w, "%s %s", d.Change.Status, d.Change.Path)
	if d.Change.From != "" {
		fmt.Fprintf(w, " (from %s)", d.Change.From)
	}
	for _, x := range []string{d.Change.Words, d.Note} {
		if x != "" {
			fmt.Fprintf(w, "  %s", x)
		}
	}
	fmt.Fprintln(w)
	for _, h := range d.Hunks {
		fmt.Fprintf(w, "@@ -%s +%s @@\n", span(h.OldLine, h.OldCount), span(h.NewLine, h.NewCount))
		for _, l := range h.Lines {
			fmt.Fprintf(w, "%s%s\n", l.Op, l.Text)
		}
	}
}

func span(line, count int) string {
	if count == 1 {
		return strconv.Itoa(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}

// lineMost bounds what of a command stands on one line, in characters.
const lineMost = 200

// row prints what belongs to a label, whole, on as many lines as it takes.
func row(w io.Writer, label, format string, a ...any) {
	text := []rune(fmt.Sprintf(format, a...))
	for {
		n := min(len(text), lineMost)
		fmt.Fprintf(w, "%s\t%s\n", label, string(text[:n]))
		if text, label = text[n:], ""; len(text) == 0 {
			return
		}
	}
}

// cut shortens a line for a list; the whole of it is one command away.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// files is a number of files in words.
func files[N int | int64](n N) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
