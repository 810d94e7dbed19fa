package home

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/answer"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// tooSoon says so for as long as it takes to read, or that it never is time in so little room.
func (b *inbox) tooSoon(why string) tea.Cmd {
	if b.blind {
		b.Notice = "too little room to answer"
		return nil
	}
	b.Notice = why
	return b.after(2*time.Second, func() tea.Cmd {
		if b.Notice == why {
			b.Notice = ""
		}
		return nil
	})
}

// judge carries out a key in the inbox.
func (b *inbox) judge(i intent.Intent, repeat bool) tea.Cmd {
	e, ok := b.asked()
	switch m := i.(type) {
	case intent.Move:
		b.pick(b.cursor + m.By)
	case intent.Page:
		b.pick(b.cursor + m.By*4)
	case intent.Top:
		b.pick(0)
	case intent.Bottom:
		b.pick(len(b.entries) - 1)
	case intent.Back:
		b.here = false
	case intent.Open:
		if ok {
			b.open(e)
		}
	}
	if !ok || !intent.Decides(i) {
		return nil
	}
	r := e.refs[0]
	why := b.whyNot(i, e)
	_, deny := i.(intent.Deny)
	var cmd tea.Cmd
	switch {
	case why != "":
		b.Notice = why
	case b.blind:
		cmd = b.tooSoon("")
	case e.q.Subject == api.SubjectEdit:
		b.open(e) // its differences are what is decided on
	case !deny && !dialog.RowAnswers(i, e.q, b.whole):
		b.open(e)
		b.Notice = dialog.Unread
	default:
		care := state.AtOnce // it asks once more
		if dialog.Settles(i, e.q) {
			care = state.Quiet
		}
		soon := b.desk.Soon(b.target(), care, repeat)
		if soon == "" {
			return b.answer(r.Session, dialog.Answer(i, e.q, b.of[r.Session].Print(r.ID), true))
		}
		cmd = b.tooSoon(soon)
	}
	b.desk.Lose(i)
	return cmd
}

// whyNot says why a key is no answer to a row, or "".
func (b *inbox) whyNot(i intent.Intent, e heldRow) string {
	_, keep := i.(intent.Keep)
	_, back := i.(intent.Rollback)
	_, deny := i.(intent.Deny)
	edit := e.q.Subject == api.SubjectEdit
	switch {
	case b.cfg.Watching:
		return dialog.WatchingOnly
	case b.desk.Pending(e.refs[0]):
		return dialog.OnItsWay
	case keep && !edit, back && !edit:
		return "it hasn't run: a approves it, d denies it"
	case deny:
		return ""
	}
	return dialog.WhyNot(i, e.q)
}

// inQuestion lets an opened question handle an intent. What decides has to wait until it
// was in view long enough, and the keyboard quiet.
func (b *inbox) inQuestion(i intent.Intent, repeat bool) tea.Cmd {
	d := b.dialogs.Top()
	b.Notice = ""
	soon := b.desk.Soon(b.target(), d.Care(i), repeat)
	if soon != "" || b.blind && intent.Decides(i) {
		b.desk.Lose(i)
		return b.tooSoon(soon)
	}
	if why := d.Why(i); why != "" {
		b.desk.Lose(i)
		b.Notice = why
		return nil
	}
	switch r := d.Handle(i).(type) {
	case nil:
	case intent.Back:
		b.shut()
	case intent.Help:
		b.dialogs.Open(&dialog.Help{Place: []keys.Scope{d.Scope()}, Off: d.Why})
	default:
		return b.answer(b.about, r)
	}
	return nil
}

// answer carries out what follows from a key that answers a question of a session.
func (b *inbox) answer(in string, r intent.Intent) tea.Cmd {
	st := b.of[in]
	if st == nil {
		return nil
	}
	switch r := r.(type) {
	case intent.Decide:
		return b.decide(in, r)
	case intent.AskReason:
		if q, ok := st.Fresh(r.Question, r.Print); ok {
			b.over(in, dialog.NewReason(q, r.Print, r.Equal))
		}
	case intent.AskBack: // no plan is made here: its differences are in view
		if q, ok := st.Question(r.Question); ok {
			b.over(in, dialog.NewReason(q, st.Print(q.ID), false))
		}
	case intent.AskRule:
		if q, ok := st.Fresh(r.Question, r.Print); ok {
			d := dialog.NewAlways(q, r.Print)
			b.over(in, d)
			return b.desk.Propose(in, d)
		}
	case intent.MakeRule:
		rule := r.Rule
		rule.By = "tui"
		return b.ask(b.ctx, func(ctx context.Context) then {
			made, err := b.cfg.Client.AddRule(ctx, in, rule)
			return func() tea.Cmd {
				if err != nil {
					b.refused(paint.Failed(err))
					return nil
				}
				b.Notice = dialog.RuleWords(rule)
				if made.Beaten != "" {
					b.Notice = "⚠ the rule doesn't hold: " + paint.Clean(made.Beaten) + " wins"
				}
				b.shut()
				return nil
			}
		})
	case intent.HeldStep:
		if n := len(b.entries); n > 0 {
			b.pick((b.cursor + r.By + n) % n)
			e, _ := b.asked()
			b.open(e)
		}
	}
	return nil
}

// over opens what asks more about a question, over that if it is open.
func (b *inbox) over(session string, d dialog.Dialog) {
	b.dialogs.Open(d)
	b.about = session
}

// refused says why an answer didn't count, where the person looks.
func (b *inbox) refused(words string) {
	b.Notice = words
	if d := b.dialogs.Top(); d != nil && b.about != "" {
		d.Fail(words)
	}
}

// decide sends an answer, and goes on to the next question once it was taken. Equal questions
// of other sessions get it, too; a rule that a file keeps is made once, and answers those by
// itself.
func (b *inbox) decide(in string, d intent.Decide) tea.Cmd {
	var others []answer.Ref
	first := answer.Ref{Session: in, ID: d.Question}
	for _, e := range b.entries {
		if slices.Contains(e.refs, first) && d.For != api.ExtentProject && d.For != api.ExtentAlways {
			others = e.refs
		}
	}
	return b.desk.Answer(in, d, others, func(t answer.Taken) tea.Cmd {
		of, q := "", t.Question
		if st := b.of[in]; st != nil {
			of = paint.Clean(name(st.Session)) + " "
		}
		if t.Err != nil {
			b.refused(of + dialog.Called(q, 0) + " not answered: " + paint.Failed(t.Err))
			return nil
		}
		words, _ := dialog.Told(q, d.Answer)
		b.Notice = words + " " + of + dialog.Called(q, t.Equal)
		if t.Held > 0 {
			b.Notice += "; " + paint.Count(t.Held, "is", "are") + " held still: " + paint.Failed(t.Why)
		}
		top, deep := b.dialogs.Top(), b.dialogs.Shows(q.ID)
		shown := top != nil && b.about == in && top.Target().Question == q.ID
		if shown {
			b.dialogs, b.about = dialog.Stack{}, ""
		}
		b.gather()
		b.desk.Decided = b.cfg.Now()
		if e, ok := b.asked(); ok && shown && deep { // whoever decides goes on
			b.open(e)
		}
		return nil
	})
}
