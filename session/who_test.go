package session

import (
	"slices"
	"testing"
	"time"

	"stepbox/runner"
	"stepbox/session/api"
)

func TestWhose(t *testing.T) {
	now := time.Now()
	young := &action{Action: api.Action{N: 1, State: api.ActionRunning, ReleasedAt: now.Add(-absorbTime / 2)}}
	old := &action{Action: api.Action{N: 2, State: api.ActionRunning, ReleasedAt: now.Add(-2 * absorbTime)}}
	leaving := &action{Action: api.Action{N: 3, State: api.ActionRunning, ReleasedAt: now.Add(-2 * absorbTime)}, exiting: true}
	left := &action{Action: api.Action{N: 4, State: api.ActionEnded}, lingers: true}
	gone := &action{Action: api.Action{N: 5, State: api.ActionRunning, ReleasedAt: now}, exiting: true, atExit: &checkpoint{}}
	beside := &action{Action: api.Action{N: 6, State: api.ActionRunning, ReleasedAt: now}, beside: true}
	last := &action{Action: api.Action{N: 7, State: api.ActionRunning, ReleasedAt: now}, beside: true, exiting: true}
	type who = map[*action]bool
	for _, c := range []struct {
		name           string
		alive          []*action
		ran            who
		theirs, shared []*action
	}{
		{"nobody else lives", nil, nil, nil, nil},
		{"the agent alone ran", []*action{young, old, left}, who{nil: true}, nil, nil},
		{"the agent didn't run", []*action{young, old, left}, who{left: true}, []*action{left}, nil},
		{"two commands ran", []*action{young, left}, who{young: true, left: true}, []*action{young, left}, nil},
		{"nobody ran", []*action{left}, who{}, []*action{left}, nil},
		{"the agent waits for a command", []*action{young, left}, who{nil: true, young: true, left: true}, []*action{young}, nil},
		{"a command that ends takes its last changes", []*action{leaving, old}, who{nil: true, leaving: true, old: true}, []*action{leaving}, nil},
		{"a command doesn't absorb for hours", []*action{old}, who{nil: true, old: true}, nil, []*action{old}},
		{"what was left running absorbs nothing", []*action{left}, who{nil: true, left: true}, nil, []*action{left}},
		{"nor does what a command left whose end isn't told yet", []*action{gone}, who{nil: true, gone: true}, nil, []*action{gone}},
		{"the agent goes on beside a command", []*action{beside}, who{nil: true, beside: true}, nil, []*action{beside}},
		{"it waits for another", []*action{beside, young}, who{nil: true, beside: true, young: true}, []*action{beside, young}, nil},
		{"a command beside which it went on ends", []*action{last}, who{nil: true, last: true}, []*action{last}, nil},
		{"nothing is known", []*action{left, old}, nil, nil, []*action{left, old}},
	} {
		theirs, shared := whose(c.alive, c.ran, now)
		if !slices.Equal(theirs, c.theirs) || !slices.Equal(shared, c.shared) {
			t.Errorf("%s: theirs %v, shared %v", c.name, theirs, shared)
		}
	}
}

func TestRan(t *testing.T) {
	a, b := &action{}, &action{}
	p := func(pid int, did string) runner.Activity {
		return runner.Activity{Process: runner.Process{PID: pid, Start: 1}, Threads: map[int]string{pid: did}}
	}
	running := p(1, "1")
	running.Running = true
	again := p(1, "1")
	again.Start = 2
	for _, c := range []struct {
		name            string
		base, now       *glance
		agent, isA, isB bool
	}{
		{"nothing", &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, []*action{nil, a}}, &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, []*action{nil, a}}, false, false, false},
		{"one ran", &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, []*action{nil, a}}, &glance{[]runner.Activity{p(1, "1"), p(2, "2")}, []*action{nil, a}}, false, true, false},
		{"one was running", &glance{[]runner.Activity{running}, []*action{nil}}, &glance{[]runner.Activity{running}, []*action{nil}}, true, false, false},
		{"one went away", &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, []*action{nil, a}}, &glance{[]runner.Activity{p(1, "1")}, []*action{nil}}, false, true, false},
		{"one came", &glance{[]runner.Activity{p(1, "1")}, []*action{nil}}, &glance{[]runner.Activity{p(1, "2"), p(2, "1")}, []*action{nil, a}}, true, true, false},
		{"a number is used again", &glance{[]runner.Activity{p(1, "1")}, []*action{nil}}, &glance{[]runner.Activity{again}, []*action{a}}, true, true, false},
		{"one became another's", &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, []*action{a, nil}}, &glance{[]runner.Activity{p(1, "1"), p(2, "2")}, []*action{a, b}}, true, false, true},
		{"a thread came", &glance{[]runner.Activity{p(1, "1")}, []*action{a}}, &glance{[]runner.Activity{{Process: p(1, "").Process, Threads: map[int]string{1: "1", 2: "1"}}}, []*action{a}}, false, true, false},
	} {
		who := ran(c.base, c.now)
		if who == nil || who[nil] != c.agent || who[a] != c.isA || who[b] != c.isB {
			t.Errorf("%s: %v", c.name, who)
		}
	}
	if ran(nil, &glance{}) != nil || ran(&glance{}, nil) != nil {
		t.Error("it is said to be known who ran, without a look")
	}
}
