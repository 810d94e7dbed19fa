package session

import (
	"slices"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

func TestActionLifecycleIsExhaustive(t *testing.T) {
	t.Parallel()
	states := []api.ActionState{"", api.ActionHeld, api.ActionRunning, api.ActionEnded, api.ActionDenied, api.ActionAbandoned}
	allowed := map[[2]api.ActionState]bool{
		{"", api.ActionHeld}: true, {"", api.ActionRunning}: true, {"", api.ActionDenied}: true, {"", api.ActionEnded}: true,
		{api.ActionHeld, api.ActionRunning}: true, {api.ActionHeld, api.ActionDenied}: true, {api.ActionHeld, api.ActionAbandoned}: true,
		{api.ActionRunning, api.ActionEnded}: true,
	}
	for _, from := range states {
		for _, to := range states {
			a := &action{Action: api.Action{State: from}}
			err := a.to(to)
			if want := allowed[[2]api.ActionState{from, to}]; (err == nil) != want {
				t.Errorf("from %q to %q: %v, want allowed %v", from, to, err, want)
			}
			if err != nil && a.State != from {
				t.Errorf("a refused move from %q to %q changed the state", from, to)
			}
		}
	}
}

func TestReviewLifecycleIsExhaustive(t *testing.T) {
	t.Parallel()
	states := []api.Review{api.ReviewNone, api.ReviewOpen, api.ReviewKept, api.ReviewRolledBack}
	allowed := map[api.Review][]api.Review{
		api.ReviewNone: {api.ReviewOpen, api.ReviewKept, api.ReviewRolledBack},
		api.ReviewOpen: {api.ReviewKept, api.ReviewRolledBack},
		api.ReviewKept: {api.ReviewOpen, api.ReviewRolledBack}, api.ReviewRolledBack: {api.ReviewNone, api.ReviewOpen, api.ReviewKept},
	}
	for _, from := range states {
		for _, to := range states {
			a := &action{Action: api.Action{Review: from}}
			if err := a.review(to); (err == nil) != slices.Contains(allowed[from], to) {
				t.Errorf("from %q to %q: %v", from, to, err)
			}
		}
	}
}

// The time that a command waits for an answer isn't time that it runs: what it writes right
// after is its own.
func TestAnAnswerBeginsACommandsTimeAnew(t *testing.T) {
	t.Parallel()
	long := time.Now().Add(-time.Hour)
	for closed, anew := range map[string]bool{"allow": true, "deny": true, "withdrawn": false, "keep": false} {
		a := &action{Action: api.Action{Kind: api.KindCommand, State: api.ActionRunning, ReleasedAt: long}}
		l := actions{running: []*action{a}}
		q := &question{action: a}
		must.OK(t, q.to(questionClosed, "ann", closed))
		if got := l.commands()[0].Released; got.After(long) != anew {
			t.Errorf("closed with %q it counts from %v", closed, got)
		}
	}
}

func TestQuestionLifecycleIsExhaustive(t *testing.T) {
	t.Parallel()
	states := []questionState{questionOpen, questionAnswering, questionClosed}
	for _, from := range states {
		for _, to := range states {
			q := &question{state: from}
			err := q.to(to, "ann", "keep")
			want := from == questionOpen && to != questionOpen || from == questionAnswering && to != questionAnswering
			if (err == nil) != want {
				t.Errorf("from %d to %d: %v, want allowed %v", from, to, err, want)
			}
			if err != nil {
				if q.state != from || q.Answering != "" || q.Closed != "" {
					t.Errorf("a refused move from %d to %d changed the question", from, to)
				}
				continue
			}
			if (q.Answering == "ann") != (to == questionAnswering) || q.Open() != (to != questionClosed) || (q.ClosedBy == "ann") != (to == questionClosed) {
				t.Errorf("from %d to %d the question says %+v", from, to, q.Question)
			}
		}
	}
}
