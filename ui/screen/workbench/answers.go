package workbench

import (
	"stepbox/session/api"
	"stepbox/themes"
)

// told is what is said of an answer that was taken, and how it looks.
func told(a api.Answer) (words string, token themes.Token) {
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
		return "↶ taken back", themes.Undone
	}
	return "answered", themes.OK
}
