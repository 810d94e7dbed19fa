package gate

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Install puts the filter on the calling thread, which must be locked to its
// goroutine, and returns the listener on which its execs, and those of what
// it starts, are notified. The caller owns the descriptor (it is
// close-on-exec), and should send it to the supervisor and close its own copy
// before it starts anything. The thread can never gain privileges again, nor
// get rid of the filter. Other threads of the process are left alone.
//
// It needs Linux 5.19: without SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, a held
// exec is interrupted by any signal, and a Go program's never completes. Until
// its notification is received a call can still be interrupted, on all kernels: it
// has had no effect then, and is made again, or fails with EINTR when the signal
// has a handler that asked for that (no SA_RESTART). No filter can spare a process
// the question about itself, as none knows who calls.
//
// The process gets the mark [OwnMark].
func Install() (listener int, err error) {
	if err := SetMark(0, OwnMark); err != nil {
		return -1, err
	}
	return install(Filter())
}

func install(program []unix.SockFilter) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("cannot give up gaining privileges: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	switch {
	case errors.Is(e, unix.EINVAL):
		return -1, fmt.Errorf("cannot install the exec gate: the kernel is older than 5.19 or lacks seccomp notification: %w", e)
	case e != 0:
		return -1, fmt.Errorf("cannot install the exec gate: %w", e)
	}
	return int(fd), nil
}
