package dialog

import (
	"testing"

	"stepbox/session/api"
)

func TestStack(t *testing.T) {
	var s Stack
	if s.Top() != nil {
		t.Error("an empty stack has a top")
	}
	q := api.Question{ID: 5}
	decision, help := NewDecision(q, "print"), &Help{}
	s.Open(decision)
	s.Open(help)
	if s.Top() != Dialog(help) {
		t.Error("the last one isn't uppermost")
	}
	s.CloseFor(q.ID + 1)
	s.CloseFor(q.ID)
	if len(s.all) != 1 || s.Top() != Dialog(help) {
		t.Errorf("%d are left when the question was answered", len(s.all))
	}
	s.Close(help)
	if s.Top() != nil {
		t.Error("one is left")
	}
}
