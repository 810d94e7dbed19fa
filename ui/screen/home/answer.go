package home

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
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
	switch _, always := i.(intent.Always); {
	case why != "":
		s.Notice = why
	case repeat || !s.inbox.guard.Takes(s.target(), state.Quiet, s.cfg.Now()):
		return s.tooSoon()
	case e.q.Subject == api.SubjectEdit:
		s.open(e) // its differences are what is decided on
	case intent.AnswerTo(i) == "" && !always: // it is denied, in words
		s.dialog, s.about = dialog.NewReason(e.q, s.of[r.session].Print(r.id), true), r.session
	case !(dialog.Plain(e.q) && s.inbox.whole) && !(always && e.q.Connection != nil && e.q.Connection.Host == ""):
		s.open(e)
		s.Notice = dialog.Unread
	case always && e.q.Request != nil:
		return s.decide(r.session, intent.Decide{Question: r.id, Hash: e.q.Hash, Answer: api.AnswerApprove, For: api.ExtentSession})
	case always:
		return s.askRule(r.session, e.q)
	default:
		return s.decide(r.session, intent.Decide{Question: r.id, Hash: e.q.Hash, Answer: intent.AnswerTo(i), Equal: true})
	}
	return nil
}

// beneath selects the session of the selected question, so that what is known of it is shown.
func (s *Screen) beneath() tea.Cmd {
	e, ok := s.asked()
	if !ok {
		return nil
	}
	s.choose(max(0, slices.IndexFunc(s.live, func(x api.Session) bool { return x.ID == e.refs[0].session })))
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
	case s.inbox.pending[e.refs[0]]:
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
	if care := d.Care(i); care != state.AtOnce && (repeat || !s.inbox.guard.Takes(s.target(), care, s.cfg.Now())) {
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
		return s.question(r)
	}
	return nil
}

// question carries out what followed from a key in an opened question.
func (s *Screen) question(r intent.Intent) tea.Cmd {
	st := s.of[s.about]
	if st == nil {
		return nil
	}
	fresh := func(id int64, print string) (api.Question, bool) {
		q, ok := st.Question(id)
		return q, ok && st.Print(id) == print
	}
	switch r := r.(type) {
	case intent.Decide:
		return s.decide(s.about, r)
	case intent.AskReason:
		if q, ok := fresh(r.Question, r.Print); ok {
			s.below, s.dialog = s.dialog, dialog.NewReason(q, r.Print, true)
		}
	case intent.AskRule:
		if q, ok := fresh(r.Question, r.Print); ok {
			s.below = s.dialog
			return s.askRule(s.about, q)
		}
	case intent.MakeRule:
		rule, id := r.Rule, s.about
		rule.By = "tui"
		return s.ask(s.ctx, func(ctx context.Context) then {
			made, err := s.cfg.Client.AddRule(ctx, id, rule)
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

// askRule opens what asks which rule an answer becomes.
func (s *Screen) askRule(session string, q api.Question) tea.Cmd {
	print := s.of[session].Print(q.ID)
	s.about = session
	d := dialog.NewAlways(q, print)
	if s.dialog = d; !d.Lacks() {
		return nil
	}
	return s.ask(s.ctx, func(ctx context.Context) then {
		p, err := s.cfg.Client.Proposals(ctx, session, q.ID)
		return func() tea.Cmd {
			d.Set(p, err)
			return nil
		}
	})
}

// refused says why an answer didn't count, where the person looks.
func (s *Screen) refused(words string) {
	s.Notice = words
	if s.dialog != nil && s.about != "" {
		s.dialog.Fail(words)
	}
}

// asked to be answered: a question with what it had when it was shown.
type answer struct {
	ref
	api.Decision
}

// answers are all that a decision is sent to: the question, those of its session that read
// the same, and those of other sessions; a rule that a file keeps is made once, and answers
// the others by itself.
func (s *Screen) answers(in string, d intent.Decide) []answer {
	all := []ref{{in, d.Question}}
	for _, e := range s.inbox.entries {
		if slices.Contains(e.refs, all[0]) && d.For != api.ExtentProject && d.For != api.ExtentAlways {
			all = append(all, e.refs...)
		}
	}
	if d.Equal && d.For == "" {
		for _, r := range slices.Clone(all) {
			for _, q := range s.of[r.session].Equal(r.id) {
				all = append(all, ref{r.session, q.ID})
			}
		}
	}
	var out []answer
	first := map[string]int64{}
	for _, r := range all {
		q, open := s.of[r.session].Question(r.id)
		if !open || slices.ContainsFunc(out, func(a answer) bool { return a.ref == r }) {
			continue
		}
		a := answer{r, api.Decision{Question: r.id, Hash: q.Hash, Answer: d.Answer, Reason: d.Reason, For: d.For, Pattern: d.Pattern, By: "tui", With: first[r.session]}}
		if first[r.session] == 0 {
			first[r.session] = r.id
		}
		out = append(out, a)
	}
	return out
}

// decide sends an answer, unless what it answers isn't what is held.
func (s *Screen) decide(in string, d intent.Decide) tea.Cmd {
	st := s.of[in]
	if st == nil {
		return nil
	}
	q, open := st.Question(d.Question)
	switch {
	case !open:
		s.refused("not answered: " + paint.Clean(cmp.Or(st.Closed(d.Question), "it is no longer held")))
		return nil
	case q.Hash != d.Hash:
		s.refused("not answered: the question changed: look again")
		return nil
	case s.inbox.pending[ref{in, d.Question}]:
		return nil
	}
	to := s.answers(in, d)
	if s.inbox.pending == nil {
		s.inbox.pending = map[ref]bool{}
	}
	for _, a := range to {
		s.inbox.pending[a.ref] = true
	}
	wait := s.inbox.presses.Wait()
	if wait == nil {
		return s.send(q, d, to)
	}
	return s.after(state.Repeat, func() tea.Cmd {
		if !wait.Held {
			return s.send(q, d, to)
		}
		for _, a := range to {
			delete(s.inbox.pending, a.ref)
		}
		s.refused(state.HeldDown)
		return nil
	})
}

// send sends an answer to all that it is for.
func (s *Screen) send(q api.Question, d intent.Decide, to []answer) tea.Cmd {
	return s.ask(s.ctx, func(ctx context.Context) then {
		closed := make([]api.Question, len(to))
		errs := make([]error, len(to))
		for i, a := range to {
			if i == 0 || errs[0] == nil { // the others go as the one that was shown does
				closed[i], errs[i] = s.cfg.Client.Decide(ctx, a.session, a.Decision)
			}
		}
		return func() tea.Cmd {
			for _, a := range to {
				delete(s.inbox.pending, a.ref)
			}
			return s.taken(q, d, to, closed, errs)
		}
	})
}

// taken says what became of an answer, and goes on to the next question.
func (s *Screen) taken(q api.Question, d intent.Decide, to []answer, closed []api.Question, errs []error) tea.Cmd {
	in, n := "", 0
	if st := s.of[to[0].session]; st != nil {
		in = paint.Clean(name(st.Session)) + " "
	}
	if errs[0] != nil {
		s.refused(in + dialog.Called(q, 0) + " not answered: " + paint.Failed(errs[0]))
		return nil
	}
	for i, a := range to {
		if st := s.of[a.session]; st != nil && errs[i] == nil {
			st.Answered(closed[i])
			n++
		}
	}
	words, _ := dialog.Told(d.Answer)
	s.Notice = words + " " + in + dialog.Called(q, max(0, n-1))
	if err := errors.Join(errs...); err != nil {
		s.Notice += "; " + paint.Count(len(to)-n, "is", "are") + " held still: " + paint.Failed(err)
	}
	shown := s.dialog != nil && s.about == to[0].session && s.dialog.Target().Question == q.ID
	deep := s.below != nil || isDecision(s.dialog)
	if shown {
		s.dialog, s.below, s.about = nil, nil, ""
	}
	s.gather()
	s.inbox.decided = s.cfg.Now()
	if e, ok := s.asked(); ok && shown && deep { // whoever decides goes on
		s.open(e)
	}
	return nil
}

func isDecision(d dialog.Dialog) bool {
	_, ok := d.(*dialog.Decision)
	return ok
}

// late says whether a key that answers may still be for a question that was just answered:
// nothing else gets it.
func (s *Screen) late() bool { return s.cfg.Now().Sub(s.inbox.decided) < state.QuietTime }
