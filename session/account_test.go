package session

import (
	"testing"

	"stepbox/runner"
	"stepbox/runner/overlay/diff"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
)

// What is left running are those that live, whatever a look from before saw; and
// nobody is told of it before the action's end is.
func TestSurvivorsAreThoseThatLive(t *testing.T) {
	t.Parallel()
	r, living := fakeRoster()
	s := &Session{roster: *r, actions: newActions(), files: &files.Files{}}
	a := &action{Action: api.Action{Kind: api.KindCommand, State: api.ActionEnded}}
	s.actions.add(a)
	mark := s.roster.newKin(a).mark
	leader := runner.Activity{Process: runner.Process{PID: 7, Start: 1}, Mark: mark}
	s.accountant.Begin([]runner.Activity{leader}, s.roster.ownerOf)
	if got := s.survivors(); len(got) != 0 || a.lingers {
		t.Errorf("a leader that is gone is left running: %+v", got)
	}
	living[7] = mark
	if got := s.survivors(); len(got) != 1 || a.LeftRunning != 1 || !a.lingers {
		t.Errorf("of one that lives it says %+v and counts %d", got, a.LeftRunning)
	}
	delete(living, 7)
	a.untold = true
	s.accountant.Begin([]runner.Activity{}, s.roster.ownerOf)
	if got := s.survivors(); len(got) != 0 || a.LeftRunning != 0 {
		t.Errorf("before the end is told it says %+v, and counts %d", got, a.LeftRunning)
	}
}

// A roll back may take back what has ended and isn't told yet: it isn't open for
// review, and will be when a later one has it come again.
func TestTakenBackBeforeItIsTold(t *testing.T) {
	t.Parallel()
	s, a := &Session{}, &action{untold: true}
	must.OK(t, a.review(api.ReviewRolledBack))
	s.own(a, files.Told{To: 2, After: 2, Changed: []diff.Change{{Path: "a"}}})
	if a.Files != 1 || a.Review != api.ReviewRolledBack || a.Reviewed != api.ReviewOpen {
		t.Errorf("it changed %d files and its review is %q, once it comes again %q", a.Files, a.Review, a.Reviewed)
	}
}
