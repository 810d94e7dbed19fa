package gate

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func TestAllow(t *testing.T) {
	b := start(t, setup{args: []string{"sh", "-c", "/bin/echo hello; exit 7"}})
	if code := b.wait(); code != 7 {
		t.Fatalf("the shell ended with %d", code)
	}
	if b.out.String() != "hello\n" {
		t.Fatalf("it said %q", b.out.String())
	}
	e := b.find("echo")
	if e == nil || e.Argv[0] != "/bin/echo" || len(e.Argv) != 2 || e.Argv[1] != "hello" {
		t.Fatalf("shown was %+v", e)
	}
	if !strings.HasSuffix(e.Program.Path, "/bin/echo") || e.Cwd != b.dir || e.Truncated {
		t.Errorf("program %+v in %q", e.Program, e.Cwd)
	}
	shell := b.seen()[0]
	if len(e.Ancestors) != 1 || e.Ancestors[0].PID != shell.PID || e.Ancestors[0].Start != shell.Start || e.Ancestors[0].Name != "sh" {
		t.Errorf("ancestors %v, want the shell %d", e.Ancestors, shell.PID)
	}
	if e.Parent != shell.PID || e.PGID != shell.PGID {
		t.Errorf("%d in group %d below %d", e.PID, e.PGID, e.Parent)
	}
	if x := b.exitOf(e); !x.Known || x.Code != 0 || x.Signal != 0 {
		t.Errorf("echo ended with %+v", x)
	}
	if x := b.exitOf(shell); !x.Known || x.Code != 7 {
		t.Errorf("the shell ended with %+v", x)
	}
	if n := len(b.ended()); n != 2 {
		t.Errorf("%d exits", n)
	}
}

// denyAll lets the first program run and denies the others.
func denyAll(reason string) func(*Exec) {
	first := true
	return func(e *Exec) {
		if first {
			first = false
			e.Allow()
			return
		}
		e.Deny(reason)
	}
}

func TestDeny(t *testing.T) {
	b := start(t, setup{
		args:   []string{"sh", "-c", "/bin/echo hello; echo $?"},
		decide: denyAll("not\ttoday\n\x1b[31m"),
	})
	b.wait()
	if b.out.String() != "126\n" {
		t.Errorf("it said %q", b.out.String())
	}
	if !strings.HasPrefix(b.err.String(), "stepbox: denied: not today  [31m\n") {
		t.Errorf("on its standard error %q", b.err.String())
	}
	if e := b.find("echo"); e.Valid() {
		t.Error("a denied exec is still held")
	}
	b.find("echo").Allow() // decided already
}

// A shell and execvp(3) try folder after folder. What isn't there is answered
// without asking; what is denied in one isn't asked about again in the next.
func TestSearchAsksOnce(t *testing.T) {
	dir := t.TempDir()
	var folders []string
	for _, d := range []string{"none", "plain", "a", "b"} {
		folder := filepath.Join(dir, d)
		if d != "none" {
			must.OK(t, os.Mkdir(folder, 0o755))
			copyFile(t, filepath.Join(folder, "tool"), "/bin/true")
		}
		folders = append(folders, folder)
	}
	must.OK(t, os.Chmod(filepath.Join(dir, "plain", "tool"), 0o644))
	b := start(t, setup{role: "search", args: []string{strings.Join(folders, ":"), "tool", "x"}, decide: denyAll("no")})
	b.wait()
	want := folders[0] + " ENOENT\n" + folders[1] + " EACCES\n" + folders[2] + " EACCES\n" + folders[3] + " EACCES\n"
	if b.out.String() != want {
		t.Errorf("it said %q, want %q", b.out.String(), want)
	}
	if n := len(b.seen()); n != 2 {
		t.Errorf("%d execs were shown, want the program and one of tool", n)
	}
	if n := strings.Count(b.err.String(), "stepbox: "); n != 1 {
		t.Errorf("%d reasons were given", n)
	}
}

// A search that is denied doesn't stand for a later attempt of its own.
func TestRetryAsksAgain(t *testing.T) {
	b := start(t, setup{role: "retry", args: []string{"/bin/true"}, decide: denyAll("no")})
	b.wait()
	if n := len(b.seen()); n != 4 {
		t.Errorf("%d execs were shown, want the program and three of true", n)
	}
}

func TestKilledWhileHeld(t *testing.T) {
	gone := make(chan *Exec, 1)
	b := start(t, setup{
		args:    []string{"sh", "-c", "/bin/echo hello; echo $?"},
		decide:  func(e *Exec) { holdBut(e, "sh") },
		options: Options{Failed: func(e *Exec, why string) { gone <- e }},
	})
	e := b.await("echo")
	if !e.Valid() {
		t.Error("it isn't held")
	}
	must.OK(t, unix.Kill(e.PID, unix.SIGKILL))
	select {
	case g := <-gone:
		if g != e {
			t.Errorf("another one failed")
		}
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
	if e.Valid() || len(b.gate.Held()) != 0 {
		t.Error("it is still held")
	}
	e.Allow()
	if n := len(b.failures()); n != 1 {
		t.Errorf("%d failures", n)
	}
}

// holdBut allows a program and holds all others.
func holdBut(e *Exec, name string) {
	if filepath.Base(e.Path) == name {
		e.Allow()
	}
}

// await waits until an exec of a program is held.
func (b *box) await(name string) *Exec {
	b.t.Helper()
	var e *Exec
	b.eventually("an exec of "+name, func() bool {
		e = b.find(name)
		return e != nil && e.shown()
	})
	return e
}

// shown says whether the Exec callback has returned.
func (e *Exec) shown() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.showing
}

func TestSignalsDoNotDisturb(t *testing.T) {
	b := start(t, setup{
		args:   []string{"sh", "-c", "trap 'echo usr1' USR1; /bin/echo hello"},
		decide: func(e *Exec) { holdBut(e, "sh") },
	})
	e := b.await("echo")
	for range 5 {
		must.OK(t, unix.Kill(e.PID, unix.SIGURG))
	}
	if !e.Valid() {
		t.Fatal("a signal ended the wait")
	}
	e.Allow()
	b.wait()
	if b.out.String() != "hello\n" || len(b.seen()) != 2 {
		t.Errorf("it said %q after %d execs", b.out.String(), len(b.seen()))
	}
}

func TestHold(t *testing.T) {
	b := start(t, setup{
		args:   []string{"sh", "-c", "/bin/echo one; /nonexistent/x 2>/dev/null; /bin/echo two"},
		decide: func(e *Exec) { holdBut(e, "sh") },
	})
	e := b.await("echo")
	if h := b.gate.Held(); !slices.Equal(h, []int{e.TID}) {
		t.Errorf("held are %v, want %d", h, e.TID)
	}
	b.gate.Hold()
	b.gate.Hold()
	e.Allow()
	b.gate.Release()
	if !b.gate.waits(e.ID) || !slices.Contains(b.gate.Held(), e.TID) {
		t.Error("an answer went out while they were held")
	}
	b.gate.Release()
	b.eventually("the next one", func() bool { return len(b.seen()) == 3 })
	b.gate.Hold()
	b.seen()[2].Deny("no")
	if !slices.Contains(b.gate.Held(), b.seen()[2].TID) {
		t.Error("a denial went out while answers were held")
	}
	b.gate.Release()
	if code := b.wait(); code != 126 {
		t.Errorf("the shell ended with %d", code)
	}
	if b.out.String() != "one\n" {
		t.Errorf("it said %q", b.out.String())
	}
}

// Without its gate a sandbox can start nothing, and what was held fails.
func TestListenerGone(t *testing.T) { both(t, testListenerGone) }

func testListenerGone(t *testing.T, o Options) {
	b := start(t, setup{
		args:    []string{"sh", "-c", "/bin/echo one; /bin/echo two; echo builtin $?"},
		decide:  func(e *Exec) { holdBut(e, "sh") },
		options: o,
	})
	b.await("echo")
	must.OK(t, b.gate.Close())
	b.wait()
	if b.gate.exits.trace { // what is traced doesn't outlive its tracer
		if b.out.Len() > 0 || b.cmd.ProcessState.ExitCode() != 128+int(unix.SIGKILL) {
			t.Errorf("it said %q and ended with %v", b.out.String(), b.cmd.ProcessState)
		}
		return
	}
	if !strings.HasPrefix(b.out.String(), "builtin 12") || strings.Contains(b.out.String(), "one") || strings.Contains(b.out.String(), "two") {
		t.Errorf("it said %q", b.out.String())
	}
	if !strings.Contains(b.err.String(), "not implemented") {
		t.Errorf("on its standard error %q", b.err.String())
	}
	b.find("echo").Allow()
	b.find("echo").Deny("")
	if b.find("echo").Valid() {
		t.Error("still held after the gate closed")
	}
}

// Everything that an exec holds is given back, however it ended.
func TestNoLeaks(t *testing.T) {
	n := 0
	count := func() int {
		l, err := os.ReadDir("/proc/self/fd")
		must.OK(t, err)
		return len(l)
	}
	b := start(t, setup{
		args: []string{"sh", "-c", "i=0; while [ $i -lt 60 ]; do /bin/true; /nonexistent; ./script; i=$((i+1)); done 2>/dev/null"},
		decide: func(e *Exec) {
			if n++; n%3 == 2 {
				e.Deny("no")
				return
			}
			e.Allow()
		},
	})
	first := 0
	b.eventually("some execs", func() bool { return len(b.seen()) > 10 })
	first = count()
	b.wait()
	b.eventually("all exits", func() bool { return len(b.gate.Held()) == 0 && len(b.exitsWatched()) == 0 })
	if last := count(); last > first {
		out, _ := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
		t.Errorf("%d descriptors first, %d in the end\n%s", first, last, out)
	}
}

func (b *box) exitsWatched() map[Process]*ending {
	x := b.gate.exits
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.watched
}

// A held agent costs nothing.
func TestHeldIsIdle(t *testing.T) {
	b := start(t, setup{
		args:   []string{"sh", "-c", "/bin/echo one"},
		decide: func(e *Exec) { holdBut(e, "sh") },
	})
	e := b.await("echo")
	usage := func() time.Duration {
		var r unix.Rusage
		must.OK(t, unix.Getrusage(unix.RUSAGE_SELF, &r))
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	// There is no event to wait for: nothing is to happen. What the runtime does
	// on its own now and then ends, other than a wait that isn't one.
	b.eventually("half a second of holding takes next to nothing", func() bool {
		before := usage()
		time.Sleep(500 * time.Millisecond)
		return usage()-before <= 25*time.Millisecond
	})
	e.Allow()
	b.wait()
}
