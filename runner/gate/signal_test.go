package gate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func init() {
	roles["signals"] = playSignals
	roles["handler"] = playHandler
	roles["pending"] = playPending
	roles["filtered"] = playFiltered
}

// playHandler handles one signal, says so, and what comes.
func playHandler([]string) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, unix.SIGUSR1)
	fmt.Println("ready")
	for s := range c {
		fmt.Println("got", s)
	}
}

// playSignals sends a child signals in each way there is.
func playSignals(args []string) {
	c := exec.Command("/proc/self/exe")
	c.Env = append(clean(), roleEnv+"=handler")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		die("start", err)
	}
	b := make([]byte, 64)
	if n, err := out.Read(b); err != nil || string(b[:n]) != "ready\n" {
		die("ready", err)
	}
	pid := c.Process.Pid
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		die("pidfd", err)
	}
	say("kill", unix.Kill(pid, unix.SIGUSR1))
	say("tgkill", unix.Tgkill(pid, pid, unix.SIGUSR1))
	say("group", unix.Kill(-pid, unix.SIGUSR1))
	say("pidfd", unix.PidfdSendSignal(fd, unix.SIGUSR1, nil, 0))
	_, _, e := unix.Syscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(fd), uintptr(unix.SIGUSR1), 0, 4, 0, 0) // to its group
	say("its group", e)
	say("all", unix.Kill(-1, unix.SIGUSR1))
	say("stop", unix.Kill(pid, unix.SIGSTOP))
	say("unhandled", unix.Kill(pid, unix.SIGUSR2))
	say("nobody", unix.Kill(1<<21, unix.SIGUSR1))
	say("itself", unix.Kill(unix.Getpid(), unix.SIGURG))
	say("itself", unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGCONT))
	say("at a parent's end", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGUSR1), 0, 0, 0))
	say("at a parent's end", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0))
	_, err = unix.FcntlInt(0, fSetSig, int(unix.SIGUSR1))
	say("when there is input", err)
	_, err = unix.FcntlInt(0, fSetOwn, pid)
	say("to another", err)
	_, err = unix.FcntlInt(0, fSetOwn, unix.Getpid())
	say("to itself", err)
	say("end", unix.Kill(pid, unix.SIGTERM))
	_ = c.Wait()
}

// Every call by which a process can signal another is asked about, with what the target makes of it, unless
// the signal is one that anyone may send, or is for itself.
func TestSignals(t *testing.T) {
	var mu sync.Mutex
	var asked []Reach
	b := start(t, setup{role: "signals", options: Options{Reach: func(_ context.Context, r Reach) bool {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r)
		return false
	}}})
	b.wait()
	const want = "kill EPERM\ntgkill EPERM\ngroup EPERM\npidfd EPERM\nits group EINVAL\nall EPERM\nstop EPERM\nunhandled EPERM\nnobody ESRCH\nitself ok\nitself ok\n" +
		"at a parent's end EPERM\nat a parent's end ok\nwhen there is input EPERM\nto another EPERM\nto itself ok\nend ok\n"
	if b.out.String() != want {
		t.Errorf("it said %q, want %q", b.out.String(), want)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 7 {
		t.Fatalf("asked about %+v", asked)
	}
	for i, r := range asked {
		s := unix.SIGUSR1
		switch i {
		case 5:
			s = unix.SIGSTOP
		case 6:
			s = unix.SIGUSR2 // Go's run-time system handles all
		}
		if r.Kind != ReachSignal || r.Signal != s || !r.Orders || r.Leads || r.Caller.PID == r.Target.PID || r.Target.PID == 0 || len(r.Target.Ancestors) == 0 {
			t.Errorf("%d: %+v", i, r)
		}
	}
}

// playPending sends itself a signal that waits, and becomes another program.
func playPending(args []string) {
	runtime.LockOSThread()
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGUSR1 - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		die("mask", err)
	}
	if args[0] == "sent" {
		_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGUSR1)
	}
	playExecve([]string{"/bin/true"})
}

// A signal that waits for a process meets the program that this becomes, which nobody knew of.
func TestSignalWaits(t *testing.T) {
	for how, runs := range map[string]bool{"sent": false, "none": true} {
		t.Run(how, func(t *testing.T) {
			b := start(t, setup{role: "pending", args: []string{how}, decide: allowBut("true")})
			e := b.await("true")
			e.Cover()
			e.Allow()
			b.wait()
			if !runs {
				b.oneFailure()
			}
			if failed := slices.ContainsFunc(b.failures(), func(f string) bool { return strings.Contains(f, "the signal SIGUSR1 was sent to it before it began") }); failed == runs {
				t.Errorf("failures %q", b.failures())
			}
		})
	}
}

// playFiltered puts a filter over its own calls, and becomes another program.
func playFiltered([]string) {
	runtime.LockOSThread()
	filter := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	program := unix.SockFprog{Len: 1, Filter: &filter[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); e != 0 {
		die("seccomp", e)
	}
	playExecve([]string{"/bin/true"})
}

// A filter of the caller's decides what the calls of the new program return: it isn't what was shown then.
func TestFiltered(t *testing.T) {
	for role, how := range map[string][]Allowance{"filtered": {Unfiltered, Unfiltered | HoldExit, HoldExit}, "execve": {Unfiltered}} {
		for _, with := range how {
			t.Run(fmt.Sprint(role, with), func(t *testing.T) {
				b := start(t, setup{role: role, args: []string{"/bin/true"}, decide: allowBut("true")})
				e := b.await("true")
				e.Cover()
				e.Allow(with)
				b.wait()
				want := role == "filtered" && with&Unfiltered != 0
				if want {
					b.oneFailure()
				}
				refused := slices.ContainsFunc(b.failures(), func(f string) bool { return strings.Contains(f, "has put a filter over its system calls") })
				if refused != want {
					t.Errorf("failures %q", b.failures())
				}
			})
		}
	}
}

func TestOrders(t *testing.T) {
	st := status{caught: 1<<(unix.SIGUSR1-1) | 1<<63, pending: 1<<(unix.SIGTERM-1) | 1<<(unix.SIGCONT-1)}
	for s, want := range map[unix.Signal]bool{unix.SIGUSR1: true, 64: true, unix.SIGUSR2: false, unix.SIGQUIT: false, unix.SIGSTOP: true, unix.SIGCONT: true} {
		if got := st.orders(s); got != want {
			t.Errorf("%v: %v", s, got)
		}
	}
	if s := st.waiting(); s != 0 {
		t.Errorf("%v counts", s)
	}
	st.pending |= 1 << 63
	if s := st.waiting(); s != 64 {
		t.Errorf("%v waits", s)
	}
}

// What may be sent arrives, whoever sends it in the end.
func TestSignalArrives(t *testing.T) {
	b := start(t, setup{args: []string{"sh", "-c", `sh -c 'trap "echo got; exit" USR1; : > ready; while :; do sleep 0.01; done' & until [ -e ready ]; do sleep 0.01; done; kill -USR1 $!; wait`}, dir: t.TempDir(), options: Options{Reach: func(context.Context, Reach) bool { return true }}})
	b.wait()
	if b.out.String() != "got\n" {
		t.Errorf("it said %q and %q", b.out.String(), b.err.String())
	}
}

// What handles a signal only since it was judged isn't sent it before that is judged, too.
func TestSignalHandledSince(t *testing.T) {
	dir := t.TempDir()
	judged := func(_ context.Context, r Reach) bool {
		if r.Orders {
			return false
		}
		must.OK(t, os.WriteFile(filepath.Join(dir, "go"), []byte("\n"), 0o600))
		for {
			if _, err := os.Stat(filepath.Join(dir, "handles")); err == nil {
				return true
			}
			time.Sleep(time.Millisecond)
		}
	}
	for _, pipe := range []string{"go", "end"} { // a shell that forks blocks signals
		must.OK(t, unix.Mkfifo(filepath.Join(dir, pipe), 0o600))
	}
	b := start(t, setup{args: []string{"sh", "-c", `sh -c 'trap "" USR1; : > ready; read x < go; trap "echo got" USR1; : > handles; read x < end' &
until [ -e ready ]; do sleep 0.01; done; kill -USR1 $! 2>/dev/null; echo $?; echo > end; wait`}, dir: dir, options: Options{Reach: judged}})
	b.wait()
	if b.out.String() != "1\n" {
		t.Errorf("it said %q and %q", b.out.String(), b.err.String())
	}
}

// What ignores a signal may handle it a moment later: it isn't sent it, and that is no failure.
func TestSignalIgnored(t *testing.T) {
	self := Process{PID: os.Getpid()}
	s, err := stateOf(self.PID)
	must.OK(t, err)
	self.Start = s.start
	signal.Ignore(unix.SIGUSR2)
	defer signal.Reset(unix.SIGUSR2)
	r := Reach{Kind: ReachSignal, Target: Party{Process: self, Mark: MarkOf(self.PID)}, Signal: unix.SIGUSR2}
	if errno, another := r.send(); errno != 0 || another {
		t.Errorf("ignored: %v, %v", errno, another)
	}
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR2)
	defer signal.Stop(got)
	if _, another := r.send(); !another {
		t.Error("handled by now: sent")
	}
	r.Orders = true
	r.Target.Mark++
	if _, another := r.send(); !another {
		t.Error("of another mark by now: sent")
	}
	if len(got) > 0 {
		t.Error("it came")
	}
}
