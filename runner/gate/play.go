package gate

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deniedCode is how a denied program ends: the code with which shells say that
// a program was found but couldn't be run.
const deniedCode = 126

// Kernel ABI that the unix package lacks, linux/ptrace.h.
const (
	getSyscallInfo    = 0x420e // PTRACE_GET_SYSCALL_INFO
	syscallInfoSize   = 88     // sizeof(struct ptrace_syscall_info)
	syscallInfoEntry  = 1      // PTRACE_SYSCALL_INFO_ENTRY
	syscallInfoExit   = 2      // PTRACE_SYSCALL_INFO_EXIT
	syscallStopSignal = unix.SIGTRAP | 0x80
)

// turnAway makes a refused exec known to its caller. A fresh child seems to
// run the program, which prints the reason and ends with deniedCode: to the
// parent that is a program that failed, whichever way it starts programs. A
// process that would replace itself by the program lives on with an error,
// and so does one that can't be traced.
//
// It says whether the Exec is still needed, as the kernel put the call off.
func (g *Gate) turnAway(e *Exec, reason string) (kept bool) {
	e.denied, e.reason = true, reason
	played := false
	if e.newborn && !g.exits.traces(e.PID) {
		onThread(func() (used bool) {
			played, kept = g.play(e)
			return false
		})
	}
	if !played {
		g.reject(e)
	}
	return kept
}

// play lets a denied exec happen, and has the new image exit before its first
// instruction. If this process dies meanwhile, the kernel kills the other. It
// does nothing and says so when the caller can't be traced.
func (g *Gate) play(e *Exec) (played, kept bool) {
	if !g.begin() {
		return true, false // the gate closes, which fails what it holds
	}
	err := seize(e.TID, unix.PTRACE_O_EXITKILL|unix.PTRACE_O_TRACEEXEC|unix.PTRACE_O_TRACESYSGOOD)
	if err == nil {
		g.release(e)
	}
	g.finish()
	if err != nil {
		return false, false
	}
	defer g.killAtClose(e)()
	s, err := await()
	switch {
	case err != nil || s.ended():
	case s.event() == unix.PTRACE_EVENT_EXEC:
		g.bringToExit(e, s)
	default:
		kept = g.returnDenied(e, s)
	}
	return true, kept
}

// killAtClose kills a process when the gate closes, until undone: one that is
// frozen doesn't end by itself, nor may one that another process meddles with.
func (g *Gate) killAtClose(e *Exec) (undo func()) {
	over, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		select {
		case <-over:
		case <-g.done:
			_ = unix.PidfdSendSignal(e.pidfd, unix.SIGKILL, nil, 0)
		}
	}()
	return func() {
		close(over)
		<-left
	}
}

// bringToExit takes a process from the stop in its new image to its end. Its
// only instruction is a system call that is put where the image begins, and
// that is made exit_group(2) whatever it was when it is entered. There are no
// handlers for signals after an exec: what a signal does is up to the kernel.
// A filter that the caller has put upon itself can make that call fail: a
// process that comes back from it is killed.
func (g *Gate) bringToExit(e *Exec, s stop) {
	g.whenOpen(func() {
		if err := e.say(e.reason); err != nil {
			g.o.Log(err.Error())
		}
		_, _ = ptrace(unix.PTRACE_SYSCALL, s.tid, 0, 0)
	})
	exiting := false
	for {
		s, err := await()
		if err != nil || s.ended() {
			return
		}
		signal := unix.Signal(0)
		switch {
		case s.event() != 0:
		case s.signal() != syscallStopSignal:
			signal = s.signal()
		default:
			if exiting {
				err = errors.New("its exit was refused")
			} else {
				exiting, err = makeExit(s.tid)
			}
			if err != nil {
				g.o.Log(fmt.Sprintf("killed the denied process %d: %v", e.PID, err))
				_ = unix.Kill(e.PID, unix.SIGKILL)
				bury()
				return
			}
		}
		g.whenOpen(func() { _, _ = ptrace(unix.PTRACE_SYSCALL, s.tid, 0, uintptr(signal)) })
	}
}

// makeExit prepares a thread that stopped at a system call: on the way out of
// one, the next instruction becomes a call of exit_group(2), and on the way in
// the call becomes that one.
func makeExit(tid int) (entered bool, err error) {
	var info [syscallInfoSize]byte
	if _, err := ptrace(getSyscallInfo, tid, syscallInfoSize, uintptr(unsafe.Pointer(&info))); err != nil {
		return false, fmt.Errorf("cannot tell where it stands: %w", err)
	}
	switch info[0] {
	case syscallInfoEntry:
		return true, setCall(tid, unix.SYS_EXIT_GROUP, deniedCode, true)
	case syscallInfoExit:
		return false, setCall(tid, unix.SYS_EXIT_GROUP, deniedCode, false)
	}
	return false, errors.New("it stands at no system call")
}

// pokeCall replaces what a thread would run next by a system call's instruction.
func pokeCall(tid int, pc uint64) error {
	word := pc &^ 7
	var text [8]byte
	if _, err := ptrace(unix.PTRACE_PEEKTEXT, tid, uintptr(word), uintptr(unsafe.Pointer(&text))); err != nil {
		return fmt.Errorf("cannot read its first instruction: %w", err)
	}
	rest := copy(text[pc-word:], callInstruction)
	if err := poke(tid, word, text); err != nil || rest == len(callInstruction) {
		return err
	}
	if _, err := ptrace(unix.PTRACE_PEEKTEXT, tid, uintptr(word+8), uintptr(unsafe.Pointer(&text))); err != nil {
		return fmt.Errorf("cannot read its first instruction: %w", err)
	}
	copy(text[:], callInstruction[rest:])
	return poke(tid, word+8, text)
}

func poke(tid int, at uint64, word [8]byte) error {
	if _, err := ptrace(unix.PTRACE_POKETEXT, tid, uintptr(at), uintptr(*(*uint64)(unsafe.Pointer(&word)))); err != nil {
		return fmt.Errorf("cannot replace its first instruction: %w", err)
	}
	return nil
}

// returnDenied deals with a denied exec that the kernel refused by itself. The
// caller is told what a denied one is told: what it would try instead, such as
// a shell that runs the file as a script, is denied with it.
func (g *Gate) returnDenied(e *Exec, s stop) (kept bool) {
	errno := g.returned(s)
	if kept = g.putOff(e, errno); !kept {
		g.whenOpen(func() { g.tell(e) })
		if err := setResult(s.tid, -int64(unix.EACCES)); err != nil {
			g.o.Log(fmt.Sprintf("cannot tell process %d that its exec was denied: %v", e.PID, err))
		}
	}
	signal := s.signal()
	if s.event() != 0 {
		signal = 0
	}
	g.whenOpen(func() { letGo(s.tid, signal) })
	return kept
}
