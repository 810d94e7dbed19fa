package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

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
	for _, s := range q.Connection.Sent() {
		row(w, "sends", "%s", s)
	}
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

// Bounds of an action's title in a list, in characters.
const (
	mostTitle  = 100
	leastTitle = 24
)

// actionList is how actions are listed.
type actionList struct {
	cols int  // of the terminal; 0: there is none, and a row may be of any width
	all  bool // the agent's housekeeping too, else runs of it are folded
}

// actionList is how the actions of a session are listed where the command prints.
func (c command) actionList(all bool) actionList {
	l := actionList{all: all}
	if isTerminal(c.out) {
		l.cols, _ = Size()
	}
	return l
}

// printActions lists a session's actions, and what is held.
func printActions(w io.Writer, l actionList, actions []api.Action, questions []api.Question) {
	fmt.Fprintln(w)
	room, folded := l.room(actions), 0
	unfold := func() {
		if folded > 0 {
			fmt.Fprintf(w, "    …\t\t%d of housekeeping (--all)\t\n", folded)
		}
		folded = 0
	}
	for _, a := range actions {
		if l.folds(a) {
			folded++
			continue
		}
		unfold()
		fmt.Fprintln(w, actionLine(a, room))
	}
	unfold()
	if len(questions) > 0 {
		fmt.Fprintln(w)
	}
	for _, q := range questions {
		what := fmt.Sprintf("#%d", q.Action)
		switch {
		case q.Connection != nil:
			what = "connection"
		case q.Request != nil:
			what = fmt.Sprintf("request q%d", q.ID)
		}
		fmt.Fprintf(w, "held: %s\t%s\t(%s)\n", what, cut(q.Title, room), q.Rule)
		for _, s := range q.Connection.Sent() {
			fmt.Fprintf(w, "sends:\t%s\n", cut(s, 200))
		}
		if i := slices.IndexFunc(actions, func(a api.Action) bool { return a.N == q.Action && a.Said() != "" }); i >= 0 {
			fmt.Fprintf(w, "said:\t%s\n", cut(actions[i].Said(), 200))
		}
	}
}

// folds says whether an action isn't listed by itself: what is held, though, is.
func (l actionList) folds(a api.Action) bool {
	return !l.all && a.Housekeeping && a.State != api.ActionHeld
}

// room is how long titles may be, so that rows fit the terminal's width beside what else
// stands in most of them. A row with more than a third of it behind the title is broken.
func (l actionList) room(actions []api.Action) int {
	if l.cols == 0 {
		return mostTitle
	}
	state, more := 0, 0
	for _, a := range actions {
		if !l.folds(a) {
			state = max(state, utf8.RuneCountInString(stateWords(a)))
			more = max(more, utf8.RuneCountInString(moreWords(a)))
		}
	}
	const number, gaps = 5, 6
	return min(max(l.cols-number-gaps-state-min(more, l.cols/3), leastTitle), mostTitle)
}

// stateWords say how an action stands.
func stateWords(a api.Action) string {
	switch {
	case a.State == api.ActionHeld:
		return "HELD"
	case a.Exit != nil:
		return a.Exit.Marked()
	}
	return string(a.State)
}

// moreWords say what became of it.
func moreWords(a api.Action) string {
	var more []string
	if a.Files > 0 {
		more = append(more, fmt.Sprintf("%s +%d -%d", paint.Files(a.Files), a.Added, a.Removed))
	}
	if did := effectWords(a); did != "" {
		more = append(more, did)
	}
	if a.Review != api.ReviewNone {
		more = append(more, string(a.Review))
	}
	if a.State == api.ActionDenied && a.Reason != "" {
		more = append(more, a.Reason)
	}
	if a.LeftRunning > 0 {
		more = append(more, fmt.Sprintf("%d left running", a.LeftRunning))
	}
	if a.Housekeeping {
		more = append(more, "housekeeping")
	}
	return strings.Join(more, ", ")
}

// actionLine is an action as a row of a list, its title no longer than room.
func actionLine(a api.Action, room int) string {
	return fmt.Sprintf("%5s\t%s\t%s\t%s", fmt.Sprintf("#%d", a.N), stateWords(a), cut(a.Title, room), moreWords(a))
}
