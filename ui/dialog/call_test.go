package dialog

import (
	"testing"

	"stepbox/session/api"
	"stepbox/ui/intent"
)

// TestAnswersToTheAgent: what the agent asks is answered with yes or no, and with nothing
// that would hold for longer or let anything run.
func TestAnswersToTheAgent(t *testing.T) {
	q := api.Question{Subject: api.SubjectCall}
	for i, may := range map[intent.Intent]bool{
		intent.Approve{}: true, intent.Deny{}: true,
		intent.Approve{Keep: true}: false, intent.Always{}: false, intent.StepInto{}: false, intent.StepOver{}: false,
	} {
		if why := WhyNot(i, q); (why == "") != may {
			t.Errorf("%T%+v: %q", i, i, why)
		}
	}
}
