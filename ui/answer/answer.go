// Package answer takes what a person decides to the sessions that asked: when a key counts,
// which questions an answer is for, and what became of it. The workbench answers with it for
// its session, home for all of them.
//
// A Desk belongs to the goroutine that updates the interface. It does no IO there: what it
// wants done leaves as commands of its screen.
package answer

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
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Linger is how long the keys stay where the last question was answered: an agent that has
// its answer asks its next one a moment later.
const Linger = 3 * time.Second

// Ref names a question of a session.
type Ref struct {
	Session string
	ID      int64
}

// Screen is what shows the questions.
type Screen struct {
	Client link.Client
	Now    func() time.Time
	// State is what is known of a session, as it stands now; nil: nothing any more.
	State func(session string) *state.State
	// Over says whether a session is known to have ended.
	Over func(session string) bool
	// Refused says why a question wasn't answered, where the person looks.
	Refused func(r Ref, words string)
	// Do makes a command of what is done off this goroutine, and of what follows from it
	// here. What takes long has words that say what is being done.
	Do func(doing string, f func(context.Context) func() tea.Cmd) tea.Cmd
	// After makes a command that waits.
	After func(d time.Duration, f func() tea.Cmd) tea.Cmd
}

// Desk is where the person answers.
type Desk struct {
	Screen
	Guard   state.Guard
	Presses state.Presses
	Decided time.Time // when something was decided last, or keys came to be for something else by themselves

	pending map[Ref]bool
	wake    bool // a message for the end of the quiet time is under way
}

// Soon says why it is too soon for a key that decides something of a target, or "".
func (d *Desk) Soon(t state.Target, c state.Care, repeat bool) string {
	now := d.Now()
	lost := d.Presses.After()
	switch {
	case c == state.AtOnce:
		return ""
	case repeat || !d.Guard.Takes(t, c, now):
		return dialog.TooSoon
	case lost != "":
		return "too soon: " + keys.Pretty(lost) + ", just before, wasn't done"
	}
	return ""
}

// Lose notes that a key for an intent did nothing, or something else: the next key may be for
// what that would have opened.
func (d *Desk) Lose(i intent.Intent) {
	if intent.Asks(i) {
		d.Presses.Lost()
	}
}

// JustDecided says whether keys may still be for what was just decided.
func (d *Desk) JustDecided() bool { return d.Now().Sub(d.Decided) < state.QuietTime }

// Deaf tells how long no key was heard: that is no time in which none was pressed.
func (d *Desk) Deaf(t time.Duration) {
	d.Guard.Deaf(t)
	d.Decided = d.Decided.Add(t)
}

// Watch begins the quiet time of what keys would decide now, if that is something else than
// before, and has the screen drawn when it is over.
func (d *Desk) Watch(t state.Target) tea.Cmd {
	now := d.Now()
	d.Guard.Shown(t, now)
	wait := d.Guard.Wait(now)
	if wait <= 0 || t == (state.Target{}) || d.wake {
		return nil
	}
	d.wake = true
	return d.After(wait, func() tea.Cmd {
		d.wake = false
		return nil
	})
}

// Pending says whether an answer to a question is on its way.
func (d *Desk) Pending(r Ref) bool { return d.pending[r] }

// News is what dialogs about a session's questions are told, as those are shown.
func (d *Desk) News(session string, st *state.State) dialog.News {
	return dialog.News{
		State:   st,
		Pending: func(id int64) bool { return d.pending[Ref{session, id}] },
		Closed:  func(id int64) string { return d.closed(session, st, id) },
	}
}

// closed says why a question is no longer held.
func (d *Desk) closed(session string, st *state.State, id int64) string {
	if d.Over(session) {
		return "the session has ended"
	}
	return paint.Clean(cmp.Or(st.Closed(id), "it is no longer held"))
}

// Differences has those read that an opened question lacks, if that is what has the keys.
func (d *Desk) Differences(session string, top dialog.Dialog) tea.Cmd {
	q, ok := top.(*dialog.Decision)
	if !ok {
		return nil
	}
	n := q.Lacks()
	if n == 0 {
		return nil
	}
	return d.Do("", func(ctx context.Context) func() tea.Cmd {
		diffs, err := dialog.Differences(d.Client.Diffs(ctx, session, api.Scope{Action: n}))
		return func() tea.Cmd {
			q.SetDiffs(diffs, paint.Failed(err))
			return nil
		}
	})
}

// Propose has the rules looked up that an answer can become.
func (d *Desk) Propose(session string, r *dialog.Rule) tea.Cmd {
	if !r.Lacks() {
		return nil
	}
	id := r.Shown.Question
	return d.Do("", func(ctx context.Context) func() tea.Cmd {
		p, err := d.Client.Proposals(ctx, session, id)
		return func() tea.Cmd {
			r.Set(p, err)
			return nil
		}
	})
}

// Taken is what became of an answer.
type Taken struct {
	Question api.Question // as it was answered
	Err      error        // why it wasn't

	Equal int   // how many others were answered with it,
	Held  int   // and how many are held still,
	Why   error // as that failed
}

const changed = "not answered: the question changed: look again"

// Answer sends a decision on a question of a session, unless that isn't what is held: to it,
// to those of its session that read the same, if the decision is for them, and to others. A
// key that may be held down is waited for first.
func (d *Desk) Answer(session string, i intent.Decide, others []Ref, then func(Taken) tea.Cmd) tea.Cmd {
	st, first := d.State(session), Ref{session, i.Question}
	if st == nil {
		return nil
	}
	q, open := st.Question(i.Question)
	switch {
	case !open:
		d.Refused(first, "not answered: "+d.closed(session, st, i.Question))
		return nil
	case q.Hash != i.Hash:
		d.Refused(first, changed)
		return nil
	case d.pending[first]:
		return nil
	}
	d.Decided = d.Now()
	to, print := d.to(append([]Ref{first}, others...), i), st.Print(q.ID)
	d.mark(to, true)
	return d.Known(func(held bool) tea.Cmd {
		why := changed
		switch st := d.State(session); {
		case held:
			why = state.HeldDown
		case st != nil && st.Print(q.ID) == print:
			d.Decided = d.Now() // it is sent only now, and what is pressed after that is nobody's
			return d.send(q, i, to, then)
		}
		d.mark(to, false)
		d.Refused(first, why)
		return nil
	})
}

// Known does something once it is known whether the key that was pressed last is held down.
func (d *Desk) Known(then func(held bool) tea.Cmd) tea.Cmd {
	wait := d.Presses.Wait()
	if wait == nil {
		return then(false)
	}
	since := d.Now()
	var known func() tea.Cmd
	known = func() tea.Cmd {
		if now := d.Now(); !wait.Held && now.Sub(since) >= state.Repeat+state.Repeat/4 {
			since = now // the machine stalled: what the key repeats may be on its way
			return d.After(state.Repeat, known)
		}
		return then(wait.Held)
	}
	return d.After(state.Repeat, known)
}

// Once does what a dialog's key is for, unless that is held down since it led there.
func (d *Desk) Once(of dialog.Dialog, do func() tea.Cmd) tea.Cmd {
	return d.Known(func(held bool) tea.Cmd {
		if held {
			of.Fail(state.HeldDown)
			return nil
		}
		return do()
	})
}

// one is what one question is answered.
type one struct {
	Ref
	api.Decision
}

// to are all that a decision is sent to that are open still. Rules answer by themselves what
// else they are about.
func (d *Desk) to(refs []Ref, i intent.Decide) (out []one) {
	refs = slices.DeleteFunc(refs, func(r Ref) bool { return d.State(r.Session) == nil })
	if i.Equal && i.For == "" {
		for _, r := range refs {
			for _, q := range d.State(r.Session).Equal(r.ID) {
				refs = append(refs, Ref{r.Session, q.ID})
			}
		}
	}
	with := map[string]int64{} // the first one of each session
	for _, r := range refs {
		q, open := d.State(r.Session).Question(r.ID)
		if !open || slices.ContainsFunc(out, func(o one) bool { return o.Ref == r }) {
			continue
		}
		out = append(out, one{r, api.Decision{Question: r.ID, Hash: q.Hash, Answer: i.Answer, Reason: i.Reason, For: i.For, Pattern: i.Pattern, By: "tui", With: with[r.Session]}})
		with[r.Session] = cmp.Or(with[r.Session], r.ID)
	}
	return out
}

func (d *Desk) mark(all []one, pending bool) {
	if d.pending == nil {
		d.pending = map[Ref]bool{}
	}
	for _, o := range all {
		if d.pending[o.Ref] = true; !pending {
			delete(d.pending, o.Ref)
		}
	}
}

func (d *Desk) send(q api.Question, i intent.Decide, to []one, then func(Taken) tea.Cmd) tea.Cmd {
	return d.Do("answering", func(ctx context.Context) func() tea.Cmd {
		var closed []api.Question
		var errs []error
		for n, o := range to {
			c, err := d.Client.Decide(ctx, o.Session, o.Decision)
			closed, errs = append(closed, c), append(errs, err)
			if n == 0 && err != nil {
				break // the others go as the one that was shown does
			}
		}
		return func() tea.Cmd {
			d.mark(to, false)
			t := Taken{Question: q, Err: errs[0], Equal: -1, Why: errors.Join(errs[1:]...)}
			for n, err := range errs {
				if err != nil {
					t.Held++
					continue
				}
				t.Equal++
				if st := d.State(to[n].Session); st != nil {
					st.Answered(closed[n])
				}
			}
			return then(t)
		}
	})
}
