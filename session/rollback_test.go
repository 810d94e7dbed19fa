package session_test

import (
	"testing"

	"stepbox/session/api"
)

// back rolls back to just before an action, as a person who reads the plan does.
func (w *world) back(n int, meanwhile func()) {
	w.Helper()
	plan, err := w.RollbackPlan(w.Context(), n)
	w.must(err)
	meanwhile()
	_, err = w.Rollback(w.Context(), api.RollbackRequest{ToBefore: n, Hash: plan.Hash, By: "test"})
	w.must(err)
}

// TestRollbackGoesForwardAgain: the state of each action follows from the
// checkpoint that the files are at.
func TestRollbackGoesForwardAgain(t *testing.T) {
	w := start(t, api.ModePolicy, "touch one; touch two; touch three; read x")
	w.action("the last command's end", func(a api.Action) bool { return a.N == 3 && a.State == api.ActionEnded && a.Files == 1 })
	_, err := w.Keep(t.Context(), 2)
	w.must(err)
	reviews := func(want ...api.Review) {
		t.Helper()
		list, err := w.read.Actions(t.Context(), w.ID())
		w.must(err)
		for i, r := range want {
			if list[i].Review != r {
				t.Errorf("action %d is %q, want %q", i+1, list[i].Review, r)
			}
		}
	}
	w.back(2, func() {})
	reviews(api.ReviewOpen, api.ReviewRolledBack, api.ReviewRolledBack)
	w.back(3, func() {})
	reviews(api.ReviewOpen, api.ReviewKept, api.ReviewRolledBack)
	w.back(1, func() {})
	reviews(api.ReviewRolledBack, api.ReviewRolledBack, api.ReviewRolledBack)
}

// TestRollbackWhileSomethingWrites: a file that grows all the time, and that is
// put back, doesn't make the plan stale.
func TestRollbackWhileSomethingWrites(t *testing.T) {
	w := start(t, api.ModePolicy, "touch one; echo >ticks; touch two; while :; do echo x >>ticks; done")
	a := w.action("the last command's end", func(a api.Action) bool { return a.Title == "touch two" && a.State == api.ActionEnded && a.Files == 1 })
	w.back(a.N, func() {
		_, err := w.read.Changes(t.Context(), w.ID(), 0, api.Page{})
		w.must(err)
	})
	w.happened("the roll back", func(e api.Event) bool { return e.Kind == "rollback.done" })
}
