package workbench

import (
	"slices"
	"time"

	"stepbox/session/api"
	"stepbox/ui/answer"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
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
