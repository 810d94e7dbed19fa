package session_test

import (
	"testing"

	"stepbox/session/api"
)

// endOf waits for the end of the action that a question was about.
func (w *world) endOf(q api.Question) api.Action {
	w.Helper()
	e := w.happened("the end of an action", func(e api.Event) bool {
		return e.Kind == "action.ended" && e.Action.N == q.Action
	})
	return *e.Action
}

// One answer may approve a command and keep what it changes.
func TestApproveAndKeep(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "cp a.txt b.txt; cat b.txt; sleep 60")
	q := w.held(0)
	w.must(w.decide(q, api.AnswerApproveKeep))
	if a := w.endOf(q); a.Review != api.ReviewKept || a.Files != 1 || a.Kept == "" {
		t.Errorf("the review is %q, %d files, kept by %q", a.Review, a.Files, a.Kept)
	}
	next := w.held(q.ID)
	if next.Title != "cat b.txt" {
		t.Fatalf("held %s %q, want the next command", next.Subject, next.Title)
	}
	w.must(w.decide(next, api.AnswerApprove))
}
