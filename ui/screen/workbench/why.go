package workbench

import (
	"fmt"

	"stepbox/session/api"
	"stepbox/ui/intent"
)

// Why says why an intent does nothing here and now, or "".
func (s *Screen) Why(i intent.Intent) string {
	if _, ok := i.(intent.FirstHeld); ok && len(s.st.Questions) == 0 {
		return "nothing is held"
	}
	switch i.(type) {
	case intent.Approve, intent.Deny, intent.StepInto, intent.StepOver, intent.Keep, intent.Rollback,
		intent.KillAction, intent.KillSandbox, intent.Pause, intent.Continue, intent.SetMode:
		if !s.live() {
			return "the session has ended"
		}
	}
	return s.whyAction(i)
}

func (s *Screen) whyAction(i intent.Intent) string {
	q, held := s.asking.question()
	a, selected := s.st.Action(s.asking.list.Selected())
	edit := held && q.Subject == api.SubjectEdit
	switch i := i.(type) {
	case intent.Approve, intent.Deny, intent.StepInto, intent.StepOver:
		switch {
		case !held && len(s.st.Questions) > 0:
			return "the selected action isn't held; tab goes to the one that is"
		case !held:
			return "nothing is held"
		case edit:
			return "changes are kept (y) or rolled back (u)"
		case s.asking.pending[q.ID]:
			return "the answer is on its way"
		case i == intent.Intent(intent.Approve{Keep: true}) && q.Subject == api.SubjectNested:
			return "its changes are its action's: approve it (a)"
		}
	case intent.Keep:
		switch {
		case edit && s.asking.pending[q.ID]:
			return "the answer is on its way"
		case edit:
		case !selected:
			return "no action is selected"
		case a.Review != api.ReviewOpen:
			return fmt.Sprintf("action %d has no changes that wait for a word", a.N)
		}
	case intent.Rollback:
		switch {
		case s.view.focus == intent.Changes && s.changes.pane.Action == 0:
			return "choose an action's changes first (s): a whole session isn't rolled back"
		case s.view.focus == intent.Changes || edit && !i.Later:
		case !selected:
			return "no action is selected"
		case a.State == api.ActionHeld || a.State == api.ActionDenied || a.State == api.ActionAbandoned:
			return fmt.Sprintf("action %d didn't run: there is nothing to roll back", a.N)
		case a.Before == 0:
			return fmt.Sprintf("action %d has no checkpoint to go back to", a.N)
		}
	case intent.KillAction:
		if !selected || a.State != api.ActionRunning && a.LeftRunning == 0 {
			return "the selected action has no running processes"
		}
	case intent.Pause:
		if s.st.Session.State == api.SessionStarting {
			return "the session is still starting"
		}
	case intent.Scope:
		if s.view.focus == intent.Actions && !selected {
			return "no action is selected"
		}
	}
	return ""
}
