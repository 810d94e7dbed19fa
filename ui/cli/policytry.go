package cli

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// pastFlags say which recorded sessions are meant.
type pastFlags struct {
	sessions []string
	since    string
	folder   string
	all      bool
}

func (p *pastFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&p.sessions, "session", "s", nil, "this session alone; may be given more than once")
	f.StringVar(&p.since, "since", "", "sessions that were started since: 90m, 3d, 2w or 2026-01-31")
	f.StringVar(&p.folder, "folder", "", "sessions of this project folder, and of those below it (this one)")
	f.BoolVar(&p.all, "all", false, "sessions of all folders")
	cmd.MarkFlagsMutuallyExclusive("session", "folder", "all")
}

// of is which sessions the flags mean.
func (p *pastFlags) of(c command) (of api.PastOf, err error) {
	for _, word := range p.sessions {
		s, err := c.toRead(word)
		if err != nil {
			return of, err
		}
		of.Sessions = append(of.Sessions, s.ID)
	}
	if of.Since, err = moment(p.since); err != nil || p.all || len(of.Sessions) > 0 {
		return of, err
	}
	of.Folder, err = real(p.folder)
	return of, err
}

// errLetsThrough ends policy try where a file would let through what a person denied.
var errLetsThrough = errors.New("it would let through what a person denied")

func policyTry(connect Connect) *cobra.Command {
	var past pastFlags
	var as string
	cmd := wrap(connect, "try [FILE]", "Say what rules would have said of what recorded sessions did", cobra.MaximumNArgs(1), func(c command, args []string) error {
		r := api.PolicyTry{}
		var err error
		if r.PastOf, err = past.of(c); err != nil {
			return err
		}
		if len(args) == 1 {
			if r.File, err = filepath.Abs(args[0]); err != nil {
				return err
			}
		}
		switch as {
		case "user":
			r.As = api.ExtentAlways
		case "project":
			r.As = api.ExtentProject
		default:
			return usage("--as is user or project, not %q", as)
		}
		return c.try(r)
	})
	cmd.Long = "Have a file of rules judge what this folder's recorded sessions did, as if it stood in the place of your policy, and\n" +
		"compare that with the rules that hold now and with what you answered: first what was denied and would be let\n" +
		"through, then what would be asked, denied, and saved. Without FILE the rules that hold now are tried, to see how much\n" +
		"they ask. Nothing is changed. Ends with 1 if anything would be let through that a person denied."
	cmd.Example = "  stepbox policy try new-policy.yaml --since 30d\n  stepbox policy try .stepbox.yaml --as project --json"
	past.flags(cmd)
	cmd.Flags().StringVar(&as, "as", "user", "in whose place the file's rules stand: user or project")
	return cmd
}

// try has rules tried, and says how they differ.
func (c command) try(r api.PolicyTry) error {
	t, err := pastDone(c.client.TryPolicy(c.ctx, r))
	if err != nil {
		return err
	}
	if err := c.print(t, func(w io.Writer) { printTried(w, r, t) }); err != nil {
		return err
	}
	if t.Denied > 0 {
		return fmt.Errorf("%w: %s", errLetsThrough, paint.Count(t.Denied, "time", "times"))
	}
	return nil
}

// pastDone is what came of something that goes through recorded sessions. How far it is
// is shown meanwhile.
func pastDone[T any](lines iter.Seq2[api.PastTold[T], error]) (*T, error) {
	show, done := progressOn(os.Stderr)
	defer done()
	for p, err := range lines {
		switch {
		case err != nil:
			return nil, err
		case p.Problem != nil:
			return nil, p.Problem
		case p.Done != nil:
			return p.Done, nil
		}
		show(fmt.Sprintf("%d of %d sessions", p.Number, p.Of))
	}
	return nil, errors.New("it ended without an answer: start it again")
}

// shownChanges is how many lines of each list are printed; --json has all.
const shownChanges = 20

func printTried(w io.Writer, r api.PolicyTry, t *api.PolicyTried) {
	fmt.Fprintf(w, "%s: %s, %s that these started, %s\n", paint.Count(t.Sessions, "session", "sessions"),
		paint.Count(t.Commands, "command", "commands"), paint.Count(t.Programs, "program", "programs"), paint.Count(t.Connections, "connection", "connections"))
	row := func(what string, c api.QuestionCount) {
		fmt.Fprintf(w, "  %-28s %s", what, questions(c))
		if t.Sessions > 0 {
			fmt.Fprintf(w, ", %.2f for each session", float64(c.Total())/float64(t.Sessions))
		}
		fmt.Fprintln(w)
	}
	row("were asked then", t.Then)
	row("by the rules of now", t.Now)
	if r.File != "" {
		row("with "+short(r.File), t.With)
	}
	row("in step mode", t.Step)
	if r.File != "" && t.Same() {
		fmt.Fprintln(w, "no difference")
	}
	changes(w, "would let through what was denied, or waited unanswered", t.LetThrough)
	changes(w, "would ask", t.Asked)
	changes(w, "would deny", t.Stopped)
	changes(w, "would not ask any more", t.Saved)
	changes(w, "can't be told: the record doesn't have enough", t.Unknown)
	if t.More > 0 {
		fmt.Fprintf(w, "\nand %s more of other kinds: look at fewer sessions at a time\n", paint.Count(t.More, "difference", "differences"))
	}
	if t.AsNow > 0 {
		fmt.Fprintf(w, "\n%s that a person denied in step mode run by the rules of now as well: those ask about less\n", paint.Count(t.AsNow, "thing", "things"))
	}
}

func questions(c api.QuestionCount) string {
	out := fmt.Sprintf("%s (%d on commands, %d on connections", paint.Count(c.Total(), "question", "questions"), c.Commands, c.Connections)
	if c.Edits > 0 {
		out += fmt.Sprintf(", %d on changes", c.Edits)
	}
	if out += ")"; c.Unknown > 0 {
		out += fmt.Sprintf(", %d can't be told", c.Unknown)
	}
	return out
}

func changes(w io.Writer, title string, list []api.PolicyChange) {
	if len(list) == 0 {
		return
	}
	times := 0
	for _, p := range list {
		times += p.Times
	}
	fmt.Fprintf(w, "\n%s (%d):\n", title, times)
	for i, p := range list {
		if i == shownChanges {
			fmt.Fprintf(w, "  and %d more kinds (--json has all)\n", len(list)-i)
			break
		}
		fmt.Fprintf(w, "  %s\n      %s; %s\n      now  %s\n      with %s\n", cut(p.What, 120), happened(p), where(p.Newest), says(p.Now), says(p.With))
	}
}

// happened says how often something was, and what became of it.
func happened(p api.PolicyChange) string {
	out := paint.Count(p.Times, "time", "times") + " in " + paint.Count(p.Sessions, "session", "sessions")
	for _, n := range []struct {
		n    int
		what string
	}{{p.Denied, "denied"}, {p.Approved, "approved"}, {p.Waited, "unanswered"}} {
		if n.n > 0 {
			out += fmt.Sprintf(", %s %d", n.what, n.n)
		}
	}
	if p.By != "" && p.Denied+p.Approved > 0 {
		out += " (last by " + p.By + ")"
	}
	return out
}

// where is the command that shows something in the record.
func where(p api.Past) string {
	if p.Action > 0 {
		return fmt.Sprintf("stepbox show %s %d", p.Session, p.Action)
	}
	return fmt.Sprintf("stepbox show %s --at %s", p.Session, p.Moment)
}

func says(s api.PolicySays) string {
	out := string(s.Verdict) + ": " + cut(s.Rule, 160)
	if where := standing(s.Ruling); where != "" {
		out += " (" + where + ")"
	}
	return out
}
