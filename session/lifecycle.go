package session

import (
	"fmt"
	"slices"
	"time"

	"stepbox/session/api"
)

// transitions is the life of an action. What isn't listed can't happen, and is
// refused rather than carried out.
var transitions = map[api.ActionState][]api.ActionState{
	"":                  {api.ActionHeld, api.ActionRunning, api.ActionDenied, api.ActionEnded}, // an edit is over when it is seen
	api.ActionHeld:      {api.ActionRunning, api.ActionDenied, api.ActionAbandoned},
	api.ActionRunning:   {api.ActionEnded},
	api.ActionEnded:     {},
	api.ActionDenied:    {},
	api.ActionAbandoned: {},
}

// reviews is what may follow on a review. What was kept is open again when what
// the action left running changes more. What was taken back can't be kept, but
// a roll back that goes forward again restores it, with the review it had.
var reviews = map[api.Review][]api.Review{
	api.ReviewNone:       {api.ReviewOpen, api.ReviewRolledBack, api.ReviewKept},
	api.ReviewOpen:       {api.ReviewKept, api.ReviewRolledBack},
	api.ReviewKept:       {api.ReviewOpen, api.ReviewRolledBack},
	api.ReviewRolledBack: {api.ReviewNone, api.ReviewOpen, api.ReviewKept},
}

// questionState is where a question is in its life.
type questionState int

const (
	questionOpen      questionState = iota
	questionAnswering               // someone's answer is being carried out, and may still fail
	questionClosed
)

// answers is the life of a question: while one answer is carried out no other
// counts, and one that couldn't be carried out leaves the question open.
var answers = map[questionState][]questionState{
	questionOpen:      {questionAnswering, questionClosed},
	questionAnswering: {questionOpen, questionClosed},
	questionClosed:    {},
}

// to moves a question on. By is who answers, closed what the answer was.
func (q *question) to(next questionState, by, closed string) error {
	if !slices.Contains(answers[q.state], next) {
		return fmt.Errorf("cannot move question %d from %d to %d", q.ID, q.state, next)
	}
	q.state, q.Answering = next, ""
	switch next {
	case questionAnswering:
		q.Answering = by
	case questionClosed:
		q.Closed, q.ClosedBy = closed, by
		if q.action != nil && (closed == "allow" || closed == "deny") { // it stood still until now
			q.action.answered = time.Now()
		}
	}
	return nil
}

// to moves an action on; a move that the table doesn't have is a fault of ours.
func (a *action) to(next api.ActionState) error {
	if !slices.Contains(transitions[a.State], next) {
		return fmt.Errorf("cannot move action %d from %q to %q", a.N, a.State, next)
	}
	a.State = next
	return nil
}

// review sets what was said of an action's changes.
func (a *action) review(next api.Review) error {
	if !slices.Contains(reviews[a.Review], next) {
		return fmt.Errorf("cannot move the review of action %d from %q to %q", a.N, a.Review, next)
	}
	a.Review = next
	return nil
}
