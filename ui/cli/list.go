package cli

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

// shortList is how many sessions are listed unless more are asked for.
const shortList = 50

func list(connect Connect) *cobra.Command {
	var w wish
	var all bool
	var most int
	cmd := wrap(connect, "ls [WORD...]", "List live and past sessions, or find some", cobra.ArbitraryArgs, func(c command, args []string) error {
		q, err := w.query(strings.Join(args, " "))
		if err != nil {
			return err
		}
		if all || most == 0 && c.json {
			most = -1
		}
		found, err := c.find(q, cmp.Or(most, shortList))
		if err != nil {
			return err
		}
		sessions := make([]api.Session, len(found.Found))
		for i, x := range found.Found {
			sessions[i] = x.Session
		}
		return c.print(sessions, func(w io.Writer) {
			switch {
			case len(sessions) > 0:
			case q.Text == "" && fmt.Sprint(q) == fmt.Sprint(api.Query{}):
				fmt.Fprintln(w, "no sessions yet; stepbox run starts one, stepbox demo shows one")
				return
			default:
				fmt.Fprintln(w, "no session is so")
				return
			}
			fmt.Fprintln(w, "NO\tNAME\tSTATE\tMODE\tHELD\tACTIONS\tDENIED\tBACK\tFILES\tSTARTED\tTOOK\tCOMMAND")
			for _, s := range sessions {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", s.Number, s.Name+labelMarks(s), outcome(s), s.Mode,
					s.Held, s.Actions, s.Denials, s.Rollbacks, s.Changed, since(s.StartedAt), took(s), cut(s.Command, 60))
			}
			if n := found.Total - len(sessions); n > 0 {
				fmt.Fprintf(w, "%d more: --all lists them\n", n)
			}
			for _, n := range found.Notes {
				fmt.Fprintln(w, n)
			}
		})
	})
	cmd.Long = "List sessions, live ones first. Words find those that have them all: in the name, note, tags, command, folder, in a\n" +
		"command that ran, a changed path, a host, or in what was printed. \"Words in quotes\" follow each other."
	w.flags(cmd)
	f := cmd.Flags()
	f.StringVar((*string)(&w.sort), "sort", "", "by longest, changes or name (newest first)")
	f.BoolVarP(&all, "all", "a", false, fmt.Sprintf("all of them, not the first %d alone", shortList))
	f.IntVarP(&most, "most", "n", 0, "at most so many")
	cmd.MarkFlagsMutuallyExclusive("all", "most")
	return cmd
}

// wish is what a person asks of sessions.
type wish struct {
	state, agent, folder, since, before string
	tags                                []string
	here                                bool
	sort                                api.Sort
}

func (w *wish) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.state, "state", "", "live, past, ended, interrupted, failed, unapplied, pinned or trashed ones")
	f.StringVar(&w.agent, "agent", "", "of this agent: claude, codex, …")
	f.StringArrayVar(&w.tags, "tag", nil, "with this tag (repeatable)")
	f.StringVar(&w.folder, "folder", "", "of this project folder, or one in it")
	f.BoolVar(&w.here, "here", false, "of this folder, or one in it")
	f.StringVar(&w.since, "since", "", "started since: 90m, 3d, 2w or 2026-01-31")
	f.StringVar(&w.before, "before", "", "started before: as --since")
	cmd.MarkFlagsMutuallyExclusive("folder", "here")
}

func (w *wish) query(text string) (api.Query, error) {
	q := api.Query{Text: text, Agent: w.agent, Tags: w.tags, State: w.state, Sort: w.sort}
	var err error
	if w.folder != "" || w.here {
		if q.Folder, err = filepath.Abs(w.folder); err != nil {
			return q, fmt.Errorf("cannot tell this folder: %w", err)
		}
		if real, err := filepath.EvalSymlinks(q.Folder); err == nil { // else it is gone, and its sessions aren't
			q.Folder = real
		}
	}
	if q.Since, err = moment(w.since); err == nil {
		q.Before, err = moment(w.before)
	}
	return q, err
}

// moment reads a time as a person says it: how long ago, or a day.
func moment(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.ParseInLocation("2006-01-02", s, time.Local); err == nil {
		return t, nil
	}
	days := map[byte]int{'d': 1, 'w': 7}[s[len(s)-1]]
	if n, err := strconv.ParseUint(s[:len(s)-1], 10, 15); err == nil && days > 0 {
		return time.Now().AddDate(0, 0, -int(n)*days), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return time.Time{}, usage("%q is no time: use 90m, 3d, 2w or 2026-01-31", api.Escape(s))
	}
	return time.Now().Add(-d), nil
}

// find asks for sessions, at most so many, or all of them when most is negative.
func (c command) find(q api.Query, most int) (out api.FoundPage, err error) {
	for {
		q.Limit = 1000
		if most >= 0 {
			q.Limit = min(q.Limit, most-len(out.Found))
		}
		p, err := api.Searched(c.ctx, c.client.Find, q)
		if err != nil {
			return out, err
		}
		p.Found = append(out.Found, p.Found...)
		out = p
		if q.After = p.Next; q.After == "" || most >= 0 && len(out.Found) >= most {
			return out, nil
		}
	}
}

// outcome says how a session stands or ended.
func outcome(s api.Session) string {
	state := string(s.State)
	if s.CutOff != nil {
		words, _ := s.CutOff.Words()
		state += ": " + words + " was under way"
	}
	if len(s.Beside) > 0 {
		state += ", beside " + besideNames(s)
	}
	switch {
	case s.EndedBy == api.ByFailure:
		state = "failed"
	case s.Exit != nil:
		state += " " + s.Exit.Marked()
	}
	if s.Unapplied > 0 && !s.Live() {
		state += fmt.Sprintf(", %d to apply", s.Unapplied)
	}
	if s.Git != "" {
		state += ", " + s.Git
	}
	return state
}

// took says how long a session ran, or has been running.
func took(s api.Session) string {
	if d := s.Ran(time.Now()); d > 0 {
		return d.Round(time.Second).String()
	}
	return "-"
}

// labelMarks are a session's tags, and whether it is pinned.
func labelMarks(s api.Session) (out string) {
	s.Note, s.Trashed = "", time.Time{}
	return labelWords(s, " ")
}

func grep(connect Connect) *cobra.Command {
	var w wish
	var in string
	var each int
	cmd := wrap(connect, "grep WORD...", "Find what happened in sessions: commands, paths, hosts and what was printed", cobra.MinimumNArgs(1), func(c command, args []string) error {
		q, err := w.query(strings.Join(args, " "))
		if err != nil {
			return err
		}
		if in != "" {
			s, err := c.session(in)
			if err != nil {
				return err
			}
			q.Session = s.ID
		}
		if q.Hits = each; each < 1 {
			return usage("-n is at least 1")
		}
		page, err := c.find(q, -1)
		if err != nil {
			return err
		}
		places := 0
		for _, x := range page.Found { // a session may be called so only
			places += len(x.Hits)
		}
		err = c.print(page.Found, func(w io.Writer) {
			for _, x := range page.Found {
				for _, h := range x.Hits {
					fmt.Fprintln(w, hitLine(x.Session, h))
				}
				if x.More {
					fmt.Fprintf(w, "%s (%d) has more: stepbox grep --in %s -n %d\n", x.Session.Name, x.Session.Number, x.Session.ID, 10*each)
				}
			}
			for _, n := range page.Notes {
				fmt.Fprintln(w, n)
			}
		})
		if err == nil && places == 0 {
			return fmt.Errorf("nothing was found (%w)", ErrSaid)
		}
		return err
	})
	cmd.Long = "Find the places of sessions that have all words, or of sessions that have them in different places, each of those.\n" +
		"The last word may be begun only. \"Words in quotes\" follow each other. The exit code is 1 when there is nothing."
	cmd.Flags().StringVar(&in, "in", "", "in this session alone")
	cmd.Flags().IntVarP(&each, "most", "n", 10, "at most so many places of each session")
	w.flags(cmd)
	return cmd
}

// hitLine says where something was found.
func hitLine(s api.Session, h api.Hit) string {
	at := ""
	if h.Action > 0 {
		at = fmt.Sprintf(" #%d", h.Action)
	}
	d := h.Offset.Truncate(time.Second)
	return fmt.Sprintf("%s (%d)%s +%02d:%02d:%02d %s: %s", s.Name, s.Number, at, int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60, h.Kind, h.Text)
}
