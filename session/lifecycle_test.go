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

func TestSessionLifeIsExhaustive(t *testing.T) {
	allowed := map[[2]phase]bool{
		{phaseStarting, phaseRunning}: true, {phaseStarting, phaseStopping}: true,
		{phaseRunning, phaseStopping}:  true,
		{phaseStopping, phaseDraining}: true, {phaseStopping, phaseRecorded}: true,
		{phaseDraining, phaseRecorded}: true,
		{phaseRecorded, phaseClosed}:   true,
	}
	for from := range phase(phases) {
		for to := range phase(phases) {
			l := newLife()
			l.now = from
			if from != to && to != phaseStarting {
				l.entered[to] = make(chan struct{})
			}
			err := l.to(to)
			if (err == nil) != allowed[[2]phase{from, to}] {
				t.Errorf("from %s to %s: %v, want allowed %v", from, to, err, !(err == nil))
			}
			select {
			case <-l.in(to):
				if err != nil && to != phaseStarting {
					t.Errorf("a refused move from %s to %s was told to those who wait", from, to)
				}
			default:
				if err == nil {
					t.Errorf("the move from %s to %s wasn't told to those who wait", from, to)
				}
			}
			if err != nil && l.now != from {
				t.Errorf("a refused move from %s to %s changed the phase", from, to)
			}
		}
	}
}

func TestEveryPhaseLeadsToTheEnd(t *testing.T) {
	for from := range phase(phases) {
		reached := map[phase]bool{from: true}
		for list := []phase{from}; len(list) > 0; list = list[1:] {
			for _, next := range ways[list[0]] {
				if next <= list[0] {
					t.Errorf("the session goes back from %s to %s", list[0], next)
				}
				if !reached[next] {
					reached[next] = true
					list = append(list, next)
				}
			}
		}
		if !reached[phaseClosed] {
			t.Errorf("a session that is %s never closes", from)
		}
	}
}

func TestQuestionLifecycleIsExhaustive(t *testing.T) {
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
