package dialog

import (
	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
)

// Told is what is said of an answer that was taken, and how it looks.
func Told(a api.Answer) (words string, token themes.Token) {
	switch a {
	case api.AnswerApprove:
		return "✓ approved", themes.OK
	case api.AnswerApproveKeep:
		return "✓ approved and kept", themes.OK
	case api.AnswerDeny:
		return "✗ denied", themes.Denied
	case api.AnswerStepInto:
		return "✓ stepping into", themes.OK
	case api.AnswerStepOver:
		return "✓ stepping over", themes.OK
	case api.AnswerKeep:
		return "✓ kept", themes.OK
	case api.AnswerRollback:
		return "↶ rolled back", themes.Undone
	}
	return "answered", themes.OK
}

// WhyNot says why an answer isn't one to a question, or "".
func WhyNot(i intent.Intent, q api.Question) string {
	approve, ok := i.(intent.Approve)
	_, always := i.(intent.Always)
	if always && q.Connection == nil && q.Subject == api.SubjectEdit {
		return "changes are kept (y) or rolled back (u)"
	}
	if q.Subject == api.SubjectLimit && (always || !ofConnections(i)) {
		return "it is an action at its limit: a lets it go on, d ends it"
	}
	if r := q.Request; r != nil {
		switch {
		case !ofConnections(i):
			return "it is a request: a allows it, d denies it"
		case always && !r.Lasts:
			return "it isn't known well enough what this is for: a allows it once"
		}
		return ""
	}
	if q.Subject == api.SubjectCall && (always || !ofConnections(i)) {
		return "the agent asks: a says yes, d says no, with a reason if you like"
	}
	if q.Connection == nil {
		if ok && approve.Keep && q.Subject == api.SubjectNested {
			return "its changes are its action's: approve it (a)"
		}
		return ""
	}
	switch {
	case !ofConnections(i):
		return "it is a connection: a allows it, d denies it"
	case always && q.Connection.Limit != "":
		return "it is at a limit: a allows as much once more, d ends it"
	case ok && q.Connection.Host == "":
		return "too many to allow at once: d denies them all, A makes a rule for one"
	}
	return ""
}

// ofConnections says whether an answer can be one to a connection.
func ofConnections(i intent.Intent) bool {
	switch i := i.(type) {
	case intent.Approve:
		return !i.Keep
	case intent.StepInto, intent.StepOver:
		return false
	}
	return true
}
