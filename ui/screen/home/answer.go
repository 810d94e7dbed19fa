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

// tooSoon says so for as long as it takes to read.
func (s *Screen) tooSoon() tea.Cmd {
	s.Notice = dialog.TooSoon
	return s.after(2*time.Second, func() tea.Cmd {
		if s.Notice == dialog.TooSoon {
			s.Notice = ""
		}
		return nil
	})
}

// judge carries out a key in the inbox.
func (s *Screen) judge(i intent.Intent, repeat bool) tea.Cmd {
	e, ok := s.asked()
	switch m := i.(type) {
	case intent.Move:
		s.pick(s.inbox.cursor + m.By)
	case intent.Page:
		s.pick(s.inbox.cursor + m.By*4)
	case intent.Top:
		s.pick(0)
	case intent.Bottom:
		s.pick(len(s.inbox.entries) - 1)
	case intent.Back:
		s.inbox.here = false
	}
	if !intent.Decides(i) {
		if _, opens := i.(intent.Open); opens && ok {
			s.open(e)
		}
		return s.beneath()
	}
	if !ok {
		return nil
	}
	r := e.refs[0]
	why := s.whyNot(i, e)
	_, deny := i.(intent.Deny)
	switch {
	case why != "":
		s.Notice = why
	case s.desk.Soon(s.target(), state.Quiet, repeat):
		return s.tooSoon()
	case e.q.Subject == api.SubjectEdit:
		s.open(e) // its differences are what is decided on
	case !deny && !dialog.RowAnswers(i, e.q, s.inbox.whole):
		s.open(e)
		s.Notice = dialog.Unread
	default:
		return s.answer(r.Session, dialog.Answer(i, e.q, s.of[r.Session].Print(r.ID), true))
	}
	return nil
}

// beneath selects the session of the selected question, so that what is known of it is shown.
func (s *Screen) beneath() tea.Cmd {
	e, ok := s.asked()
	if !ok {
		return nil
	}
	s.choose(max(0, slices.IndexFunc(s.live, func(x api.Session) bool { return x.ID == e.refs[0].Session })))
	return s.look()
}

// whyNot says why a key is no answer to a row, or "".
func (s *Screen) whyNot(i intent.Intent, e heldRow) string {
	_, keep := i.(intent.Keep)
	_, back := i.(intent.Rollback)
	_, deny := i.(intent.Deny)
	edit := e.q.Subject == api.SubjectEdit
	switch {
	case s.cfg.Watching:
		return dialog.WatchingOnly
	case s.desk.Pending(e.refs[0]):
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
func (s *Screen) inQuestion(i intent.Intent, repeat bool) tea.Cmd {
	d := s.dialog
	s.Notice = ""
	if s.desk.Soon(s.target(), d.Care(i), repeat) {
		return s.tooSoon()
	}
	if why := d.Why(i); why != "" {
		s.Notice = why
		return nil
	}
	switch r := d.Handle(i).(type) {
	case nil:
	case intent.Back:
		s.shut()
	case intent.Help:
		s.below, s.dialog = d, &dialog.Help{Place: []keys.Scope{d.Scope()}, Off: d.Why}
	default:
		return s.answer(s.about, r)
	}
	return nil
}

// answer carries out what follows from a key that answers a question of a session.
func (s *Screen) answer(in string, r intent.Intent) tea.Cmd {
	st := s.of[in]
	if st == nil {
		return nil
	}
	switch r := r.(type) {
	case intent.Decide:
		return s.decide(in, r)
	case intent.AskReason:
		if q, ok := st.Fresh(r.Question, r.Print); ok {
			s.over(in, dialog.NewReason(q, r.Print, r.Equal))
		}
	case intent.AskBack: // no plan is made here: its differences are in view
		if q, ok := st.Question(r.Question); ok {
			s.over(in, dialog.NewReason(q, st.Print(q.ID), false))
		}
	case intent.AskRule:
		if q, ok := st.Fresh(r.Question, r.Print); ok {
			d := dialog.NewAlways(q, r.Print)
			s.over(in, d)
			return s.desk.Propose(in, d)
		}
	case intent.MakeRule:
		rule := r.Rule
		rule.By = "tui"
		return s.ask(s.ctx, func(ctx context.Context) then {
			made, err := s.cfg.Client.AddRule(ctx, in, rule)
			return func() tea.Cmd {
				if err != nil {
					s.refused(paint.Failed(err))
					return nil
				}
				s.Notice = dialog.RuleWords(rule)
				if made.Beaten != "" {
					s.Notice = "⚠ the rule doesn't hold: " + paint.Clean(made.Beaten) + " wins"
				}
				s.shut()
				return nil
			}
		})
	case intent.HeldStep:
		if n := len(s.inbox.entries); n > 0 {
			s.pick((s.inbox.cursor + r.By + n) % n)
			e, _ := s.asked()
			s.open(e)
		}
	}
	return nil
}

// over opens what asks more about a question, which is shown below it.
func (s *Screen) over(in string, d dialog.Dialog) { s.below, s.dialog, s.about = s.dialog, d, in }

// refused says why an answer didn't count, where the person looks.
func (s *Screen) refused(words string) {
	s.Notice = words
	if s.dialog != nil && s.about != "" {
		s.dialog.Fail(words)
	}
}

// decide sends an answer, and goes on to the next question once it was taken. Equal questions
// of other sessions get it, too; a rule that a file keeps is made once, and answers those by
// itself.
func (s *Screen) decide(in string, d intent.Decide) tea.Cmd {
	var others []answer.Ref
	first := answer.Ref{Session: in, ID: d.Question}
	for _, e := range s.inbox.entries {
		if slices.Contains(e.refs, first) && d.For != api.ExtentProject && d.For != api.ExtentAlways {
			others = e.refs
		}
	}
	return s.desk.Answer(in, d, others, func(t answer.Taken) tea.Cmd {
		of, q := "", t.Question
		if st := s.of[in]; st != nil {
			of = paint.Clean(name(st.Session)) + " "
		}
		if t.Err != nil {
			s.refused(of + dialog.Called(q, 0) + " not answered: " + paint.Failed(t.Err))
			return nil
		}
		words, _ := dialog.Told(d.Answer)
		s.Notice = words + " " + of + dialog.Called(q, t.Equal)
		if t.Held > 0 {
			s.Notice += "; " + paint.Count(t.Held, "is", "are") + " held still: " + paint.Failed(t.Why)
		}
		shown := s.dialog != nil && s.about == in && s.dialog.Target().Question == q.ID
		deep := s.below != nil || isDecision(s.dialog)
		if shown {
			s.dialog, s.below, s.about = nil, nil, ""
		}
		s.gather()
		s.desk.Decided = s.cfg.Now()
		if e, ok := s.asked(); ok && shown && deep { // whoever decides goes on
			s.open(e)
		}
		return nil
	})
}

func isDecision(d dialog.Dialog) bool {
	_, ok := d.(*dialog.Decision)
	return ok
}
