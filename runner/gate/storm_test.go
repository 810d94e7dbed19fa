package gate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	roles["storm"] = playStorm
	roles["counter"] = playCounter
	roles["counting"] = playCounting
	roles["sibling"] = playSibling
}

// queued is a signal that waits in a queue, each with a value.
const queued = unix.Signal(40)

// siginfo is the kernel's, of a signal that a process sent.
type siginfo struct {
	signal, errno, code, _ int32
	pid, uid               int32
	value                  uint64
	_                      [96]byte
}

// block keeps a signal from the calling thread, which must be locked.
func block(s unix.Signal) (set unix.Sigset_t) {
	set.Val[0] = 1 << (s - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		die("mask", err)
	}
	return set
}

// take waits for a blocked signal.
func take(set unix.Sigset_t) (info siginfo) {
	limit := unix.NsecToTimespec(patience.Nanoseconds())
	for {
		_, _, e := unix.Syscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&limit)), 8, 0, 0)
		if e == 0 {
			return info
		}
		if e != unix.EINTR {
			die("take", e)
		}
	}
}

// playCounter becomes a program in no thread of which a signal can arrive unless it is taken.
func playCounter(args []string) {
	runtime.LockOSThread()
	block(queued)
	say("exec", unix.Exec("/proc/self/exe", args, append(clean(), roleEnv+"=counting")))
}

// playCounting prints which values come, up to 0.
func playCounting([]string) {
	fmt.Println("ready")
	runtime.LockOSThread()
	set := block(queued)
	var values []uint64
	for {
		info := take(set)
		if info.value == 0 {
			fmt.Println("arrived", values)
			return
		}
		values = append(values, info.value)
	}
}

// interruptible has Go's handler of a signal interrupt system calls.
func interruptible(s unix.Signal) {
	var action [4]uint64 // as the kernel has it: handler, flags, restorer, mask
	at := uintptr(unsafe.Pointer(&action))
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), 0, at, 8, 0, 0)
	action[1] &^= 0x10000000 // SA_RESTART
	if e == 0 {
		_, _, e = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), at, 0, 8, 0, 0)
	}
	if e != 0 {
		die("sigaction", e)
	}
}

// storm has the calling thread interrupted all the time.
func storm(every time.Duration) {
	signal.Notify(make(chan os.Signal, 1), unix.SIGALRM, unix.SIGUSR1)
	interruptible(unix.SIGALRM)
	interruptible(unix.SIGUSR1)
	const toThread = 4 // SIGEV_THREAD_ID
	event := struct {
		value            uint64
		signal, how, tid int32
		_                [11]int32
	}{signal: int32(unix.SIGALRM), how: toThread, tid: int32(unix.Gettid())}
	var timer int32
	_, _, e := unix.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer)))
	period := unix.NsecToTimespec(every.Nanoseconds())
	times := [2]unix.Timespec{period, period}
	if e == 0 {
		_, _, e = unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	}
	if e != 0 {
		die("timer", e)
	}
}

// queue sends a signal with a value.
func queue(pid int, value uint64) error {
	const siQueue = -1
	info := siginfo{signal: int32(queued), code: siQueue, value: value}
	_, _, e := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(queued), uintptr(unsafe.Pointer(&info)))
	if e != 0 {
		return e
	}
	return nil
}

// playStorm makes calls that are asked about while signals arrive all the time, and prints what else than success
// and interruption there was, and which values it sent a counter.
func playStorm([]string) {
	runtime.LockOSThread()
	c := exec.Command("/proc/self/exe")
	c.Env = append(clean(), roleEnv+"=counter")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		die("start", err)
	}
	said := bufio.NewScanner(out)
	said.Scan()
	storm(200 * time.Microsecond)
	list := []*byte{nil}
	pid, tid := unix.Getpid(), unix.Gettid()
	var sent []uint64
	for i := range uint64(100) {
		for name, call := range map[string]func() error{
			"kill":   func() error { return unix.Kill(pid, unix.SIGUSR1) },
			"tgkill": func() error { return unix.Tgkill(pid, tid, unix.SIGUSR1) },
			"execve": func() error {
				if e := execRaw("/nowhere", list, list); e != unix.ENOENT {
					return e
				}
				return nil
			},
			"queue": func() error {
				err := queue(c.Process.Pid, i+1)
				if err == nil {
					sent = append(sent, i+1)
				}
				return err
			},
		} {
			if err := call(); err != nil && !errors.Is(err, unix.EINTR) {
				say(name, err)
			}
		}
	}
	for errors.Is(queue(c.Process.Pid, 0), unix.EINTR) {
	}
	said.Scan()
	fmt.Println("sent", sent)
	fmt.Println(said.Text())
}

// A call that is asked about either happens once and says so, or is interrupted before it was asked about, and
// doesn't happen: whatever signals arrive meanwhile. What a queued signal carries arrives with it.
func TestStorm(t *testing.T) {
	b := start(t, setup{role: "storm", options: Options{Reach: func(context.Context, Reach) bool { return true }}})
	b.wait()
	sent, rest, _ := strings.Cut(b.out.String(), "\n")
	sent, ok := strings.CutPrefix(sent, "sent ")
	if !ok || rest != "arrived "+sent+"\n" || sent == "[]" {
		t.Errorf("it said %q", &b.out)
	}
}

// playSibling sends another thread of its own process a signal, and prints who that has it from.
func playSibling([]string) {
	runtime.LockOSThread()
	waits, came := make(chan int), make(chan siginfo)
	go func() {
		runtime.LockOSThread()
		set := block(queued)
		waits <- unix.Gettid()
		came <- take(set)
	}()
	for _, to := range []struct {
		name   string
		tid    int
		signal unix.Signal
	}{{"sibling", <-waits, queued}, {"itself", unix.Gettid(), unix.SIGCONT}, {"nobody", 1 << 21, queued}} {
		_, _, e := unix.Syscall(unix.SYS_TKILL, uintptr(to.tid), uintptr(to.signal), 0)
		fmt.Println(to.name, unix.ErrnoName(e))
	}
	fmt.Println("came from", (<-came).pid)
}

// The number of another thread can be another program's by the time that a signal is sent to it: the supervisor sends it to the
// thread that it has found, so that it comes from outside. Nobody is asked about what a process sends itself.
func TestSibling(t *testing.T) {
	b := start(t, setup{role: "sibling", options: Options{Reach: func(_ context.Context, r Reach) bool { return false }}})
	b.wait()
	if want := "sibling \nitself \nnobody ESRCH\ncame from 0\n"; b.out.String() != want {
		t.Errorf("it said %q, want %q", &b.out, want)
	}
	if slices.ContainsFunc(b.logged(), func(l string) bool { return strings.Contains(l, "signal") }) {
		t.Errorf("logged %q", b.logged())
	}
}
