package gate

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Kernel ABI that the unix package lacks, linux/ptrace.h.
const eventStop = 128 // PTRACE_EVENT_STOP

// ptrace makes one request. All requests about a thread must come from the
// operating system's thread that seized it.
func ptrace(request, tid int, addr, data uintptr) (uintptr, error) {
	for {
		r, _, e := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0)
		switch e {
		case 0:
			return r, nil
		case unix.EINTR:
		default:
			return 0, e
		}
	}
}

func seize(tid int, options uintptr) error {
	_, err := ptrace(unix.PTRACE_SEIZE, tid, 0, options)
	return err
}

func interrupt(tid int) error {
	_, err := ptrace(unix.PTRACE_INTERRUPT, tid, 0, 0)
	return err
}

// eventMessage is what a thread's ptrace event says: of its end the status, as
// wait(2) will give it.
func eventMessage(tid int) (uint, error) {
	var m uint
	_, err := ptrace(unix.PTRACE_GETEVENTMSG, tid, 0, uintptr(unsafe.Pointer(&m)))
	return m, err
}

// letGo ends the tracing of a stopped thread, with a signal or 0 for it. One
// that was killed meanwhile has to be waited for: its parent can't before.
func letGo(tid int, signal unix.Signal) {
	if _, err := ptrace(unix.PTRACE_DETACH, tid, 0, uintptr(signal)); err != nil {
		bury()
	}
}

// bury waits for the end of a thread that was killed.
func bury() {
	for {
		s, err := await()
		if err != nil || s.ended() {
			return
		}
		_, _ = ptrace(unix.PTRACE_CONT, s.tid, 0, 0)
	}
}

// stop is what waiting for a traced thread has brought.
type stop struct {
	tid    int
	status unix.WaitStatus
}

func (s stop) ended() bool { return s.status.Exited() || s.status.Signaled() }

// event is the ptrace event that a thread stopped for, 0 for a signal.
func (s stop) event() int { return int(s.status) >> 16 }

func (s stop) signal() unix.Signal { return s.status.StopSignal() }

// await waits for what the calling thread traces. The flag __WCLONE leaves
// out the ordinary children that the same thread may have started for others
// of this process: their exits aren't ours to take. Traced threads are waited
// for whatever the flag says (kernel/exit.c, eligible_child).
func await() (stop, error) {
	for {
		if s, err := awaitOnce(0); !errors.Is(err, unix.EINTR) {
			return s, err
		}
	}
}

// awaitOnce is await that a poke ends, with EINTR. With WNOHANG it doesn't wait, and
// gives thread 0 if there is nothing.
func awaitOnce(options int) (s stop, err error) {
	s.tid, err = unix.Wait4(-1, &s.status, options|unix.WCLONE|unix.WNOTHREAD, nil)
	return s, err
}
