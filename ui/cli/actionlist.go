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
