package runner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/gate"
	"stepbox/session/e2e/must"
)

// counting is a script whose output says whether it runs.
const counting = `i=0; while :; do i=$((i+1)); echo $i >count; done & while :; do :; done & echo started; cat`

func (r *running) count() string {
	text, _ := os.ReadFile(filepath.Join(r.Upper(), "count"))
	return string(text)
}

// assertStill checks that a counter stands still.
func (r *running) assertStill() {
	r.t.Helper()
	before := r.count()
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		if now := r.count(); now != before {
			r.t.Fatalf("it counts on while frozen: %q, %q", before, now)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *running) assertMoves() {
	r.t.Helper()
	before := r.count()
	eventually(r.t, func() bool { return r.count() != before }, func() string { return "it doesn't count" })
}

// freezeNow freezes, also on a machine so busy that it takes several attempts.
func (r *running) freezeNow() {
	r.t.Helper()
	for attempt := 0; ; attempt++ {
		err := r.Freeze(r.t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, ErrFreeze) || attempt == 20 {
			r.t.Fatal(err)
		}
	}
}

func TestFreeze(t *testing.T) {
	for _, how := range []string{"as detected", "traced"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t)
			run := r.start("/bin/sh", "-c", counting)
			run.expect("started")
			if how == "traced" {
				run.withoutFreezer()
			}
			run.assertMoves()
			if err := run.Thaw(); !errors.Is(err, ErrNotFrozen) {
				t.Errorf("thawing what runs: %v", err)
			}
			for range 5 {
				run.freezeNow()
				if err := run.Freeze(t.Context()); err != nil || !run.Frozen() {
					t.Errorf("freezing twice: %v", err)
				}
				run.assertStill()
				must.OK(t, run.Thaw())
				run.assertMoves()
			}
		})
	}
}

// withoutFreezer makes a sandbox one of a host without cgroups to freeze. Those
// that it has are removed when it is closed: its guard knows them.
func (s *Sandbox) withoutFreezer() {
	<-s.adopted
	s.cgroups = &box.Cgroups{Source: box.SourceNone}
}

// TestFreezeLeavesStopped: jobs that their shell stopped stay stopped.
func TestFreezeLeavesStopped(t *testing.T) {
	r := newRig(t)
	run := r.start("/bin/sh", "-c", "sleep 1000 & kill -STOP $!; echo started; cat")
	run.expect("started")
	run.withoutFreezer()
	states := func() (all string) {
		list, _ := run.Processes()
		for _, p := range list {
			all += p.Name + string(p.State) + " "
		}
		return all
	}
	eventually(t, func() bool { return strings.Contains(states(), "T ") && strings.Contains(states(), "catS") }, states)
	run.freezeNow()
	if s := states(); strings.Contains(s, "S ") || strings.Contains(s, "R ") {
		t.Errorf("frozen: %s", s)
	}
	must.OK(t, run.Thaw())
	eventually(t, func() bool { return strings.Contains(states(), "catS") }, states)
	if s := states(); strings.Count(s, "T ") != 1 {
		t.Errorf("it continued what the agent had stopped: %s", s)
	}
}

// TestFreezeWithHeldExec: a program that waits for its approval counts as
// frozen, nothing is answered while frozen, and it runs after.
func TestFreezeWithHeldExec(t *testing.T) {
	for _, how := range []string{"as detected", "traced"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t)
			held := make(chan *gate.Exec, 1)
			r.handler.Gate.Exec = func(e *gate.Exec) {
				if strings.HasSuffix(e.Program.Path, "/true") {
					held <- e
					return
				}
				e.Allow(gate.NoExit)
			}
			run := r.start("/bin/sh", "-c", "while :; do :; done & i=0; (while :; do i=$((i+1)); echo $i >count; done) & /bin/true; echo ran; cat")
			exec := <-held
			if how == "traced" {
				run.withoutFreezer()
			}
			run.assertMoves()
			began := time.Now()
			run.freezeNow()
			t.Logf("frozen within %v", time.Since(began))
			exec.Allow(gate.NoExit)
			run.assertStill()
			if strings.Contains(run.text(), "ran") {
				t.Error("the gate answered while frozen")
			}
			must.OK(t, run.Thaw())
			run.expect("ran")
		})
	}
}

// TestFreezeGivesUp: a freeze that is cancelled leaves the agent running.
func TestFreezeGivesUp(t *testing.T) {
	run := newRig(t).start("/bin/sh", "-c", counting)
	run.expect("started")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run.Freeze(ctx); err == nil { // it may be quicker than the context
		must.OK(t, run.Thaw())
	}
	if run.Frozen() {
		t.Error("it says frozen")
	}
	run.assertMoves()
}

func TestKillWhileFrozen(t *testing.T) {
	run := newRig(t).start("/bin/sh", "-c", counting)
	run.expect("started")
	run.freezeNow()
	run.Kill()
	select {
	case <-run.ended:
	case <-time.After(patience):
		t.Fatal("it doesn't end")
	}
	if err := run.Freeze(t.Context()); err != nil && !errors.Is(err, ErrEnded) {
		t.Errorf("freezing what ended: %v", err)
	}
}

func TestKillTree(t *testing.T) {
	r := newRig(t)
	run := r.start("/bin/sh", "-c", `sh -c 'sleep 1001 & (sleep 1002 & sleep 1003 & wait) & while :; do sh -c :; done' & sleep 1004 & wait`)
	var tree Process
	eventually(t, func() bool {
		list, _ := run.Processes()
		for _, p := range list {
			below := descendants(list, p.PID)
			if p.Name == "sh" && p.Parent != run.box.PID && len(below) >= 5 && slices.ContainsFunc(list, func(q Process) bool { return q.PID == p.Parent && q.Parent == run.box.PID }) {
				tree = p
				return true
			}
		}
		return false
	}, func() string { return "the tree doesn't come up" })
	if err := run.KillTree(t.Context(), tree.PID, tree.Start+1); !errors.Is(err, ErrGone) {
		t.Errorf("another process of that number: %v", err)
	}
	if err := run.KillTree(t.Context(), os.Getpid(), 0); !errors.Is(err, ErrGone) {
		t.Errorf("a process outside: %v", err)
	}
	if err := run.KillTree(t.Context(), run.box.PID, 0); !errors.Is(err, ErrGone) {
		t.Errorf("PID 1: %v", err)
	}
	must.OK(t, run.KillTree(t.Context(), tree.PID, tree.Start))
	names := func() string {
		list, _ := run.Processes()
		var all []string
		for _, p := range list {
			all = append(all, p.Name)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	eventually(t, func() bool { return names() == "sh sleep" }, names)
	if err := run.Signal(tree.PID, tree.Start, unix.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("signalling what is gone: %v", err)
	}
}

// TestFreezeWithHeldVfork: a parent that vforked can't be stopped before its
// child executes, which is held; nor does it run.
func TestFreezeWithHeldVfork(t *testing.T) {
	for _, how := range []string{"as detected", "traced"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t)
			held := make(chan *gate.Exec, 1)
			r.handler.Gate.Exec = func(e *gate.Exec) {
				if strings.HasSuffix(e.Program.Path, "/true") {
					held <- e
					return
				}
				e.Allow(gate.NoExit)
			}
			run := r.start("/bin/sh", "-c", `(i=0; while :; do i=$((i+1)); echo $i >count; done) &
exec python3 -c '
import subprocess, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
subprocess.run(["/bin/true"])
print("ran", flush=True)
input()'`)
			exec := <-held
			if how == "traced" {
				run.withoutFreezer()
			}
			run.assertMoves()
			for range 3 {
				run.freezeNow()
				run.assertStill()
				must.OK(t, run.Thaw())
				run.assertMoves()
			}
			exec.Allow(gate.NoExit)
			run.expect("ran")
		})
	}
}

// A frozen sandbox that is killed ends, also when a process in it has an end
// that is to be told before anyone notices: it can't end before it was let go.
func TestKillWhileFrozenAndEnding(t *testing.T) {
	for _, how := range []string{"as detected", "traced"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t)
			r.handler.Gate.Exec = func(e *gate.Exec) { e.Allow(gate.HoldExit) }
			run := r.start("/bin/sh", "-c", "sleep 60 & echo started; cat")
			run.expect("started")
			if how == "traced" {
				run.withoutFreezer()
			}
			run.freezeNow()
			run.Kill()
			select {
			case <-run.ended:
			case <-time.After(patience):
				t.Error("it doesn't end")
				_ = run.Thaw()
			}
		})
	}
}

// Frozen says whether the tree is frozen.
func (s *Sandbox) Frozen() bool {
	s.freezing.Lock()
	defer s.freezing.Unlock()
	return s.frozen
}

// counters are what the programs of still.c have counted.
func (r *running) counters(n int) []uint64 {
	text, _ := os.ReadFile(filepath.Join(r.Upper(), "count"))
	all := make([]uint64, n)
	if len(text) == 8*n {
		for i := range all {
			all[i] = binary.NativeEndian.Uint64(text[8*i:])
		}
	}
	return all
}

// assertAllMove waits until each of them has counted on.
func (r *running) assertAllMove(n int) {
	r.t.Helper()
	before := r.counters(n)
	eventually(r.t, func() bool {
		now := r.counters(n)
		for i := range now {
			if now[i] == before[i] {
				return false
			}
		}
		return true
	}, func() string {
		return fmt.Sprintf("not all count: %v, %v; it printed %q", before, r.counters(n), r.text())
	})
}

// TestFreezeHolds: what was stopped doesn't run again, whatever signals it gets: from a
// timer of its own, or from others. Nor does it matter who traces it.
func TestFreezeHolds(t *testing.T) {
	for _, c := range []struct {
		name, role string
		n          int
		with       gate.Allowance
	}{
		{"a timer", "timer", 1, gate.NoExit},
		{"a timer, traced to its end", "timer", 1, gate.HoldExit},
		{"others", "wakers", 60, gate.NoExit},
		{"threads", "threads", 20, gate.NoExit},
		{"threads, traced to their end", "threads", 20, gate.HoldExit},
		{"a tracer", "tracer", 2, gate.NoExit},
		{"a tracer that is traced to its end", "tracer", 2, gate.HoldExit},
		{"not dumpable", "undumpable", 1, gate.NoExit},
		{"children", "forks", 2, gate.NoExit},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.handler.Gate.Exec, r.handler.Gate.Reach = func(e *gate.Exec) { e.Allow(c.with) }, byItsParent
			compile(t, r.project, "still")
			run := r.start("./still", c.role, strconv.Itoa(c.n))
			run.withoutFreezer()
			for range 3 {
				run.assertAllMove(c.n)
				run.freezeNow()
				before := run.counters(c.n)
				for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
					if now := run.counters(c.n); !slices.Equal(now, before) {
						t.Fatalf("it runs while frozen: %v, %v", before, now)
					}
				}
				must.OK(t, run.Thaw())
			}
			run.assertAllMove(c.n)
		})
	}
}

// byItsParent lets all be traced.
func byItsParent(context.Context, gate.Reach) bool { return true }

// TestFreezeOutlivesTracer: who was traced by a process that is killed in a freeze
// doesn't run.
func TestFreezeOutlivesTracer(t *testing.T) {
	r := newRig(t)
	r.handler.Gate.Reach = byItsParent
	compile(t, r.project, "still")
	run := r.start("/bin/sh", "-c", "./still tracer 2; cat")
	run.withoutFreezer()
	run.assertAllMove(2)
	run.freezeNow()
	before := run.counters(2)
	list, err := run.Processes()
	must.OK(t, err)
	list = slices.DeleteFunc(list, func(p Process) bool { return p.Name != "still" })
	if len(list) != 2 {
		t.Fatalf("there are %v", list)
	}
	tracer, traced := list[0], list[1]
	if tracer.Parent == traced.PID {
		tracer, traced = traced, tracer
	}
	must.OK(t, run.Signal(tracer.PID, tracer.Start, unix.SIGKILL))
	for _, p := range []Process{tracer, traced} {
		eventually(t, func() bool { return !run.Alive(p.PID, p.Start) }, func() string { return "it lives on" })
	}
	if now := run.counters(2); !slices.Equal(now, before) {
		t.Errorf("it ran while frozen: %v, %v", before, now)
	}
}

// TestFreezeIsUnseen: a parent that waits for its children's stops hears of none.
func TestFreezeIsUnseen(t *testing.T) {
	r := newRig(t)
	compile(t, r.project, "still")
	run := r.start("./still", "parent", "2")
	run.withoutFreezer()
	for range 5 {
		run.assertAllMove(2)
		run.freezeNow()
		must.OK(t, run.Thaw())
	}
	run.assertAllMove(2)
	run.assertAllMove(2) // it has looked after its child since
	if text := run.text(); text != "" {
		t.Errorf("it says %q", text)
	}
}
