package workbench

import (
	"fmt"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
)

// Why says why an intent does nothing here and now, or "".
func (s *Screen) Why(i intent.Intent) string {
	if why := s.whyAtAll(i); why != "" {
		return why
	}
	if _, ok := i.(intent.FirstHeld); ok && len(s.st.Questions) == 0 && s.signals.waits == "" {
		return "nothing is held"
	}
	if t, ok := i.(intent.Tour); ok && t.End && s.tour.at == 0 {
		return "no tour is on: " + afterLeader(intent.Tour{}) + " begins it"
	}
	page, _ := i.(intent.WebPage)
	if _, browses := i.(intent.Browse); (browses || page.Open) && s.cfg.Browse == nil {
		return "there is no browser here: copy it, and open it where there is one"
	}
	if why := s.whyRelated(i); why != "" {
		return why
	}
	if why, mine := s.whyWork(i); mine {
		return why
	}
	return s.whyAction(i)
}

// whyAtAll says why an intent does nothing in this session now, whatever is selected, or "".
func (s *Screen) whyAtAll(i intent.Intent) string {
	if s.gone && intent.Acts(i) {
		return "the session was removed: nothing of it is left"
	}
	if why := s.whyReplay(i); why != "" {
		return why
	}
	if _, ok := i.(intent.Tour); ok && (!s.types() || s.rows < tourLeast+tourRows) {
		return "the tour is for a live session, on a screen of at least 24 rows"
	}
	if why := s.off(); why != "" && intent.Acts(i) {
		return why
	}
	if _, back := i.(intent.Rollback); back && !s.live() {
		return "it has ended: r resumes it to roll back, W applies all but this"
	}
	switch i.(type) {
	case intent.Quick, intent.Approve, intent.Always, intent.Deny, intent.StepInto, intent.StepOver, intent.Keep, intent.Forget,
		intent.KillAction, intent.KillSandbox, intent.Pause, intent.SetMode, intent.Publish, intent.Unpublish, intent.WebPage, intent.AgentCopies:
		if !s.live() {
			return "the session has ended"
		}
	}
	return ""
}

// off is why nothing can be answered or changed from here now, or "".
func (c *core) off() string {
	switch {
	case c.cfg.Watching:
		return dialog.WatchingOnly
	case c.lostEv != "":
		return "the connection to the session is lost: it is being joined again"
	}
	return ""
}

// whyWork says why work can't be brought home, or back, and whether that is what
// the intent is about.
func (s *Screen) whyWork(i intent.Intent) (why string, mine bool) {
	switch i := i.(type) {
	case intent.Apply:
		switch {
		case i.Without && s.asking.list.Selected() == 0:
			return noAction, true
		case s.st.Session.State == api.SessionStarting:
			return "the session is still starting", true
		}
	case intent.Redo:
		_, ok := s.st.Redoable(s.asking.list.Selected())
		switch {
		case !ok:
			return "nothing was rolled back that could be brought again", true
		case !s.live():
			return "the session has ended: r resumes it, to bring it again", true
		}
	case intent.RollbackHome:
		switch {
		case s.st.Session.Home == api.HomeFresh:
			return "its home was empty: there is nothing to go back to", true
		case !s.live():
			return "the session has ended: r resumes it to roll back", true
		}
	case intent.Applies:
		if len(s.st.Applies) == 0 {
			return "nothing was applied from this session: w applies", true
		}
	case intent.Export:
		switch {
		case s.cfg.Watching:
			return "you are watching only", true
		case s.cfg.Export == nil:
			return "stepbox export writes a patch", true
		}
	case intent.Fork:
		switch {
		case s.cfg.Watching:
			return "you are watching only", true
		case !s.cfg.CanFork:
			return "stepbox fork starts a session on the files as they were", true
		}
	case intent.Resume:
		switch {
		case s.live():
			return "the session lives: its Terminal (1) is where to go on", true
		case !s.cfg.CanResume:
			return "stepbox resume goes on with it", true
		}
	default:
		return "", false
	}
	return "", true
}

func (s *Screen) whyAction(i intent.Intent) string {
	a, selected := s.st.Action(s.asking.list.Selected())
	switch i := i.(type) {
	case intent.Approve, intent.Always, intent.Deny, intent.StepInto, intent.StepOver:
		return s.whyAnswer(i)
	case intent.Quick:
		return s.whyQuick()
	case intent.Forget:
		if _, ok := s.rules.newest(); !ok {
			return "no rule was made in this session: A answers with one"
		}
	case intent.Keep:
		return s.whyKeep(a, selected)
	case intent.Rollback:
		return s.whyRollback(i, a, selected)
	case intent.Toggle, intent.Scope:
		if s.view.focus == intent.Actions && !selected {
			return noAction
		}
	case intent.KillAction:
		if !selected || a.State != api.ActionRunning && a.LeftRunning == 0 {
			return "the selected action has no running processes"
		}
	case intent.Pause:
		if s.st.Session.State == api.SessionStarting {
			return "the session is still starting"
		}
	case intent.CopyDiff, intent.Read:
		if _, ok := s.patch(); !ok {
			return "nothing is selected that has a diff"
		}
	case intent.View, intent.Blame, intent.Edit:
		if s.changes.pane.File() == "" {
			return "no file is selected in Changes"
		}
	}
	return ""
}

const noAction = "no action is selected"

func (s *Screen) whyAnswer(i intent.Intent) string {
	q, held := s.question()
	switch {
	case !held && s.view.focus == intent.Network:
		return s.reach.why(i)
	case !held && len(s.st.Questions) > 0:
		return "the selected action isn't held; tab goes to the one that is"
	case !held:
		return "nothing is held"
	case dialog.WhyNot(i, q) != "":
		return dialog.WhyNot(i, q)
	case s.asking.pending(q):
		return dialog.OnItsWay
	}
	return ""
}

func (s *Screen) whyKeep(a api.Action, selected bool) string {
	q, held := s.question()
	switch edit := held && q.Subject == api.SubjectEdit; {
	case edit && s.asking.pending(q):
		return dialog.OnItsWay
	case edit || len(s.unreviewed()) > 0:
	case held && selected && a.State == api.ActionHeld:
		return fmt.Sprintf("#%d hasn't run yet: %s approves it, %s denies it", a.N, keys.First(intent.Approve{}, keys.Actions), keys.First(intent.Deny{}, keys.Actions))
	case len(s.asking.list.Marked()) > 0:
		return "none of the selected has changes that wait for a word: answer held ones singly"
	case !selected:
		return noAction
	case a.Review != api.ReviewOpen:
		return fmt.Sprintf("#%d has no changes that wait for a word", a.N)
	}
	return ""
}

func (s *Screen) whyRollback(i intent.Rollback, a api.Action, selected bool) string {
	q, held := s.question()
	sel, _, _ := s.changes.under()
	switch edit := held && q.Subject == api.SubjectEdit; {
	case s.view.focus == intent.Changes && sel.All():
		return "select first what to roll back (space), or an action's changes (s)"
	case s.view.focus == intent.Changes || !i.Later && (edit || len(s.asking.list.Marked()) > 0):
	case !selected:
		return noAction
	case a.State == api.ActionHeld || a.State == api.ActionDenied || a.State == api.ActionAbandoned:
		return fmt.Sprintf("#%d didn't run: there is nothing to roll back", a.N)
	case a.Before == 0:
		return fmt.Sprintf("#%d has no checkpoint to go back to", a.N)
	}
	return ""
}
