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

func show(connect Connect) *cobra.Command {
	var at string
	var all bool
	var line *string
	cmd := onMaybe(connect, "show", "Show a session with its actions, or one action whole; as they are, or were at a moment", func(c command, s api.Session, n int) error {
		f, err := c.filter(s, *line)
		if err != nil {
			return err
		}
		if at != "" {
			return c.showAt(s, n, api.Moment(at), all, f)
		}
		if n > 0 {
			return c.showAction(s, n)
		}
		actions, err := c.client.Actions(c.ctx, s.ID)
		if err != nil {
			return err
		}
		actions = f.actions(actions)
		if whole, err := c.client.Session(c.ctx, s.ID); err == nil {
			s = whole // a list doesn't have all
		}
		var space *api.Space
		if sp, err := c.client.Space(c.ctx, s.ID); err == nil { // else nobody here can measure it
			space = &sp
		}
		rollbacks, _ := c.client.Rollbacks(c.ctx, s.ID) // an older session's Stepbox doesn't list them
		applies, _ := c.client.Applies(c.ctx, s.ID)     // nor its applies
		questions, stuck := c.client.Questions(c.ctx, s.ID)
		type whole struct {
			api.Session
			Actions   []api.Action   `json:"action_list"`
			Questions []api.Question `json:"questions"`
			Rollbacks []api.Rollback `json:"rollbacks,omitempty"`
			Applied   []api.Apply    `json:"apply_list,omitempty"`
			Space     *api.Space     `json:"space,omitempty"`
		}
		if s.Home == api.HomeSession { // as it is by now: some may have been kept or taken back since
			if changes, err := c.client.HomeChanges(c.ctx, s.ID); err == nil {
				s.HomeLeft = changes.Left()
			}
		}
		err = c.print(whole{s, actions, questions, rollbacks, applies, space}, func(w io.Writer) {
			printSession(w, s, space)
			printActions(w, c.actionList(all), actions, questions)
			if len(rollbacks)+len(applies) > 0 {
				fmt.Fprintln(w)
			}
			for _, r := range rollbacks {
				again := ""
				switch {
				case r.Redone && r.PutsIn():
					again = ", which was taken away again"
				case r.Redone:
					again = ", which came again"
				case r.Open && !s.Live():
					again = ", but was cut off"
				}
				row(w, fmt.Sprintf("rollback %d", r.ID), "%s, %s%s %s", rollbackWords(r), paint.Files(r.Files), again, r.Failure)
			}
			for _, a := range applies {
				row(w, fmt.Sprintf("apply %d", a.ID), "%s, %s %s", paint.Files(a.Files), a.State, a.Failure)
			}
		})
		return cmp.Or(err, stuck) // all but what is held is known from the record
	})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "the agent's housekeeping too")
	line = filterFlag(cmd)
	cmd.Flags().StringVar(&at, "at", "", "how it stood at a moment: after action 12 or before 12^, +1h2m since the start, start, end")
	return cmd
}

// besideNames names the live sessions over a session's files.
func besideNames(s api.Session) string {
	var list []string
	for _, n := range s.Beside {
		list = append(list, fmt.Sprintf("%s (%s)", n.Name, n.ID))
	}
	return strings.Join(list, ", ")
}

func printSession(w io.Writer, s api.Session, sp *api.Space) {
	fmt.Fprintf(w, "session %d\t%s\n", s.Number, s.Name)
	fmt.Fprintf(w, "id\t%s\n", s.ID)
	row(w, "agent", "%s: %s", s.Agent, s.Command)
	fmt.Fprintf(w, "project\t%s\n", s.Workspace)
	state := string(s.State)
	if s.Exit != nil {
		state += ", " + s.Exit.Marked()
	}
	fmt.Fprintf(w, "state\t%s, mode %s\n", state, s.Mode)
	if !s.Live() && s.Unapplied > 0 {
		row(w, "to apply", "%s: stepbox apply %s", paint.Files(s.Unapplied), s.ID)
	}
	if s.Unfetched != "" {
		row(w, "to fetch", "%s: stepbox apply %s --commits", s.Unfetched, s.ID)
	}
	if s.CutOff != nil {
		words, again := s.CutOff.Words()
		if again != "" {
			again = fmt.Sprintf("; stepbox resume %s, then stepbox rollback %s %s does it again", s.ID, s.ID, again)
		}
		fmt.Fprintf(w, "beware\t%s was under way: files may be as they were before it or after%s\n", words, again)
	}
	if s.Reason != "" {
		fmt.Fprintf(w, "because\t%s\n", s.Reason)
	}
	if p := s.Parent; p != nil {
		row(w, "forked from", "%s (%s) at %s", p.Name, p.ID, api.Escape(string(cmp.Or(p.At, "end"))))
	}
	if s.Resumed > 0 {
		row(w, "resumed", "%s, %s", paint.Count(s.Resumed, "time", "times"), since(s.ResumedAt))
		if s.ResumedWith != "" {
			row(w, "", "with %s", s.ResumedWith)
		}
	}
	if len(s.Beside) > 0 {
		work := map[bool]string{true: "works", false: "work"}[len(s.Beside) == 1]
		row(w, "beside", "%s %s on the same files: none sees what another changes before that is applied", besideNames(s), work)
	}
	fact(w, "questions", s.Asking.Words())
	fmt.Fprintf(w, "limits\t%s (%s)\n", paint.Limits(s.Limits), s.Limits.Source)
	fact(w, "variables", strings.Join(s.Variables, " "))
	facts(w, "not passed", each(s.Lacks, func(name string) string { return name + ": --env " + name + " passes it" }))
	if len(s.Asks) > 0 {
		row(w, "asks", "%s", s.Undecided())
	}
	facts(w, "limited by", s.Limits.Rules)
	printHas(w, s, sp)
	if s.Base != nil || s.Commit != "" {
		row(w, "base", "%s", baseWords(s))
	}
}

// printHas prints what a session has of the host, and what it uses.
func printHas(w io.Writer, s api.Session, sp *api.Space) {
	if sp != nil {
		fmt.Fprintf(w, "on the disk\t%s of files, %s in /tmp, %s of record\n", paint.Bytes(sp.Files), paint.Bytes(sp.Temporary), paint.Bytes(sp.Record))
		if sp.Beside > 0 {
			fmt.Fprintf(w, "\t%s in caches and other folders\n", paint.Bytes(sp.Beside))
		}
	}
	dirs(w, s, sp)
	if len(s.Caches) > 0 { // of what the person's builds have fetched and made
		row(w, "caches", "%s: as on the host; what it writes there stays in this session", strings.Join(s.Caches, ", "))
	}
	for _, p := range s.Ports {
		row(w, "published", "port %d at %s, by %s: %s", p.Port, p.URL(), cmp.Or(p.By, "the start"), paint.Count(p.Connections, "connection", "connections"))
	}
	for _, p := range s.Servers {
		row(w, "listens", "port %d (%s): stepbox publish %s %d", p.Port, cmp.Or(p.Program, "unknown"), s.ID, p.Port)
	}
	for _, p := range s.Pages {
		fact(w, "to open", p.URL)
	}
	fact(w, "git", s.Git)
	for _, x := range s.Warnings {
		fact(w, "warning", x)
	}
	fact(w, "hidden", strings.Join(s.Hidden, ", "))
	if len(s.Redacted) > 0 {
		fmt.Fprintf(w, "without secrets\t%s\n", strings.Join(s.Redacted, ", "))
	}
	facts(w, "credentials", each(s.Credentials, api.Credential.Words))
	facts(w, "spent", each(s.Spend, paint.Spend))
	printHome(w, s)
	if s.AgentSession != "" {
		row(w, "agent's own", "session %s, as it says", s.AgentSession)
	}
}

// dirs says what a session has besides the project, and what it wrote there.
func dirs(w io.Writer, s api.Session, sp *api.Space) {
	for _, d := range s.Dirs {
		how := "read-only"
		if d.Write {
			how = "what it writes there stays in this session, and isn't under review"
		}
		row(w, "folder", "%s: %s", api.Escape(d.Path), how)
		if sp == nil {
			continue
		}
		for _, x := range sp.Written {
			if x.Dir == api.Escape(d.Path) {
				row(w, "", "it wrote %s%s", strings.Join(x.Paths, ", "), map[bool]string{true: " and more"}[x.More])
			}
		}
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
		parts = append(parts, paint.Files(b.Files)+" changed or not tracked")
	default:
		parts = append(parts, "the names of "+paint.Files(b.Files))
	}
	if b := s.Base; b != nil && !b.Complete {
		parts = append(parts, "incomplete: "+b.Reason)
	}
	return strings.Join(parts, ", ")
}

// effectWords say what an action did.
func effectWords(a api.Action) string {
	if a.Effects == nil {
		return ""
	}
	return strings.Join(a.Effects.Words, "; ")
}
