package workbench

import (
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/answer"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/state"
)

// Whoever decides is asked one question after the other, until nothing waits; only then
// the keys are for what had them before.

// flow is how the person goes from one decision to the next.
type flow struct {
	dropped string    // the last key that was ours, or for what had been decided
	last    time.Time // when that was
	first   bool      // it did something here: held down it comes again after a while only
	listed  bool      // the person decides in the list
	left    int64     // the question that was left for later
	passed  int64     // the question that opened by itself; 0: none
}

// drops says whether a key that would be the agent's, or for what is asked next, is for
// what was just decided: so soon after it, or held down since. A key
// that did something here isn't the agent's while it is held down, either.
func (k *asking) drops(key string) bool {
	f, now, repeat := &k.flow, k.cfg.Now(), state.QuietTime // keys that repeat come later where the machine is busy
	if f.first && k.dialogs.Top() == nil {                  // of those for a question it is told when they answer it
		repeat = state.FirstRepeat
	}
	if held := key == f.dropped && now.Sub(f.last) < repeat; !held && !k.desk.JustDecided() {
		return false
	}
	f.dropped, f.last, f.first = key, now, false
	return true
}

// followed says whether what has the keys came by itself after an answer.
func (k *asking) followed() bool {
	switch d := k.dialogs.Top().(type) {
	case *dialog.Next:
		return true
	case *dialog.Decision:
		return d.Target().Question == k.flow.passed && k.flow.passed != 0
	}
	return false
}

// deciding says whether the next question follows in the dock.
func (k *asking) deciding() bool {
	switch d := k.dialogs.Top().(type) {
	case *dialog.Next:
		return true
	case *dialog.Decision:
		return d.Off == ""
	}
	return false
}

// next opens the next question after one was answered in the dock, or awaits it.
func (k *asking) next(focus intent.Pane) {
	if k.flow.passed = 0; k.dialogs.Top() != nil || k.Over() {
		return
	}
	if i := slices.IndexFunc(k.st.Questions, func(q api.Question) bool { return !k.pending(q) }); i >= 0 {
		k.flow.passed = k.st.Questions[i].ID
		k.open(k.st.Questions[i])
		return
	}
	if focus == intent.Actions || focus == intent.Network {
		return // what comes is a row there, and keys decide on it
	}
	k.dialogs.Open(dialog.NewNext(k.dialogs.Rows, k.cfg.Now(), "the "+focus.String()))
}

// goOn takes what has happened to the questions: one that opened by itself and was
// answered before keys could is left, as the answer before it was one for it, too; and
// the one that was awaited is asked.
func (k *asking) goOn(focus intent.Pane) {
	switch d := k.dialogs.Top().(type) {
	case *dialog.Decision:
		if _, open := k.st.Question(k.flow.passed); open || !k.followed() || !k.desk.JustDecided() {
			return
		}
		k.dialogs.Close(d)
		k.desk.Decided = k.cfg.Now()
		k.next(focus)
	case *dialog.Next:
		if len(k.st.Questions) > 0 {
			k.dialogs.Close(d)
			k.next(focus)
		}
	case nil:
		k.readable(focus)
	}
}

// readable opens the question that the list came to by itself while the person decides
// there and types no filter, if its row doesn't show what a decision covers. What was left
// isn't opened again.
func (k *asking) readable(focus intent.Pane) {
	k.flow.listed = k.flow.listed && focus == intent.Actions
	if !k.flow.listed || !k.auto || k.find.in != intent.NoPane {
		return
	}
	if q, ok := k.question(); ok && q.ID != k.flow.left && !k.pending(q) && (q.Subject == api.SubjectEdit || !k.whole(k.ruler(), q)) {
		k.flow.passed = q.ID
		k.open(q)
	}
}

// rest ends the waiting for the next question once it has lasted, but not in the middle of
// what is typed: the agent would have its end without its beginning.
func (k *asking) rest() {
	if d, ok := k.dialogs.Top().(*dialog.Next); ok && (k.Over() || k.cfg.Now().Sub(d.Since) >= answer.Linger && k.desk.Guard.Wait(k.cfg.Now()) <= 0) {
		k.dialogs.Close(d)
		k.desk.Decided = k.cfg.Now()
	}
}

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
		s.warn(dialog.TooSoon)
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
