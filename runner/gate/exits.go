package gate

import (
	"maps"
	"slices"
	"stepbox/runner/overlay/inode"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// exits finds out how processes end. From Linux 6.15 on a pidfd tells even
// after the process was waited for; before, the process stays traced until
// then.
type exits struct {
	g     *Gate
	trace bool

	mu      sync.Mutex
	watched map[Process]*ending // guarded by mu; without names
	leaders map[int]*leader     // guarded by mu; traced ones, by pid
	tracers map[*leader]bool    // guarded by mu; all whose thread runs
	over    bool                // guarded by mu; no more are
}

// ending is the watch for one process's end by its pidfd.
type ending struct {
	process Process
	pidfd   int
	known   bool // the pidfd is watched already
	number  int
}

func (n *ending) close() { procDir(n.pidfd).close() }

func newExits(g *Gate, trace bool) *exits {
	return &exits{
		g: g, trace: trace || !pidfdTellsExit(),
		watched: map[Process]*ending{}, leaders: map[int]*leader{}, tracers: map[*leader]bool{},
	}
}

// pidfdTellsExit says whether the kernel has PIDFD_INFO_EXIT. There is no way
// to ask for it but to end a process.
func pidfdTellsExit() bool { return inode.KernelSince(6, 15) }

// take makes an ending of an Exec's process. It takes over the pidfd.
func (x *exits) take(e *Exec) *ending {
	n := &ending{process: Process{PID: e.PID, Start: e.Start}, pidfd: e.pidfd, known: e.watched != 0}
	e.pidfd = -1
	return n
}

// follow reports the end of an Exec's process by its pidfd.
func (x *exits) follow(e *Exec) { x.add(x.take(e)) }

// add watches for an end. One watch is enough for a process, however often it
// execs.
func (x *exits) add(n *ending) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watched[n.process] != nil {
		n.close()
		return
	}
	var err error
	n.number, err = x.g.watch.add(n.pidfd, n.known, func() { x.ended(n) })
	if err != nil {
		x.g.o.Log(err.Error())
		n.close()
		return
	}
	x.watched[n.process] = n
}

// ended reports a process that a pidfd said has ended.
func (x *exits) ended(n *ending) {
	x.mu.Lock()
	mine := x.watched[n.process] == n
	if mine {
		delete(x.watched, n.process)
	}
	x.mu.Unlock()
	if !mine { // its tracer tells
		return
	}
	exit := Exit{PID: n.process.PID, Start: n.process.Start, At: time.Now()}
	status, known := n.status()
	exit.set(status, known)
	n.close()
	x.g.o.Exit(exit)
}

// set takes over a status as wait(2) gives it.
func (e *Exit) set(status int, known bool) {
	w := unix.WaitStatus(status)
	switch {
	case !known:
	case w.Signaled():
		e.Signal, e.Known = w.Signal(), true
	case w.Exited():
		e.Code, e.Known = w.ExitStatus(), true
	}
}

// status finds out how a process ended: from its remains while its parent
// hasn't waited for it, which may be never, else from the pidfd.
func (n *ending) status() (status int, known bool) {
	if status, known = pidfdStatus(n.pidfd); known {
		return status, true
	}
	if s, err := stateOf(n.process.PID); err == nil && s.start == n.process.Start && (s.letter == 'Z' || s.letter == 'X') {
		return s.exit, true
	}
	return pidfdStatus(n.pidfd) // it was waited for between the two
}

// pidfdInfo is struct pidfd_info of linux/pidfd.h in its first version.
type pidfdInfo struct {
	Mask   uint64
	Cgroup uint64
	IDs    [11]uint32
	Exit   int32
}

const pidfdGetInfo = 0xc040ff0b // PIDFD_GET_INFO for that version

// pidfdStatus asks a pidfd how its process ended, once that was waited for.
func pidfdStatus(pidfd int) (status int, known bool) {
	info := pidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	if e != 0 || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return 0, false
	}
	return int(info.Exit), true
}

// end stops to trace processes. Only Gate.Close calls it, before it waits for
// what runs.
func (x *exits) end() {
	x.mu.Lock()
	x.over = true
	tracers := slices.Collect(maps.Keys(x.tracers))
	x.mu.Unlock()
	for _, l := range tracers {
		l.end()
	}
}

// close gives up the watches, when nothing runs any more.
func (x *exits) close() {
	for _, n := range x.watched {
		n.close()
	}
	clear(x.watched)
}
