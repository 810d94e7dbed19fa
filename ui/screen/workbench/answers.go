package workbench

import (
	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
)

func answerFor(i intent.Intent) api.Answer {
	switch i := i.(type) {
	case intent.Approve:
		if i.Keep {
			return api.AnswerApproveKeep
		}
	case intent.StepInto:
		return api.AnswerStepInto
	case intent.StepOver:
		return api.AnswerStepOver
	}
	return api.AnswerApprove
}

func answerWords(a api.Answer) string {
	switch a {
	case api.AnswerApprove:
		return "✓ approved"
	case api.AnswerApproveKeep:
		return "✓ approved and kept"
	case api.AnswerDeny:
		return "✗ denied"
	case api.AnswerStepInto:
		return "✓ stepping into"
	case api.AnswerStepOver:
		return "✓ stepping over"
	case api.AnswerKeep:
		return "✓ kept"
	case api.AnswerRollback:
		return "↶ rolled back"
	}
	return "answered"
}

func answerToken(a api.Answer) themes.Token {
	switch a {
	case api.AnswerDeny:
		return themes.Denied
	case api.AnswerRollback:
		return themes.Undone
	}
	return themes.OK
}
