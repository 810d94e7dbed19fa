package session

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/judge"
)

// fakeMarks are processes without a sandbox: their marks, by pid.
type fakeMarks map[int]uint64

func (f fakeMarks) Marks() map[uint64]int {
	out := make(map[uint64]int)
	for _, mark := range f {
		out[mark]++
	}
	return out
}

func (f fakeMarks) Marked(wanted func(uint64) bool) (out []runner.Process, err error) {
	for pid, mark := range f {
		if wanted(mark) {
			out = append(out, runner.Process{PID: pid, Start: 1})
		}
	}
	return out, nil
}

func (f fakeMarks) Alive(pid int, _ uint64) bool { return f[pid] != 0 }

func fakeRoster() (*roster, fakeMarks) {
	r, f := newRoster(), fakeMarks{}
	r.box = f
	return &r, f
}

// exec is a held one of a process with these ancestors and a mark.
func exec(pid int, mark uint64, ancestors ...int) *judge.Exec {
	e := &gate.Exec{PID: pid, Start: 1, Mark: mark}
	for _, a := range ancestors {
		e.Ancestors = append(e.Ancestors, gate.Process{PID: a, Start: 1})
	}
	return &judge.Exec{Exec: e}
}

// begin lets a program begin in a process, and says which mark that gets.
func begin(t *testing.T, r *roster, x *judge.Exec, p *process) uint64 {
	t.Helper()
	p.proc = procOf(x)
	mark := r.let(x, p)
	if r.of(x) == p {
		t.Fatal("it has its place before it begins")
	}
	if now, _ := r.begins(x.Exec); now != p || r.of(x) != p {
		t.Fatal("it has no place")
	}
	return mark
}

// Who descends from what was judged is told by the mark, which fork hands down,
// and never by parents that were there before the program was.
func TestRosterDescent(t *testing.T) {
	t.Parallel()
	r, _ := fakeRoster()
	begin(t, r, exec(1, 0), &process{agent: true})
	a := &action{Action: api.Action{N: 4}}
	k := r.newKin(a)
	if mark := begin(t, r, exec(10, 0, 1), &process{kin: k, action: a}); mark != k.mark || mark == 0 {
		t.Fatal("what begins doesn't get its kin's mark")
	}
	if begin(t, r, exec(18, k.mark, 10, 1), &process{kin: k, action: a}) != 0 {
		t.Error("what has its kin's mark gets another")
	}
	second, becomes := r.newKin(a), r.newKin(&action{becomes: true})
	begin(t, r, exec(19, 0, 1), &process{kin: becomes, action: becomes.action})
	for name, c := range map[string]struct {
		exec  *judge.Exec
		kin   *kin
		doubt string
	}{
		"itself":                     {exec(10, k.mark, 1), k, ""},
		"its child":                  {exec(11, k.mark, 10, 1), k, ""},
		"its orphan":                 {exec(12, k.mark), k, ""},
		"its child, judged since":    {exec(13, second.mark, 10, 1), second, ""},
		"a child from before it":     {exec(14, 0, 10, 1), nil, "only after"},
		"the agent's child":          {exec(15, 0, 1), nil, ""},
		"an orphan of the agent's":   {exec(16, 0), nil, ""},
		"one with nobody's mark":     {exec(17, 99, 1), nil, ""},
		"what the agent became":      {exec(19, 0, 1), becomes, ""},
		"its child, which is judged": {exec(20, 0, 19, 1), nil, ""},
	} {
		if _, got, doubt := r.belongs(c.exec); got != c.kin || (doubt == "") != (c.doubt == "") || !strings.Contains(doubt, c.doubt) {
			t.Errorf("%s: of kin %v, doubt %q", name, got, doubt)
		}
	}
	for mark, want := range map[uint64]int{k.mark: 4, second.mark: 4, 99: files.Agent, 0: files.Agent} {
		if got, _ := r.ownerOf(runner.Activity{Mark: mark}); got != want {
			t.Errorf("changes of what has mark %d are %d's, want %d's", mark, got, want)
		}
	}
	a.Housekeeping = true
	if n, _ := r.ownerOf(runner.Activity{Mark: k.mark}); n != files.Agent {
		t.Error("housekeeping owns changes")
	}
}

// An exec that the kernel refuses leaves its process what it was.
func TestRosterFailedStart(t *testing.T) {
	t.Parallel()
	r, _ := fakeRoster()
	x := exec(1, 0)
	begin(t, r, x, &process{agent: true})
	again := exec(1, 0)
	a := &action{Action: api.Action{State: api.ActionEnded}}
	k := r.newKin(a)
	r.let(again, &process{proc: procOf(again), kin: k})
	for range 2 {
		r.forget(a)
	}
	if r.kins[k.mark] != k {
		t.Error("the kin of what is about to begin is forgotten")
	}
	if r.fails(again.Exec) == nil {
		t.Error("a start that failed isn't known")
	}
	if now, _ := r.begins(again.Exec); now != nil || !r.of(x).agent {
		t.Error("a start that failed took its place")
	}
}

// A person's approval covers what is started by what can only follow from it, and by a program that was approved itself.
func TestRosterCovers(t *testing.T) {
	t.Parallel()
	r, _ := fakeRoster()
	a := &action{Action: api.Action{N: 1, State: api.ActionRunning}}
	obeys := func(yes bool) *judge.Exec {
		x := exec(1, 0)
		x.Obeys = yes
		return x
	}
	k := r.newKin(a)
	k.person = true
	other := r.kinFor(k, obeys(true))
	if r.kinFor(k, obeys(false)) != k || other == k || other.person || r.kinFor(other, obeys(true)) != other || r.kinFor(k, obeys(true)) != other {
		t.Error("what obeys others is covered, or what doesn't isn't")
	}
	if r.kinFor(other, obeys(false)) != other {
		t.Error("what nobody approved is covered, since another was")
	}
	one := obeys(false)
	a.shown = append(a.shown, shownOf(one))
	if r.kinFor(other, obeys(false)) != other {
		t.Error("what is the same as what was approved is covered")
	}
	if again := r.kinFor(other, one); !again.person || again.mark <= other.mark || r.kinFor(again, obeys(true)).person {
		t.Error("what was approved isn't covered, or covers what obeys others")
	}
	if a.over = true; r.kinFor(k, obeys(true)) != k || !other.freed() {
		t.Error("what the person lets start what it likes is something else")
	}
}

// Nothing reaches another program but within one verdict.
func TestRosterReach(t *testing.T) {
	t.Parallel()
	r, _ := fakeRoster()
	begin(t, r, exec(1, 0), &process{agent: true})
	begin(t, r, exec(2, 0, 1), &process{shell: true, jobs: true})
	marks := make(map[int]uint64)
	for n := range 3 {
		a := &action{Action: api.Action{N: n + 1}}
		if n == 2 {
			a.agent = claude
		}
		k := r.newKin(a)
		k.person = n == 0
		marks[n+1] = k.mark
		begin(t, r, exec(10*(n+1), 0, 1), &process{kin: k, action: a})
		if n == 0 {
			tool := exec(12, k.mark, 1)
			tool.Obeys = true
			marks[4] = r.kinFor(k, tool).mark // within the first
		}
	}
	party := func(pid, action int) gate.Party {
		return gate.Party{Process: gate.Process{PID: pid, Start: 1}, Mark: marks[action]}
	}
	for name, c := range map[string]struct {
		from, to gate.Party
		kind     gate.ReachKind
		watched  bool
		want     bool
	}{
		"within an action":                 {party(11, 1), party(10, 1), gate.ReachTrace, false, true},
		"to another action":                {party(11, 1), party(20, 2), gate.ReachTrace, false, false},
		"to the agent":                     {party(11, 1), party(1, 0), gate.ReachTrace, false, false},
		"from the agent":                   {party(1, 0), party(10, 1), gate.ReachTrace, false, false},
		"the agent, itself":                {party(1, 0), party(1, 0), gate.ReachTrace, false, false},
		"an agent that another started":    {party(30, 3), party(30, 3), gate.ReachTrace, false, false},
		"a folder that is shared":          {party(10, 1), party(0, 0), gate.ReachShare, false, false},
		"a folder that is shared, watched": {party(10, 1), party(0, 0), gate.ReachShare, true, true},
		"a debugger that was approved":     {party(10, 1), party(11, 1), gate.ReachStart, false, true},
		"by what obeys others":             {party(12, 4), party(10, 1), gate.ReachTrace, false, false},
		"of what obeys others":             {party(10, 1), party(12, 4), gate.ReachTrace, false, true},
		"within what obeys others":         {party(12, 4), party(12, 4), gate.ReachTrace, false, false},
		"its child, within that":           {party(12, 4), party(12, 4), gate.ReachTraced, false, true},
		"by its parent, which is shown":    {party(10, 1), party(12, 4), gate.ReachTraced, false, false},
		"a start by what obeys others":     {party(12, 4), party(12, 4), gate.ReachStart, false, false},
		"one that a rule allowed":          {party(20, 2), party(21, 2), gate.ReachStart, false, false},
		"one that a rule allowed, watched": {party(20, 2), party(21, 2), gate.ReachStart, true, true},
	} {
		mode := api.ModeStep
		if c.watched {
			mode = api.ModeWatch
		}
		if got := r.mayReach(gate.Reach{Kind: c.kind, Caller: c.from, Target: c.to}, mode); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, c := range map[string]struct {
		from, to gate.Party
		orders   bool
		leads    bool
		stops    bool
		mode     api.Mode
		want     bool
	}{
		"from the agent":                 {from: party(1, 0), to: party(10, 1), orders: true, mode: api.ModeStep},
		"that ends it":                   {from: party(1, 0), to: party(10, 1), mode: api.ModeStep, want: true},
		"from the shell that started it": {from: party(2, 0), to: party(10, 1), orders: true, leads: true, mode: api.ModeStep, want: true},
		"that stops its job":             {from: party(2, 0), to: party(10, 1), orders: true, leads: true, stops: true, mode: api.ModeStep},
		"from another leader":            {from: party(1, 0), to: party(10, 1), orders: true, leads: true, mode: api.ModeStep},
		"within an action":               {from: party(21, 2), to: party(20, 2), orders: true, mode: api.ModeStep, want: true},
		"from what nobody approved":      {from: party(21, 2), to: party(10, 1), orders: true, mode: api.ModeStep},
		"from what was approved":         {from: party(11, 1), to: party(20, 2), orders: true, mode: api.ModeStep, want: true},
		"from what obeys others":         {from: party(12, 4), to: party(10, 1), orders: true, mode: api.ModeStep},
		"to the agent":                   {from: party(1, 0), to: party(1, 0), orders: true, mode: api.ModeStep, want: true},
		"where effects are asked about":  {from: party(1, 0), to: party(10, 1), orders: true, mode: api.ModePolicy, want: true},
	} {
		signal := unix.SIGCONT
		if c.stops {
			signal = unix.SIGSTOP
		}
		if got := r.mayReach(gate.Reach{Kind: gate.ReachSignal, Caller: c.from, Target: c.to, Signal: signal, Orders: c.orders, Leads: c.leads}, c.mode); got != c.want {
			t.Errorf("a signal %s: %v", name, got)
		}
	}
}

// A process whose mark couldn't be read, as it went away meanwhile, may have been
// of any kin, and its child is.
func TestRosterKeepsKinsOfWhoForks(t *testing.T) {
	t.Parallel()
	r, f := fakeRoster()
	k := r.newKin(&action{Action: api.Action{N: 1, State: api.ActionEnded}})
	f[10] = 0
	for range 4 {
		r.forget(k.action)
	}
	if r.kins[k.mark] != k {
		t.Error("the kin of a process that went away before its mark was read is forgotten")
	}
	delete(f, 10)
	for range 2 {
		r.forget(k.action)
	}
	if len(r.kins)+len(r.over) != 0 {
		t.Errorf("%d kins are known once nobody is of them", len(r.kins))
	}
}

// What an ended action left running is known to be its, and no more is looked at
// for that however many have done so.
func TestRosterForgetsKins(t *testing.T) {
	t.Parallel()
	r, f := fakeRoster()
	var first *action
	for n := range 10_000 {
		a := &action{Action: api.Action{N: n + 1, State: api.ActionEnded}}
		k := r.newKin(a)
		if n%100 == 0 { // a survivor
			f[n+1] = k.mark
		}
		if n == 0 {
			first = a
		}
		r.forget(a)
	}
	if len(r.over) > 100+2*mostLooked || len(r.kins) != len(r.over) {
		t.Errorf("%d kins are known, of which %d are looked at, with 100 survivors", len(r.kins), len(r.over))
	}
	if list := r.tree(first); len(list) != 1 {
		t.Errorf("the first survivor is lost: %v", list)
	}
	clear(f)
	for range 10 {
		r.forget(&action{})
	}
	if len(r.kins) != 0 || len(r.over) != 0 {
		t.Errorf("%d kins are known of nobody", len(r.kins))
	}
}

// It takes two looks: a process may be forked while the first is taken.
func TestRosterLooksTwice(t *testing.T) {
	t.Parallel()
	r, f := fakeRoster()
	a := &action{Action: api.Action{State: api.ActionEnded}}
	k := r.newKin(a)
	r.forget(a)
	f[5] = k.mark
	r.forget(&action{})
	delete(f, 5)
	r.forget(&action{})
	if r.kins[k.mark] != k {
		t.Error("a kin that had a process just now is forgotten at the first look")
	}
	r.forget(&action{})
	if r.kins[k.mark] != nil {
		t.Error("an empty kin is kept")
	}
}

// What a command sends is sent by it and by what it starts for that, and not by whatever else its shell's line starts.
func TestRosterSends(t *testing.T) {
	t.Parallel()
	r, _ := fakeRoster()
	line, push := []string{"pushes in a line"}, []string{"pushes"}
	for _, p := range []struct {
		pid, parent int
		shell       bool
		sends       []string
		want        []string
	}{
		{pid: 1, parent: 0}, {pid: 10, parent: 1, shell: true, sends: line, want: line}, {pid: 11, parent: 10}, // curl
		{pid: 12, parent: 10, sends: push, want: push}, {pid: 13, parent: 12, want: push}, {pid: 14, parent: 12, shell: true}, {pid: 15, parent: 14},
	} {
		begin(t, r, exec(p.pid, 0), &process{shell: p.shell, sends: p.sends, exec: api.Exec{Parent: p.parent}})
		if got := r.sends(p.pid); !slices.Equal(got, p.want) {
			t.Errorf("%d sends %q, want %q", p.pid, got, p.want)
		}
	}
}
