package workbench

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/answer"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// ruling is what makes rules of answers, and takes them back.
type ruling struct {
	*core
	dialogs *dialog.Stack
	desk    *answer.Desk
	typing  func() bool // the focus is where keys are the agent's
}

// ask opens what asks which rule the answer to a question becomes, and has rules
// proposed for it.
func (r *ruling) ask(q api.Question) tea.Cmd {
	d := dialog.NewAlways(q, r.st.Print(q.ID))
	r.dialogs.Open(d)
	return r.desk.Propose(r.link.ID, d)
}

// once does what a key is for, unless that is held down since it was pressed first.
func (r *ruling) once(do func() tea.Cmd) tea.Cmd {
	return r.desk.Known(func(held bool) tea.Cmd {
		if held {
			r.answerKey(themes.Warn, state.HeldDown)
			return nil
		}
		return do()
	})
}

// make makes a rule; d is where that was asked, or nil.
func (r *ruling) make(rule api.Rule, d dialog.Dialog) tea.Cmd {
	rule.By = "tui"
	add := func(ctx context.Context, c link.Client, id string) (api.Ruled, error) {
		return c.AddRule(ctx, id, rule)
	}
	made := func(s api.Ruled, err error) {
		if err != nil {
			r.failed(d, err)
			return
		}
		r.present().Apply(api.Event{Session: &s.Session})
		if d != nil {
			r.dialogs.Close(d)
		}
		if r.made(rule); s.Beaten != "" {
			r.warn("⚠ the rule doesn't hold: %s wins", s.Beaten)
		}
	}
	do := func() tea.Cmd {
		r.desk.Decided = r.cfg.Now()
		return ask(r.core, "making the rule", add, made)
	}
	if d != nil {
		return r.desk.Once(d, do)
	}
	return r.once(do)
}

// take takes a rule back; d is where that was asked, or nil.
func (r *ruling) take(rule api.Rule, d dialog.Dialog) tea.Cmd {
	remove := func(ctx context.Context, c link.Client, id string) (api.Session, error) {
		return c.RemoveRule(ctx, id, rule)
	}
	return ask(r.core, "forgetting the rule", remove, func(s api.Session, err error) {
		if err != nil {
			r.failed(d, err)
			return
		}
		r.present().Apply(api.Event{Session: &s})
		r.tell(themes.OK, "✓ forgotten: %s", dialog.RuleWords(rule))
	})
}

func (r *ruling) failed(d dialog.Dialog, err error) {
	if d != nil {
		d.Fail(paint.Failed(err))
	}
	r.fail(err)
}

// made says that a rule holds, and what takes it back: a key that does so where the keys
// are, however the focus moves while that stands there.
func (r *ruling) made(rule api.Rule) {
	mark, k := "✓", themes.OK
	if rule.Verdict == api.Deny {
		mark, k = "✗", themes.Denied
	}
	r.tell(k, "%s %s", mark, dialog.RuleWords(rule))
	r.notice.more = func() string {
		key := keys.First(intent.Forget{}, keys.Panes)
		if r.typing() || r.dialogs.Top() != nil {
			key = afterLeader(intent.Forget{})
		}
		return " · " + key + " forgets it"
	}
}

// ruleOf is the rule that an answer becomes, and whether it does.
func ruleOf(q api.Question, d intent.Decide) (api.Rule, bool) {
	r := api.Rule{Verdict: api.Allow, For: d.For}
	if d.Answer == api.AnswerDeny {
		r.Verdict = api.Deny
	}
	switch {
	case q.Connection != nil:
		if r.Host = d.Pattern; r.Host == "" {
			r.Host = q.Connection.Rule
		}
	case d.Pattern != "":
		r.Command = d.Pattern
	case q.Command != nil:
		r.Command = q.Command.Line
	}
	return r, q.Request == nil && d.For != "" && d.For != api.ExtentOnce
}

// newest is the rule that was made last.
func (r *ruling) newest() (api.Rule, bool) {
	if all := r.present().Session.Rules; len(all) > 0 {
		return all[0], true
	}
	return api.Rule{}, false
}
