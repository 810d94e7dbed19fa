package workbench

import (
	"fmt"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// nameOf is what a question is called where it is spoken of.
func nameOf(q api.Question) string {
	if q.Apart() {
		return paint.Wants(q)
	}
	return fmt.Sprintf("#%d", q.Action)
}

// andEqual says for how many more an answer was.
func andEqual(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and its equal"
	}
	return fmt.Sprintf(" and %d equal ones", n)
}

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
		return "↶ rolled back", themes.Undone
	}
	return "answered", themes.OK
}
