package workbench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// open opens a plan of work, and has it made. done is called when it was carried out.
func (o *operations) open(w dialog.Work, done func()) tea.Cmd {
	o.plan, o.done = dialog.NewPlan(w, o.plan), done
	o.dialogs.Open(o.plan)
	return o.replan()
}

// replan has the open plan made anew, if its choices have changed since it was.
// One is made at a time; what is chosen meanwhile is planned after it.
func (o *operations) replan() tea.Cmd {
	d := o.plan
	w, count, wanted := d.Ask()
	if !wanted {
		return nil
	}
	return o.within(planTime, func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		p, err := planned(ctx, c, id, w)
		return func() tea.Cmd {
			d.SetPlan(count, p, paint.Failed(err))
			if d != o.plan {
				return nil
			}
			return o.replan()
		}
	})
}

// planned asks for the plan of some work.
func planned(ctx context.Context, c link.Client, id string, w dialog.Work) (dialog.Planned, error) {
	switch {
	case w.Apply != nil:
		p, err := c.ApplyPlan(ctx, id, *w.Apply)
		return dialog.OfApply(p), err
	case w.Undo != 0:
		p, err := c.UndoPlan(ctx, id, w.Undo)
		return dialog.OfApply(p), err
	}
	p, err := c.RollbackPlan(ctx, id, *w.Back)
	return dialog.OfRollback(p), err
}

// carryOut does what the open plan shows.
func (o *operations) carryOut() tea.Cmd {
	d, done := o.plan, o.done
	w, hash := d.Carry()
	if w.Back != nil {
		return o.rollback(w, hash)
	}
	ctx, cancel := context.WithCancel(o.link.Context())
	o.cancel = cancel
	return stream(ctx, o.core, func(ctx context.Context, c link.Client, id string) iter.Seq2[api.Progress, error] {
		if w.Undo != 0 {
			return c.Undo(ctx, id, w.Undo, api.UndoRequest{Hash: hash, By: "tui"})
		}
		r := *w.Apply
		r.Hash, r.By = hash, "tui"
		return c.Apply(ctx, id, r)
	}, d.SetProgress, func(last api.Progress, err error) tea.Cmd {
		stopped := ctx.Err() != nil
		cancel()
		if last.Problem != nil {
			err = last.Problem
		}
		switch {
		case last.Done != nil:
			o.present().Apply(api.Event{Apply: last.Done})
			d.Done(*last.Done)
			if last.Done.State == api.ApplyDone {
				done()
			}
			return o.recount()
		case stale(err):
			d.Stale("things changed since the plan was made: this is the new one")
			return o.replan()
		case stopped:
			d.Fail("cancelled: what was begun is undone; " + keys.First(intent.Applies{}, keys.Panes) + " lists how it ended")
		case err == nil:
			err = errors.New("the answer broke off: see with Z what became of it")
			fallthrough
		default:
			d.Fail(paint.Failed(err))
		}
		return nil
	})
}

// recount reads again how much of the session isn't in the project. Of an ended
// one no event tells.
func (o *operations) recount() tea.Cmd {
	read := func(ctx context.Context, c link.Client, id string) (api.Session, error) { return c.Session(ctx, id) }
	return ask(o.core, "", read, func(s api.Session, err error) {
		if err == nil {
			o.present().Apply(api.Event{Session: &s})
		}
	})
}

func stale(err error) bool { return api.CodeOf(err) == api.CodeStale }

// rollback takes, rolls or brings back as it was planned.
func (o *operations) rollback(w dialog.Work, hash string) tea.Cmd {
	d, done, r := o.plan, o.done, *w.Back
	r.Hash, r.By = hash, "tui"
	return o.long("putting files back", func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		made, err := c.Rollback(ctx, id, r)
		return func() tea.Cmd {
			failure := paint.Clean(made.Failure)
			switch {
			case stale(err):
				d.Stale("files changed since the plan was made: this is the new one")
				return o.replan()
			case err != nil:
				failure = paint.Failed(err)
			}
			if failure != "" {
				d.Fail(failure)
				o.warn("failed: %s", failure)
				return nil
			}
			o.dialogs.Close(d)
			done()
			if w.Edit != 0 && slices.Contains(made.Actions, w.Back.Selection.Actions[0]) { // else something of it was left, and it is asked about still
				o.taken(w.Edit)
			}
			after := ""
			if !made.PutsIn() && made.ID != 0 && made.Home == nil {
				o.present().Apply(api.Event{Rollback: &made})
				after = "; ctrl+r brings it again"
			}
			o.tell(themes.Undone, "%s: %s%s%s", w.Done, paint.Files(made.Files), after, leftWords(made))
			return nil
		}
	})
}

// leftWords says what a roll back left as it is, with the first name.
func leftWords(r api.Rollback) string {
	n := len(r.Left) + r.LeftMore
	switch n {
	case 0:
		return ""
	case 1:
		return "; " + r.Left[0] + " changed meanwhile and was left"
	}
	return fmt.Sprintf("; %d files changed meanwhile and were left: %s, …", n, r.Left[0])
}

// readBeside fetches the differences that the open plan wants to show.
func (o *operations) readBeside() tea.Cmd {
	d := o.plan
	if d == nil || o.reading || !o.dialogs.Has(d) {
		return nil
	}
	key, in, ok := d.Wants()
	if !ok {
		return nil
	}
	o.reading = true
	read := func(ctx context.Context, c link.Client, id string) (api.FileDiff, error) {
		return c.Diff(ctx, id, key, in)
	}
	return ask(o.core, "", read, func(got api.FileDiff, err error) {
		o.reading = false
		d.SetDiff(key, got, paint.Failed(err))
	})
}

// applies lists what was applied.
func (o *operations) applies() tea.Cmd {
	d := &dialog.Applies{}
	o.dialogs.Open(d)
	read := func(ctx context.Context, c link.Client, id string) ([]api.Apply, error) { return c.Applies(ctx, id) }
	return ask(o.core, "", read, func(list []api.Apply, err error) { d.Set(list, paint.Failed(err)) })
}

func (o *operations) undo(apply int64) tea.Cmd {
	return o.open(dialog.Work{Title: fmt.Sprintf("Undo apply %d?", apply), Yes: "undo it", Undo: apply}, func() {})
}

// redo brings again what was taken back.
func (o *operations) redo(r api.Rollback) tea.Cmd {
	return o.open(dialog.Work{
		Title: "Bring again what was rolled back of " + api.Numbered(r.Actions) + "?", Yes: "bring it again", Done: "✓ brought again",
		Back: &api.RollbackRequest{RollbackTarget: api.RollbackTarget{Redo: r.ID}},
	}, func() {})
}

// bring carries out the intents that bring a session's work home, or back.
func (s *Screen) bring(i intent.Intent) tea.Cmd {
	switch i := i.(type) {
	case intent.Apply:
		return s.apply(i.Without)
	case intent.Applies:
		return s.ops.applies()
	case intent.Redo:
		r, _ := s.st.Redoable(s.asking.list.Selected())
		return s.ops.redo(r)
	case intent.RollbackHome:
		return s.ops.open(dialog.Work{
			Title: "Roll back what was changed in the session's home?", Yes: "roll back", Done: "↶ home rolled back",
			Back: &api.RollbackRequest{RollbackTarget: api.RollbackTarget{Home: &api.HomePaths{}}},
		}, func() {})
	case intent.Export:
		s.asking.dialogs.Open(dialog.NewExport(s.present().Session, s.cfg.Here))
	case intent.Resume:
		s.asking.dialogs.Open(dialog.ConfirmResume(s.st.Session))
	case intent.Fork:
		when := ""
		if s.past() {
			when = paint.Long(s.course.off)
			if n := s.course.current(); n > 0 {
				when += fmt.Sprintf(" (#%d)", n)
			}
		}
		s.asking.dialogs.Open(dialog.ConfirmFork(s.present().Session, when))
	}
	return nil
}

// apply plans to write the selection to the project folder; without: all but it.
func (s *Screen) apply(without bool) tea.Cmd {
	sel, scope, done, title := api.Selection{}, api.Scope{}, s.unmark, "Write all of this session's changes to the project folder?"
	switch acts := s.asking.list.Marked(); {
	case without:
		sel.Without = s.chosenActions()
		title = "Write all but " + api.Numbered(sel.Without) + " to the project folder?"
	case s.view.focus == intent.Changes:
		sel, scope, done = s.changes.selection()
		if sel.All() {
			scope = api.Scope{} // all of the session's is written, whichever part is shown
		} else {
			title = "Write the selected changes to the project folder?"
		}
	case len(acts) > 0:
		sel.Actions = acts
		title = "Write " + api.Numbered(acts) + " to the project folder?"
	}
	if len(sel.Actions) == 1 {
		scope = api.Scope{Action: sel.Actions[0]}
	}
	return s.ops.open(dialog.Work{
		Title: title, Yes: "write it", Apply: &api.ApplyRequest{Selection: sel, Commits: true}, Scope: &scope,
	}, done)
}

// unreviewed are the selected actions whose changes wait for a word, but for those
// that are held: what is said of them is bound to what is shown of them.
func (s *Screen) unreviewed() []int {
	return slices.DeleteFunc(s.asking.list.Marked(), func(n int) bool {
		a, _ := s.st.Action(n)
		_, held := s.st.QuestionOf(n)
		return held || a.Review != api.ReviewOpen
	})
}

// unmark selects no action.
func (s *Screen) unmark() { s.asking.list.Clear() }

// chosenActions are the selected actions, or the one that the cursor is on.
func (s *Screen) chosenActions() []int {
	if acts := s.asking.list.Marked(); len(acts) > 0 {
		return acts
	}
	return []int{s.asking.list.Selected()}
}

// takeBack plans to take the selection back, or to roll back all since just before
// the selected action.
func (s *Screen) takeBack(later bool) tea.Cmd {
	n := s.asking.list.Selected()
	if later {
		a, _ := s.st.Action(n)
		return s.ops.open(dialog.Work{
			Title: fmt.Sprintf("Roll back to just before #%d?", n), Yes: "roll back", Done: "↶ rolled back", Scope: &api.Scope{Since: a.Before},
			Back: &api.RollbackRequest{RollbackTarget: api.Before(n)},
		}, s.unmark)
	}
	if q, ok := s.question(); ok && q.Subject == api.SubjectEdit && s.view.focus == intent.Actions {
		return s.takeBackEdit(q)
	}
	sel, scope, done := api.Selection{Actions: s.chosenActions()}, api.Scope{}, s.unmark
	if s.view.focus == intent.Changes {
		sel, scope, done = s.changes.under()
	}
	what := "the selected changes"
	if len(sel.Files) == 0 {
		what = api.Numbered(sel.Actions)
	}
	if len(sel.Actions) == 1 {
		scope = api.Scope{Action: sel.Actions[0]}
	}
	return s.ops.open(dialog.Work{
		Title: "Roll back " + what + "?", Yes: "roll back", Done: "↶ rolled back", Scope: &scope, Back: &api.RollbackRequest{RollbackTarget: api.RollbackTarget{Selection: &sel}},
	}, done)
}

// takeBackEdit plans to take back an edit that waits, which answers its question.
func (s *Screen) takeBackEdit(q api.Question) tea.Cmd {
	acts := []int{q.Action}
	return s.ops.open(dialog.Work{
		Title: fmt.Sprintf("Roll back what #%d changed?", q.Action), Yes: "roll back", Done: "↶ rolled back", Scope: &api.Scope{Action: q.Action}, Edit: q.ID,
		Back: &api.RollbackRequest{RollbackTarget: api.RollbackTarget{Selection: &api.Selection{Actions: acts}}},
	}, func() {})
}

// edited goes on after an edit that waited was taken back.
func (s *Screen) edited(question int64) {
	if q, ok := s.st.Question(question); ok {
		q.Closed, q.ClosedBy = "rollback", "tui"
		s.present().Answered(q)
	}
	s.asking.answered(question, s.asking.dialogs.Shows(question), s.view.focus)
}
