package session

import (
	"slices"
	"testing"

	"stepbox/session/api"
)

func TestActionLifecycleIsExhaustive(t *testing.T) {
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
	states := []api.Review{api.ReviewNone, api.ReviewOpen, api.ReviewKept, api.ReviewRolledBack}
	allowed := map[api.Review][]api.Review{
		api.ReviewNone: {api.ReviewOpen, api.ReviewKept, api.ReviewRolledBack},
		api.ReviewOpen: {api.ReviewKept, api.ReviewRolledBack},
		api.ReviewKept: {api.ReviewRolledBack},
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
