package workbench

import (
	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/state"
)

// handle carries out an intent outside of dialogs, which was meant for a target.
func (s *Screen) handle(i intent.Intent, target state.Target, repeat bool) tea.Cmd {
	if why := s.Why(i); why != "" {
		s.refuse(i, themes.Info, why)
		s.notice.holds = func() bool { return s.Why(i) == why }
		return nil
	}
	if s.view.handle(i) {
		switch i.(type) {
		case intent.Arrange:
			s.info("layout: %s", s.view.shape().Preset)
		case intent.Focus, intent.FocusStep, intent.FocusTo: // the keys go where the focus does
			s.asking.dialogs.Undock(s.asking.ruler())
		}
		return nil
	}
	switch i := i.(type) {
	case intent.Move, intent.Page, intent.Top, intent.Bottom, intent.Slide, intent.Scope, intent.Fold,
		intent.Toggle, intent.ToggleAll, intent.Hunk, intent.Beside, intent.Sides:
		s.inPane(i)
	case intent.Looked:
		return s.changes.mark()
	case intent.Scroll:
		return s.copyMode(i.Back)
	case intent.CopyMode:
		return s.copyMode(0)
	case intent.Printed:
		s.readFrom(s.asking.list.Selected())
	case intent.Open:
		return s.openSelected()
	case intent.Back:
		s.back()
	case intent.Help:
		s.help()
	case intent.Palette:
		s.palette()
	case intent.Facts:
		s.asking.dialogs.Open(dialog.SessionFacts(func() api.Session { return s.present().Session }, &s.used))
	case intent.Detach, intent.Home, intent.Quit, intent.Themes:
		s.leave = i
	case intent.Quick:
		return s.quick(i, repeat)
	case intent.FirstHeld:
		if len(s.st.Questions) == 0 {
			s.signals.ask()
			return nil
		}
		s.asking.open(s.st.Questions[0])
	case intent.AgentCopies:
		s.signals.ask()
	case intent.HeldStep:
		if len(s.st.Questions) == 0 {
			s.view.stepFocus(i.By)
			return nil
		}
		s.asking.walk(i.By, false, s.view.focus)
		s.view.setFocus(intent.Actions)
	case intent.Apply, intent.Applies, intent.Redo, intent.RollbackHome, intent.Export, intent.Resume, intent.Fork:
		return s.bring(i)
	case intent.Replay, intent.Jump, intent.Play, intent.Seek, intent.ActionStep, intent.FrameStep, intent.Speed,
		intent.Beginning, intent.Present, intent.Search, intent.SearchFor, intent.Hit:
		return s.replay(i)
	case intent.View, intent.Blame, intent.Bisect, intent.GoTo:
		return s.travel(i)
	case intent.Filter:
		s.openFilter("")
	case intent.Match:
		s.match(i.By)
	case intent.Related:
		return s.related(i.To)
	case intent.Return:
		s.retrace()
	case intent.Pause:
		return s.ops.pause()
	case intent.SetMode:
		if c := dialog.ConfirmMode(s.st.Session.Mode, i.Mode); c != nil {
			s.asking.dialogs.Open(c)
			return nil
		}
		s.asking.desk.Decided = s.cfg.Now()
		return s.ops.setMode(i.Mode)
	case intent.Publish, intent.Unpublish, intent.Copy, intent.Browse, intent.WebPage:
		return s.ops.serve(i)
	case intent.TakeOut, intent.CopyDiff:
		return s.takeOut(i, target)
	case intent.Edit, intent.Read:
		return s.outside(i)
	case intent.Tour:
		s.tour.guide(i)
	case intent.Rules:
		s.asking.dialogs.Open(&dialog.Rules{Off: s.Why(intent.Forget{})})
	case intent.Forget:
		newest, _ := s.rules.newest()
		return s.rules.once(func() tea.Cmd { return s.rules.take(newest, nil) })
	case intent.KillSandbox:
		s.asking.dialogs.Open(dialog.ConfirmKill(0, ""))
	default:
		return s.judge(i, target, repeat)
	}
	return nil
}

// soon says why it is too soon for an intent that a key had for a target, or "". What opens
// a plan, or asks once more, is never too soon: what that asks has its own time.
func (s *Screen) soon(i intent.Intent, target state.Target, repeat bool) string {
	if !s.settles(i) && !(intent.Decides(i) && s.blind()) {
		return ""
	}
	return s.asking.desk.Soon(target, state.Quiet, repeat)
}

// settles says whether an intent decides something at once.
func (s *Screen) settles(i intent.Intent) bool {
	switch i.(type) {
	case intent.Rollback, intent.KillAction:
		return false
	case intent.Approve, intent.Keep:
		return true
	}
	q, held := s.question()
	return held && dialog.Settles(i, q)
}

// opens opens the question that an intent would answer, if that isn't shown whole, and says
// whether it did.
func (s *Screen) opens(i intent.Intent, q api.Question) bool {
	switch i.(type) {
	case intent.Approve, intent.Always, intent.StepInto, intent.StepOver:
		if dialog.RowAnswers(i, q, s.whole(s.asking.ruler(), q)) {
			return false
		}
		s.asking.open(q)
		s.info(dialog.Unread)
		return true
	case intent.Keep:
		a, _ := s.st.Action(s.asking.list.Selected())
		if a.Title == q.Title && s.asking.list.Whole(s.asking.ruler(), a) {
			return false
		}
		s.asking.open(q)
		return true
	}
	return false
}

// judge carries out what decides something. Keys that do so at once count only once what
// they decide has been in view, and the keyboard quiet, long enough.
func (s *Screen) judge(i intent.Intent, target state.Target, repeat bool) tea.Cmd {
	q, held := s.question()
	if held && s.opens(i, q) {
		s.asking.desk.Lose(i)
		return nil
	}
	if why := s.soon(i, target, repeat); why != "" {
		s.refuse(i, themes.Warn, why)
		return nil
	}
	s.asking.desk.Decided = s.cfg.Now()
	if !held && s.view.focus == intent.Network && ofRules(i) {
		return s.reach.rule(i)
	}
	a, _ := s.st.Action(s.asking.list.Selected())
	switch i := i.(type) {
	case intent.Approve, intent.Always, intent.StepInto, intent.StepOver, intent.Deny:
		return s.answer(dialog.Answer(i, q, s.st.Print(q.ID), false))
	case intent.Keep:
		if held {
			return s.answer(intent.Decide{Question: q.ID, Hash: q.Hash, Answer: api.AnswerKeep})
		}
		acts, then := s.unreviewed(), s.unmark
		if len(acts) == 0 {
			acts, then = []int{a.N}, s.asking.list.NextOpen
		}
		return s.rules.once(func() tea.Cmd {
			s.asking.desk.Decided = s.cfg.Now() // as it is sent only now
			return s.ops.keep(acts, then)
		})
	case intent.Rollback:
		return s.takeBack(i.Later)
	case intent.KillAction:
		s.asking.dialogs.Open(dialog.ConfirmKill(a.N, a.Title))
	}
	return nil
}

// question is the open question of what is selected in the focused pane, or else in
// the list of actions.
func (s *Screen) question() (api.Question, bool) {
	if s.view.focus == intent.Network {
		return s.reach.question()
	}
	return s.asking.question()
}

// whole says whether what is selected shows all that a decision on its question covers.
func (s *Screen) whole(dst uv.Screen, q api.Question) bool {
	if s.view.focus == intent.Network {
		return dialog.Plain(q) && s.reach.pane.Whole(dst, q)
	}
	return s.asking.whole(dst, q)
}

// answer carries out what follows from a key that answers a question as it was shown.
func (s *Screen) answer(i intent.Intent) tea.Cmd {
	switch i := i.(type) {
	case intent.Decide:
		return s.asking.decide(i, func() intent.Pane { return s.view.focus })
	case intent.AskReason:
		if q, ok := s.st.Fresh(i.Question, i.Print); ok {
			s.asking.dialogs.Open(dialog.NewReason(q, i.Print, i.Equal))
		}
	case intent.AskBack:
		if q, ok := s.st.Question(i.Question); ok {
			return s.takeBackEdit(q)
		}
	case intent.AskRule:
		if q, ok := s.st.Fresh(i.Question, i.Print); ok {
			return s.rules.ask(q)
		}
	}
	return nil
}
