package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/find"
	"stepbox/ui/paint"
)

func logs(connect Connect) *cobra.Command {
	var follow bool
	var line *string
	cmd := onSession(connect, command.toRead, "log [SESSION]", "Print what happened, one line per event, network attempts included", func(c command, s api.Session) error {
		enc := values(c.out)
		f, err := c.filter(s, *line)
		if err != nil {
			return err
		}
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
			words := eventLine(s, e)
			switch {
			case f.Narrows() && (words == "" || !f.hasEvent(e, words)):
			case c.json:
				err = enc.Encode(e)
			case words != "":
				_, err = fmt.Fprintln(c.out, words)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the session ends")
	line = filterFlag(cmd)
	return cmd
}

// by says who did something, where that is known.
func by(who string) string {
	if who == "" {
		return ""
	}
	return ", by " + who
}

// eventLine is one event for people; empty for what only programs need.
func eventLine(s api.Session, e api.Event) string {
	at := e.At.Sub(s.StartedAt).Round(10 * time.Millisecond)
	line := func(format string, a ...any) string {
		return fmt.Sprintf("%10s  %-18s %s", at, api.Escape(e.Kind), cut(fmt.Sprintf(format, a...), lineMost))
	}
	switch {
	case e.Session != nil && e.Kind == "session.ended":
		return line("%s", e.Session.Ending())
	case e.Session != nil && e.Kind != "session.counted":
		return line("%s, mode %s%s", e.Session.State, e.Session.Mode, by(e.Session.By))
	case e.Action != nil && e.Kind != "action.counted":
		who := ""
		if e.Kind == "action.kept" {
			who = by(e.Action.ReviewedBy)
		}
		return line("#%d %s %s%s", e.Action.N, e.Action.Title, strings.TrimSpace(e.Action.Exit.Marked()+" "+string(e.Action.Review)+" "+effectWords(*e.Action)), who)
	case e.Decision != nil:
		return line("#%d: %s by %s %s", e.Decision.Action, e.Decision.Answer, e.Decision.By, e.Decision.Reason)
	case e.Exec != nil:
		return line("[#%d] pid %d %s: %s %s", e.Exec.Action, e.Exec.Pid, strings.Join(e.Exec.Argv, " "), e.Exec.Rule, e.Exec.Failure)
	case e.Attempt != nil && e.Kind != "attempt.changed":
		a := e.Attempt
		return line("%s %s:%d %s %s (%s) %d out %d in %s", a.Protocol, a.Host(), a.Port, a.Verdict, a.Program, a.Rule, a.Sent, a.Received, a.Failure)
	case e.Checkpoint != nil:
		return line("%d, %s", e.Checkpoint.ID, paint.Files(e.Checkpoint.Files))
	case e.Rollback != nil:
		r := e.Rollback
		if r.ToBefore != 0 {
			return line("to before #%d, %s %s", r.ToBefore, paint.Files(r.Files), r.Failure)
		}
		return line("%d: %s, %s %s", r.ID, rollbackWords(*r), paint.Files(r.Files), r.Failure)
	case e.Apply != nil:
		return line("apply %d, %s, %s %s", e.Apply.ID, paint.Files(e.Apply.Files), e.Apply.State, e.Apply.Failure)
	case e.Claim != nil:
		who := "the agent says"
		if e.Claim.By != 0 {
			who = fmt.Sprintf("#%d says, as if it were the agent", e.Claim.By)
		}
		if n := e.Claim.Actions; len(n) > 0 {
			return line("%d, %s: %s; %s came of it", e.Claim.N, who, e.Claim.Words(), api.Numbered(n))
		}
		return line("%d, %s: %s", e.Claim.N, who, e.Claim.Words())
	case e.Note != nil:
		return line("%s", e.Note.Text)
	}
	return ""
}

const filterHelp = "only `LINES` with these words, or that are denied, held, failed, exit≠0, edit, file:PATH, host:NAME, #12: as / has it in a session"

// filterFlag adds the flag that says what is listed.
func filterFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("filter", "", filterHelp)
}

// filter says of what is listed of a session whether it is asked for.
type filter struct {
	find.Filter
	hosts map[int][]string
	wrote find.Wrote
}

// filter reads what a line asks for: of actions, also where they connected and what they wrote.
func (c command) filter(s api.Session, line string) (filter, error) {
	f := filter{Filter: find.Parse(line)}
	if !f.Narrows() {
		return f, nil
	}
	attempts, err := c.client.Attempts(c.ctx, s.ID)
	if err == nil {
		f.hosts = find.Hosts(attempts)
		f.wrote, err = find.Writers(c.ctx, c.client.Find, s.ID, f.Paths())
	}
	return f, err
}

func (f filter) hasAction(a *api.Action) bool {
	r := find.OfAction(a, false, f.hosts[a.N], f.wrote.By(a.N))
	return f.Has(&r)
}

func (f filter) hasAttempt(a *api.Attempt) bool {
	r := find.OfAttempt(a)
	return f.Has(&r)
}

// hasEvent says it of an event as it is printed.
func (f filter) hasEvent(e api.Event, line string) bool {
	switch {
	case e.Action != nil:
		return f.hasAction(e.Action)
	case e.Attempt != nil:
		return f.hasAttempt(e.Attempt)
	}
	r := find.Row{Said: []string{line}}
	switch {
	case e.Exec != nil:
		r.N = e.Exec.Action
	case e.Decision != nil:
		r.N = e.Decision.Action
	}
	return f.Has(&r)
}

// actions are those that are asked for.
func (f filter) actions(all []api.Action) []api.Action {
	return slices.DeleteFunc(all, func(a api.Action) bool { return !f.hasAction(&a) })
}
