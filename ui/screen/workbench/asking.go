package workbench

import (
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/answer"
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
	dialogs dialog.Stack
	rules   *ruling
	find    *finding
	desk    answer.Desk
	strip   state.Guard  // as the desk's, of the question that the Actions strip shows, whatever has the keys
	aimed   state.Target // what that was when the leader was pressed, if it could be answered then
	cursor  int64        // the question that was walked to
	auto    bool         // the selection was moved to a question, not by the person
	flow    flow
}

// screen is what the desk works with.
func (k *asking) screen() answer.Screen {
	return answer.Screen{
		Client: k.cfg.Client, Now: k.cfg.Now, After: k.after,
		State:   func(string) *state.State { return k.present() },
		Over:    func(string) bool { return k.Over() },
		Refused: func(r answer.Ref, words string) { k.refused(r.ID, words) },
		Do: func(doing string, f func(context.Context) func() tea.Cmd) tea.Cmd {
			r := func(ctx context.Context, _ link.Client, _ string) func() tea.Cmd { return f(ctx) }
			if doing == "" {
				return k.do(r)
			}
			return k.long(doing, r)
		},
	}
}

// pending says whether an answer to a question is on its way.
func (k *asking) pending(q api.Question) bool {
	return k.desk.Pending(answer.Ref{Session: k.link.ID, ID: q.ID})
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
	if d, ok := k.dialogs.Top().(*dialog.Decision); ok && d.Target().Question == q.ID {
		return
	}
	k.cursor = q.ID
	k.list.SelectQuestion(q)
	d := dialog.NewDecision(q, k.st.Print(q.ID))
	d.Off = k.off()
	k.dialogs.Open(d)
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
	if k.past() {
		k.refused(d.Question, isPast)
		return nil
	}
	return k.desk.Answer(k.link.ID, d, nil, func(t answer.Taken) tea.Cmd {
		q := t.Question
		if t.Err != nil {
			k.refused(q.ID, fmt.Sprintf("%s not answered: %s", dialog.Called(q, 0), paint.Failed(t.Err)))
			k.first(q, t.Err)
			return nil
		}
		docked := k.dialogs.Shows(q.ID)
		if rule, ok := ruleOf(q, d); ok {
			k.rules.made(rule)
		} else {
			words, token := dialog.Told(q, d.Answer)
			k.tell(token, "%s %s", words, dialog.Called(q, t.Equal))
		}
		k.answered(q.ID, docked, focus())
		return nil
	})
}

// answered goes on after a question was answered, in the dock or in a list.
func (k *asking) answered(question int64, docked bool, focus intent.Pane) {
	k.dialogs.CloseFor(question)
	k.auto = k.auto || focus == intent.Actions
	k.flow.listed = focus == intent.Actions
	k.follow(focus)
	if !docked {
		k.readable(focus)
		return
	}
	k.desk.Decided = k.cfg.Now()
	k.next(focus)
}

// first goes from a command that wasn't let run to the changes that come first, if that
// is why.
func (k *asking) first(q api.Question, err error) {
	i := slices.IndexFunc(k.st.Questions, func(o api.Question) bool { return o.Subject == api.SubjectEdit && !k.pending(o) })
	if i < 0 || api.CodeOf(err) != api.CodeBusy || q.Subject != api.SubjectCommand || !k.dialogs.Shows(q.ID) {
		return
	}
	k.dialogs.CloseFor(q.ID)
	k.open(k.st.Questions[i])
}

// refused says that an answer didn't count, where the person looks.
func (k *asking) refused(question int64, words string) {
	k.dialogs.Fail(question, words)
	k.warn("%s", words)
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
