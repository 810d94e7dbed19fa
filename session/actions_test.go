package session

import (
	"fmt"
	"testing"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/judge"
)

var claude = policy.BuiltinProfiles().For([]string{"claude"}, "")

// lived is an action that was formed of one exec, ran and has ended, or was denied.
func lived(l *actions, n int, denied bool) *action {
	x := exec(n, 0)
	a := &action{Action: api.Action{Kind: api.KindCommand, Title: fmt.Sprintf("make %d", n%100)}}
	l.forming = append(l.forming, a)
	l.hold(a, x)
	l.add(a)
	l.decided(a)
	if a.State = api.ActionRunning; denied {
		a.State = api.ActionDenied
	}
	a.seats = []seat{seatOf(x)}
	l.noted(a)
	if !denied {
		a.State, a.Exit = api.ActionEnded, &api.Exit{}
		l.noted(a)
	}
	return a
}

// What an exec costs doesn't grow with a session: of ten thousand actions that are
// over none is looked at again.
func TestActionsThatAreOverCostNothing(t *testing.T) {
	t.Parallel()
	l := newActions()
	for n := range 10_000 {
		lived(&l, n+1, n%3 == 0)
		l.alive() // as each that begins does
	}
	lives := &action{Action: api.Action{Kind: api.KindCommand}, lingers: true}
	l.add(lives)
	l.noted(lives)
	if n := len(l.running) + len(l.forming) + len(l.waiting); n != 1 {
		t.Errorf("%d of %d actions are looked at for an exec, want the one that left something running", n, len(l.all))
	}
	if got := l.alive(); len(got) != 1 || got[0] != lives {
		t.Errorf("%d actions are alive, want one", len(got))
	}
	if len(l.last) != 100 {
		t.Errorf("%d titles are known, want 100", len(l.last))
	}
}

func TestActionsLastTime(t *testing.T) {
	t.Parallel()
	l := newActions()
	if got := l.lastTime("make 1"); got != "" {
		t.Errorf("before anything ran: %q", got)
	}
	lived(&l, 1, true)
	if got := l.lastTime("make 1"); got != "#1: denied" {
		t.Errorf("after a denial: %q", got)
	}
	a := lived(&l, 101, false)
	a.Exit.Code, a.Files = 3, 7
	if got := l.lastTime("make 1"); got != "#2: exit 3, 7 files changed" {
		t.Errorf("after it ran: %q", got)
	}
	l.noted(l.at(1)) // an older one is told of again
	if got := l.lastTime("make 1"); got != "#2: exit 3, 7 files changed" {
		t.Errorf("the newest isn't the last: %q", got)
	}
	if l.at(0) != nil || l.at(3) != nil || l.at(2) != a {
		t.Error("actions aren't found by number")
	}
}

// A held exec whose process goes away is found wherever it waits, once.
func TestActionsLoseMembers(t *testing.T) {
	t.Parallel()
	l := newActions()
	a := &action{}
	first, second := exec(2, 0), exec(1, 0)
	l.hold(a, first)
	l.hold(a, second)
	if a.members[0] != second {
		t.Error("members don't stand in the order of their job")
	}
	if l.lost(first.Exec) != a || l.lost(first.Exec) != nil || len(a.members) != 1 {
		t.Error("a member isn't lost once")
	}
	if got := l.decided(a); len(got) != 1 || len(a.members) != 0 || l.lost(second.Exec) != nil {
		t.Error("what was decided on is still waited for")
	}
}

// A job is one by process group, beside the same parent, or by pipes.
func TestActionsJob(t *testing.T) {
	t.Parallel()
	shell := &process{proc: proc{1, 1}, pgid: 1}
	member := func(pgid int, in, out uint64) *judge.Exec {
		return &judge.Exec{Exec: &gate.Exec{PID: 9, PGID: pgid, Stdin: in, Stdout: out}}
	}
	for name, c := range map[string]struct {
		of     *action
		member *judge.Exec
		joins  *judge.Exec
		want   bool
	}{
		"its group":              {&action{parent: shell}, member(5, 0, 0), member(5, 0, 0), true},
		"another group":          {&action{parent: shell}, member(5, 0, 0), member(6, 0, 0), false},
		"the shell's own group":  {&action{parent: shell}, member(1, 0, 0), member(1, 0, 0), false},
		"another's child":        {&action{parent: &process{proc: proc{2, 1}}}, member(5, 0, 0), member(5, 0, 0), false},
		"a stray":                {&action{}, member(5, 0, 0), member(5, 0, 0), false},
		"a pipe from it":         {&action{}, member(5, 0, 7), member(6, 7, 0), true},
		"a pipe to it":           {&action{}, member(5, 7, 0), member(6, 0, 7), true},
		"one that it has itself": {&action{}, member(5, 7, 0), member(6, 7, 0), false},
	} {
		l := newActions()
		l.forming = []*action{c.of}
		l.hold(c.of, c.member)
		if got := l.job(c.joins, shell); (got != nil) != c.want {
			t.Errorf("%s, forming: %v", name, !c.want)
		}
		c.of.seats, c.of.Kind, c.of.State = []seat{seatOf(c.member)}, api.KindCommand, api.ActionRunning
		l.decided(c.of)
		l.noted(c.of)
		if got := l.job(c.joins, shell); (got != nil) != c.want {
			t.Errorf("%s, running: %v", name, !c.want)
		}
		c.of.State = api.ActionEnded
		if l.job(c.joins, shell) != nil {
			t.Errorf("%s joins what is over", name)
		}
	}
}

// TestCommandsWaitBehindEdits: while the agent's own changes are about to be
// asked about, no command that came after them is.
func TestCommandsWaitBehindEdits(t *testing.T) {
	t.Parallel()
	s := &Session{edits: 1}
	a := &action{}
	a.State = api.ActionHeld
	s.ask(a)
	if a.question != nil || len(s.behind) != 1 {
		t.Errorf("it is asked about (%v) and not put off (%d)", a.question, len(s.behind))
	}
}
