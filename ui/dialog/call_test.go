package dialog

import (
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
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

// TestDenialSaysWhoReadsIt: a reason goes where the question came from.
func TestDenialSaysWhoReadsIt(t *testing.T) {
	for subject, want := range map[api.Subject]string{api.SubjectCall: "as the answer to what it asks", api.SubjectCommand: "on its standard error"} {
		th, err := themes.Load("plain", "")
		must.OK(t, err)
		b := uv.NewScreenBuffer(100, 20)
		NewReason(api.Question{Subject: subject, Title: "x"}, "", false).Draw(b.Bounds(), paint.Frame{Screen: b, P: paint.NewPalette(th, 0)})
		if s := b.String(); !strings.Contains(s, want) {
			t.Errorf("%s: no %q in\n%s", subject, want, s)
		}
	}
}
