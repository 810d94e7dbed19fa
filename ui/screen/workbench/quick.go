package workbench

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/state"
)

// typed notes that a key was pressed, or text pasted.
func (k *asking) typed() {
	k.desk.Guard.Key(k.cfg.Now())
	k.strip.Key(k.cfg.Now())
}

// inStrip is the question that the Actions strip shows while nothing is open, and whether
// its row shows all that a decision covers.
func (s *Screen) inStrip() state.Target {
	q, ok := s.asking.question()
	if !ok || s.past() || s.asking.dialogs.Top() != nil || s.view.panes.Of(intent.Actions).Empty() {
		return state.Target{}
	}
	a, _ := s.st.Action(q.Action)
	t := state.Target{Question: q.ID, Hash: s.st.Print(q.ID) + a.Title, Place: "part of the strip"}
	if s.asking.whole(s.asking.ruler(), q) {
		t.Place = "the strip"
	}
	return t
}

// quick answers the question that the strip shows, from wherever the keys are, or opens it.
// The key after the leader comes too soon for any quiet time: what it answers must have been
// there, and the keyboard quiet, before the leader was pressed.
func (s *Screen) quick(i intent.Quick, repeat bool) tea.Cmd {
	aimed, now := s.asking.aimed, s.inStrip()
	s.asking.aimed = state.Target{}
	q, _ := s.asking.question()
	edit := q.Subject == api.SubjectEdit
	if opens := edit || i.Yes && now.Place != "the strip"; !opens && (repeat || aimed != now) || now == (state.Target{}) {
		s.asking.desk.Lose(i)
		s.tell(themes.Warn, dialog.TooSoon)
		return nil
	}
	switch {
	case edit && !i.Yes:
		return s.takeBackEdit(q)
	case edit:
		s.asking.open(q)
		s.answerKey(themes.Info, fmt.Sprintf("not kept yet: look at what it changed, then %s keeps it", keys.First(intent.Keep{}, keys.Decision)))
	case !i.Yes:
		return s.answer(intent.Decide{Question: q.ID, Hash: q.Hash, Answer: api.AnswerDeny})
	case now.Place != "the strip":
		s.asking.open(q)
		s.answerKey(themes.Info, dialog.Unread)
	default:
		return s.answer(intent.Decide{Question: q.ID, Hash: q.Hash, Answer: api.AnswerApprove})
	}
	return nil
}

// whyQuick says why the strip's question can't be answered from everywhere.
func (s *Screen) whyQuick() string {
	q, ok := s.asking.question()
	switch {
	case len(s.st.Questions) == 0:
		return "nothing is held"
	case s.asking.dialogs.Top() != nil:
		return "something is open: its own keys answer"
	case s.view.panes.Of(intent.Actions).Empty():
		return "Actions isn't in view: " + afterLeader(intent.FirstHeld{}) + " opens the question"
	case !ok:
		return "what is selected in Actions isn't held: " + afterLeader(intent.FirstHeld{}) + " opens what is"
	case s.asking.pending(q):
		return dialog.OnItsWay
	}
	return ""
}
