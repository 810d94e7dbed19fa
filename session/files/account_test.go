package files

import (
	"slices"
	"testing"
	"time"

	"stepbox/runner"
)

func TestWhose(t *testing.T) {
	now := time.Now()
	young := Command{N: 1, Runs: true, Released: now.Add(-absorbTime / 2)}
	old := Command{N: 2, Runs: true, Released: now.Add(-2 * absorbTime)}
	leaving := Command{N: 3, Runs: true, Released: now.Add(-2 * absorbTime), Ending: true}
	left := Command{N: 4}
	gone := Command{N: 5, Released: now, Ending: true}
	beside := Command{N: 6, Runs: true, Released: now, Beside: true}
	last := Command{N: 7, Runs: true, Released: now, Beside: true, Ending: true}
	type who = map[int]bool
	for _, c := range []struct {
		name           string
		alive          []Command
		ran            who
		theirs, shared []int
	}{
		{"nobody else lives", nil, nil, nil, nil},
		{"the agent alone ran", []Command{young, old, left}, who{Agent: true}, nil, nil},
		{"the agent didn't run", []Command{young, old, left}, who{4: true}, []int{4}, nil},
		{"two commands ran", []Command{young, left}, who{1: true, 4: true}, []int{1, 4}, nil},
		{"nobody ran", []Command{left}, who{}, []int{4}, nil},
		{"the agent waits for a command", []Command{young, left}, who{Agent: true, 1: true, 4: true}, []int{1}, nil},
		{"a command that ends takes its last changes", []Command{leaving, old}, who{Agent: true, 3: true, 2: true}, []int{3}, nil},
		{"a command doesn't absorb for hours", []Command{old}, who{Agent: true, 2: true}, nil, []int{2}},
		{"what was left running absorbs nothing", []Command{left}, who{Agent: true, 4: true}, nil, []int{4}},
		{"nor does what a command left whose end isn't told yet", []Command{gone}, who{Agent: true, 5: true}, nil, []int{5}},
		{"the agent goes on beside a command", []Command{beside}, who{Agent: true, 6: true}, nil, []int{6}},
		{"it waits for another", []Command{beside, young}, who{Agent: true, 6: true, 1: true}, []int{6, 1}, nil},
		{"a command beside which it went on ends", []Command{last}, who{Agent: true, 7: true}, []int{7}, nil},
		{"what isn't among them ran", []Command{left}, who{9: true}, nil, nil},
		{"nothing is known", []Command{left, old}, nil, nil, []int{4, 2}},
	} {
		theirs, shared := Whose(c.alive, c.ran, now, false)
		if !slices.Equal(theirs, c.theirs) || !slices.Equal(shared, c.shared) {
			t.Errorf("%s: theirs %v, shared %v", c.name, theirs, shared)
		}
	}
	// Where edits are asked about.
	for name, c := range map[string]struct {
		alive          []Command
		ran            who
		theirs, shared []int
		wait           time.Duration
	}{
		"what the agent may have made is open": {[]Command{young}, who{Agent: true, 1: true}, nil, []int{1}, absorbTime / 2},
		"and where nothing is known":           {[]Command{young, old}, nil, nil, []int{1, 2}, absorbTime / 2},
		"until the command ends":               {[]Command{leaving}, who{Agent: true, 3: true}, []int{3}, nil, 0},
		"or another begins":                    {[]Command{beside}, who{Agent: true, 6: true}, nil, []int{6}, 0},
		"or it has run for long":               {[]Command{old}, who{Agent: true, 2: true}, nil, []int{2}, 0},
		"what the agent can't have made isn't": {[]Command{young}, who{1: true}, []int{1}, nil, 0},
		"nor what the command can't have made": {[]Command{young}, who{Agent: true}, nil, nil, 0},
	} {
		theirs, shared := Whose(c.alive, c.ran, now, true)
		if wait := Undecided(c.alive, c.ran, now); !slices.Equal(theirs, c.theirs) || !slices.Equal(shared, c.shared) || wait != c.wait {
			t.Errorf("%s: theirs %v, shared %v, %v", name, theirs, shared, wait)
		}
	}
}

func TestRan(t *testing.T) {
	const a, b = 1, 2
	p := func(pid int, did string) runner.Activity {
		return runner.Activity{Process: runner.Process{PID: pid, Start: 1}, Threads: map[int]string{pid: did}}
	}
	of := func(list ...int) (all []whose) {
		for _, n := range list {
			all = append(all, whose{n: n})
		}
		return all
	}
	held := func(became bool) []whose { return []whose{{n: a, became: func() bool { return became }}} }
	running := p(1, "1")
	running.Running = true
	again := p(1, "1")
	again.Start = 2
	for _, c := range []struct {
		name            string
		began, now      *glance
		agent, isA, isB bool
	}{
		{"nothing", &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, of(Agent, a)}, &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, of(Agent, a)}, false, false, false},
		{"one ran", &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, of(Agent, a)}, &glance{[]runner.Activity{p(1, "1"), p(2, "2")}, of(Agent, a)}, false, true, false},
		{"one was running", &glance{[]runner.Activity{running}, of(Agent)}, &glance{[]runner.Activity{running}, of(Agent)}, true, false, false},
		{"one went away", &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, of(Agent, a)}, &glance{[]runner.Activity{p(1, "1")}, of(Agent)}, false, true, false},
		{"one came", &glance{[]runner.Activity{p(1, "1")}, of(Agent)}, &glance{[]runner.Activity{p(1, "2"), p(2, "1")}, of(Agent, a)}, true, true, false},
		{"a number is used again", &glance{[]runner.Activity{p(1, "1")}, of(Agent)}, &glance{[]runner.Activity{again}, of(a)}, true, true, false},
		{"one became another's", &glance{[]runner.Activity{p(1, "1"), p(2, "1")}, of(a, Agent)}, &glance{[]runner.Activity{p(1, "1"), p(2, "2")}, of(a, b)}, true, false, true},
		{"one was held", &glance{[]runner.Activity{p(1, "1")}, held(false)}, &glance{[]runner.Activity{p(1, "1")}, held(false)}, false, false, false},
		{"one that was held began, and went away", &glance{[]runner.Activity{p(1, "1")}, held(true)}, &glance{}, false, true, false},
		{"one that was held went on as it was", &glance{[]runner.Activity{p(1, "1")}, held(false)}, &glance{}, true, true, false},
		{"a thread came", &glance{[]runner.Activity{p(1, "1")}, of(a)}, &glance{[]runner.Activity{{Process: p(1, "").Process, Threads: map[int]string{1: "1", 2: "1"}}}, of(a)}, false, true, false},
	} {
		who := ran(c.began, c.now)
		if who == nil || who[Agent] != c.agent || who[a] != c.isA || who[b] != c.isB {
			t.Errorf("%s: %v", c.name, who)
		}
	}
	if ran(nil, &glance{}) != nil || ran(&glance{}, nil) != nil {
		t.Error("it is said to be known who ran, without a look")
	}
}

// Only what ran no longer than it takes to be frozen is taken to have slept until then.
func TestAsleep(t *testing.T) {
	p := func(pid int, did string, mark uint64) runner.Activity {
		return runner.Activity{Process: runner.Process{PID: pid, Start: 1}, Mark: mark, Threads: map[int]string{pid: did}}
	}
	before := []runner.Activity{p(1, "1000 10 3\n", 1), p(2, "1000 10 3\n", 1), p(3, "1000 10 3\n", 1), p(4, "1", 1)}
	frozen := []runner.Activity{p(1, "41000 90 5\n", 1), p(2, "9001000 10 4\n", 1), p(3, "41000 90 4\n", 2), p(4, "2", 1), p(5, "1000 10 3\n", 1)}
	var slept []int
	for i, now := range asleep(before, slices.Clone(frozen)) {
		if now.Threads[now.PID] != frozen[i].Threads[now.PID] {
			slept = append(slept, now.PID)
		}
	}
	if !slices.Equal(slept, []int{1}) {
		t.Errorf("%v are taken to have slept", slept)
	}
}
