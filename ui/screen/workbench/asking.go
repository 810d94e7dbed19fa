package workbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/pane/actions"
	"stepbox/ui/state"
)

// asking is what is held: which question is selected, when keys may answer it,
// and the answers. It has the list of actions, where questions are rows.
type asking struct {
	*core
	list    actions.Pane
	dialogs stack
	rules   *ruling
	guard   state.Guard
	strip   state.Guard    // the same of the question that the Actions strip shows, whatever has the keys
	aimed   state.Target   // what that was when the leader was pressed, if it could be answered then
	pending map[int64]bool // questions whose answer is on its way
	cursor  int64          // the question that was walked to
	auto    bool           // the selection was moved to a question, not by the person
	wake    bool           // a message for the end of the quiet time is under way
	flow    flow
	presses state.Presses
}

// question is the open question of the selected action.
func (k *asking) question() (api.Question, bool) {
	if q, ok := k.st.Question(k.list.Question()); ok {
		return q, true
	}
	n := k.list.Selected()
	if n == 0 {
		return api.Question{}, false
	}
	if q, ok := k.st.Question(k.cursor); ok && q.Action == n && !q.Apart() {
		return q, true
	}
	return k.st.QuestionOf(n)
}

// watch begins the quiet time of what keys would decide now, if that is something
// else than before, and has the screen drawn when it is over.
func (k *asking) watch(target state.Target) tea.Cmd {
	now := k.cfg.Now()
	k.guard.Shown(target, now)
	wait := k.guard.Wait(now)
	if wait <= 0 || target == (state.Target{}) || k.wake {
		return nil
	}
	k.wake = true
	return k.after(wait, func() tea.Cmd {
		k.wake = false
		return nil
	})
}

// follow keeps the selection on what waits while the person isn't using the list.
func (k *asking) follow(focus intent.Pane) {
	follows := k.list.List.Follows()
	if _, held := k.question(); held && !follows {
		return // it stays until it is answered, whatever else comes up
	}
	if focus == intent.Actions && !follows && !k.auto {
		return
	}
	if len(k.st.Questions) > 0 {
		if k.list.SelectQuestion(k.st.Questions[0]) {
			k.cursor, k.auto = k.st.Questions[0].ID, true
		}
		return
	}
	if k.auto {
		k.list.List.Follow()
		k.auto = false
	}
}

// open opens a question, unless that is what is open.
func (k *asking) open(q api.Question) {
	if d, ok := k.dialogs.top().(*dialog.Decision); ok && d.Target().Question == q.ID {
		return
	}
	k.cursor = q.ID
	k.list.SelectQuestion(q)
	d := dialog.NewDecision(q, k.st.Print(q.ID))
	if k.cfg.Watching {
		d.Off = dialog.WatchingOnly
	}
	k.dialogs.open(d)
}

// walk goes to the next held thing from the focused pane, and opens it when opened
// is set.
func (k *asking) walk(by int, opened bool, focus intent.Pane) {
	n := len(k.st.Questions)
	if n == 0 {
		return
	}
	cursor := k.cursor
	if cur, ok := k.question(); ok {
		cursor = cur.ID
	}
	at := slices.IndexFunc(k.st.Questions, func(q api.Question) bool { return q.ID == cursor })
	switch {
	case !opened && focus != intent.Actions && at >= 0:
		// Coming from another pane, the selected one is the next one.
	case at < 0:
		at = 0
	default:
		at = ((at+by)%n + n) % n
	}
	q := k.st.Questions[at]
	k.cursor, k.auto = q.ID, false
	k.list.SelectQuestion(q)
	if opened {
		k.open(q)
	}
}

// decide sends an answer, unless what it answers isn't what is held. focus says
// where the focus is when that has been answered.
func (k *asking) decide(d intent.Decide, focus func() intent.Pane) tea.Cmd {
	q, ok := k.st.Question(d.Question)
	switch {
	case k.past():
		k.refused(d.Question, isPast)
		return nil
	case !ok:
		k.refused(d.Question, "not answered: "+k.whyClosed(d.Question))
		return nil
	case q.Hash != d.Hash:
		k.refused(d.Question, changed)
		return nil
	case k.pending[q.ID]:
		k.tell(themes.Info, "the answer to %s is on its way", dialog.Called(q, 0))
		return nil
	}
	k.pending[q.ID], k.flow.decided = true, k.cfg.Now()
	wait, print := k.presses.Wait(), k.st.Print(q.ID)
	if wait == nil {
		return k.send(q, d, focus)
	}
	return k.after(state.Repeat, func() tea.Cmd {
		switch {
		case wait.Held:
			k.refused(q.ID, state.HeldDown)
		case k.st.Print(q.ID) != print:
			k.refused(q.ID, changed)
		default:
			return k.send(q, d, focus)
		}
		delete(k.pending, q.ID)
		return nil
	})
}

const changed = "not answered: the question changed: look again"

// send sends an answer.
func (k *asking) send(q api.Question, d intent.Decide, focus func() intent.Pane) tea.Cmd {
	answer := api.Decision{Question: d.Question, Hash: d.Hash, Answer: d.Answer, Reason: d.Reason, For: d.For, Pattern: d.Pattern, By: "tui"}
	equal := k.equal(d)
	return k.long("answering", func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		closed, err := c.Decide(ctx, id, answer)
		var more []api.Question
		for i := 0; i < len(equal) && err == nil; i++ {
			answer.Question, answer.Hash, answer.With = equal[i].ID, equal[i].Hash, d.Question
			if q, err := c.Decide(ctx, id, answer); err == nil { // else it is asked about still, or is closed
				more = append(more, q)
			}
		}
		return func() tea.Cmd {
			delete(k.pending, q.ID)
			if err != nil {
				k.refused(q.ID, fmt.Sprintf("%s not answered: %s", dialog.Called(q, 0), paint.Failed(err)))
				k.first(q, err)
				return nil
			}
			docked := k.dialogs.shows(q.ID)
			if rule, ok := ruleOf(q, d); ok {
				k.rules.made(rule)
			} else {
				words, token := dialog.Told(d.Answer)
				k.tell(token, "%s %s", words, dialog.Called(q, len(more)))
			}
			k.present().Answered(closed)
			for _, q := range more {
				k.present().Answered(q)
			}
			k.answered(q.ID, docked, focus())
			return nil
		}
	})
}

// answered goes on after a question was answered, in the dock or in a list.
func (k *asking) answered(question int64, docked bool, focus intent.Pane) {
	k.dialogs.closeFor(question)
	k.auto = k.auto || focus == intent.Actions
	k.flow.listed = focus == intent.Actions
	k.follow(focus)
	if !docked {
		k.readable(focus)
		return
	}
	k.flow.decided = k.cfg.Now()
	k.next(focus)
}

// first goes from a command that wasn't let run to the changes that come first, if that
// is why.
func (k *asking) first(q api.Question, err error) {
	var p *api.Problem
	i := slices.IndexFunc(k.st.Questions, func(o api.Question) bool { return o.Subject == api.SubjectEdit && !k.pending[o.ID] })
	if i < 0 || !errors.As(err, &p) || p.Code != api.CodeBusy || q.Subject != api.SubjectCommand || !k.dialogs.shows(q.ID) {
		return
	}
	k.dialogs.closeFor(q.ID)
	k.open(k.st.Questions[i])
}

// equal are the others that an answer is for. Rules answer what else they are about.
func (k *asking) equal(d intent.Decide) []api.Question {
	if !d.Equal || d.For != "" {
		return nil
	}
	return k.st.Equal(d.Question)
}

// readDiffs has the differences read that the opened question lacks.
func (k *asking) readDiffs() tea.Cmd {
	d, ok := k.dialogs.top().(*dialog.Decision)
	if !ok {
		return nil
	}
	n := d.Lacks()
	if n == 0 {
		return nil
	}
	read := func(ctx context.Context, c link.Client, id string) ([]api.FileDiff, error) {
		return dialog.Differences(c.Diffs(ctx, id, api.Scope{Action: n}))
	}
	return ask(k.core, "", read, func(diffs []api.FileDiff, err error) tea.Cmd {
		d.SetDiffs(diffs, paint.Failed(err))
		return nil
	})
}

// refused says that an answer didn't count, where the person looks.
func (k *asking) refused(question int64, words string) {
	k.dialogs.fail(question, words)
	k.tell(themes.Warn, "%s", words)
}

func (k *asking) whyClosed(id int64) string {
	if k.Over() {
		return "the session has ended"
	}
	return paint.Clean(cmp.Or(k.st.Closed(id), "it is no longer held"))
}

// whole says whether the strip shows all that a decision on the question covers.
func (k *asking) whole(dst uv.Screen, q api.Question) bool {
	if q.Apart() {
		return dialog.Plain(q) && k.list.WholeQuestion(dst, q)
	}
	a, ok := k.st.Action(q.Action)
	return ok && dialog.Plain(q) && a.Title == q.Title && k.list.Whole(dst, a)
}

// ruler is a screen to measure text with when none is being drawn.
func (k *asking) ruler() uv.Screen {
	b := uv.NewScreenBuffer(0, 0)
	b.Method = k.cfg.Method()
	return paint.Screen{ScreenBuffer: b, Signs: k.cfg.Signs()}
}
