package gate

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leader is a process that stays traced until it ends, as its pidfd wouldn't
// tell how. One locked thread belongs to it, and does nothing but pass on what
// the process would have got without a tracer: signals, stops, continuing.
// Only its main thread is traced: that one's end is the process's.
type leader struct {
	worker
	x       *exits
	ending  *ending       // of its process, for when tracing is over early
	execs   chan *Exec    // approved, to be launched by this thread
	stop    chan struct{} // closed to let go of the process
	over    chan struct{} // closed when the thread has let go
	queued  *Exec         // not launched yet
	pending *Exec         // launched, not seen yet
	hold    atomic.Bool   // Exiting is to be called
	halting atomic.Bool   // the process is to stop, as answers are held
	halted  atomic.Bool   // it has been made to
}

// traces says whether we trace a process ourselves.
func (x *exits) traces(pid int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.leaders[pid] != nil
}

// hand gives an approved Exec to the thread that traces its caller already, if
// there is one.
func (x *exits) hand(e *Exec) bool {
	x.mu.Lock()
	l := x.leaders[e.PID]
	x.mu.Unlock()
	if l == nil || l.ending.process.Start != e.Start || e.TID != e.PID {
		return false
	}
	for {
		l.poke()
		select {
		case l.execs <- e:
			return true
		case <-l.over:
			x.g.answered(e.ID)
			x.g.failed(e, whyGone)
			return true
		case <-time.After(pokeAgain):
		}
	}
}

// lead keeps tracing a process that stands in its new image, on the thread
// that brought it there, until it ends. If its end wasn't seen the thread is then
// used up: it may trace it still.
func (x *exits) lead(e *Exec) (used bool) {
	n := x.take(e)
	l := &leader{
		worker: worker{tid: unix.Gettid()}, x: x, ending: n, execs: make(chan *Exec),
		stop: make(chan struct{}), over: make(chan struct{}),
	}
	l.hold.Store(e.allowed&HoldExit != 0)
	if !x.enlist(l) {
		letGo(e.PID, 0)
		e.close()
		n.close()
		return true
	}
	x.g.recheck(e)
	e.close()
	l.resume(n.process.PID, 0)
	status, known := l.run()
	mine := x.dismiss(l)
	close(l.over)
	l.leave()
	if l.queued != nil {
		x.g.answered(l.queued.ID)
		x.g.failed(l.queued, whyGone)
	}
	if l.pending != nil {
		x.g.failed(l.pending, whyKilled)
	}
	switch {
	case known:
		exit := Exit{PID: n.process.PID, Start: n.process.Start, At: time.Now()}
		exit.set(int(status), true)
		n.close()
		x.g.o.Exit(exit)
	case mine:
		x.add(n) // what can be found out without tracing
	default:
		n.close()
	}
	return !known
}

// enlist notes a leader in the place of others that watch its process: of an
// earlier exec, or the thread that was its first before this one became that.
func (x *exits) enlist(l *leader) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	p := l.ending.process
	if old := x.leaders[p.PID]; old != nil && old.ending.process == p {
		l.hold.Store(l.hold.Load() || old.hold.Load())
	}
	x.leaders[p.PID] = l
	x.tracers[l] = true
	if n := x.watched[p]; n != nil {
		delete(x.watched, p)
		x.g.watch.remove(n.number)
		n.close()
	}
	return true
}

// dismiss forgets a leader, and says whether none has taken its place.
func (x *exits) dismiss(l *leader) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.tracers, l)
	pid := l.ending.process.PID
	if x.leaders[pid] != l {
		return false
	}
	delete(x.leaders, pid)
	return true
}

// resume lets the process run on, unless answers are held: a freezer takes a
// process that stands in a tracer's stop for a stopped one.
func (l *leader) resume(tid int, s unix.Signal) {
	l.x.g.whenOpen(func() {
		l.halting.Store(false)
		l.halted.Store(false)
		_, _ = ptrace(unix.PTRACE_CONT, tid, 0, uintptr(s))
	})
}

// halt stops the process if that is wanted; resume has it wait then. A launched exec
// stops by itself.
func (l *leader) halt() {
	if !l.halting.Load() || l.halted.Load() {
		return
	}
	if l.pending == nil {
		_ = interrupt(l.ending.process.PID)
	}
	l.halted.Store(true)
}

// halt has the thread that traces a process stop it, while answers are held. It says
// whether that is done; what is traced for an exec alone stops by itself.
func (x *exits) halt(pid int) bool {
	x.mu.Lock()
	l := x.leaders[pid]
	x.mu.Unlock()
	if l == nil || l.halted.Load() {
		return true
	}
	l.halting.Store(true)
	l.poke()
	return false
}

// run passes on what happens to the process until it has ended (known), or
// isn't ours to trace any more.
func (l *leader) run() (status unix.WaitStatus, known bool) {
	for {
		if !l.launch() {
			return 0, false // the thread's end lets go of the process
		}
		l.halt()
		s, err := awaitOnce(0)
		switch {
		case errors.Is(err, unix.EINTR): // poked
		case err != nil:
			// Another thread of the process has become its only one by an
			// exec of its own, which has its own tracer.
			return 0, false
		case s.ended():
			return s.status, true
		default:
			l.pass(s)
		}
	}
}

// launch lets an exec happen that was handed over, once answers may go out. It
// says no when tracing is to end.
func (l *leader) launch() bool {
	select {
	case <-l.stop:
		return false
	case l.queued = <-l.execs:
	default:
		return true
	}
	g := l.x.g
	for {
		ok, open := g.tryBegin()
		if ok {
			break
		}
		select {
		case <-open:
		case <-l.stop:
			return false
		}
	}
	defer g.finish()
	l.queued, l.pending = nil, l.queued
	g.release(l.pending)
	return true
}

var stopSignals = []unix.Signal{unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}

// pass carries on a stopped process as if it weren't traced (ptrace(2), "Group-stop").
func (l *leader) pass(s stop) {
	switch s.event() {
	case unix.PTRACE_EVENT_EXEC:
		l.arrived(s)
		return
	case unix.PTRACE_EVENT_EXIT:
		l.exiting(s)
	case 0:
		l.cameBack(s)
		l.resume(s.tid, s.signal())
	case eventStop:
		l.cameBack(s)
		if slices.Contains(stopSignals, s.signal()) {
			_, _ = ptrace(unix.PTRACE_LISTEN, s.tid, 0, 0)
			return
		}
		l.resume(s.tid, 0)
	default:
		l.resume(s.tid, 0)
	}
}

// exiting lets a process end once that may be noticed. One that is killed
// meanwhile ends at once, which is as well.
func (l *leader) exiting(s stop) {
	if l.hold.Load() {
		exit := Exit{PID: l.ending.process.PID, Start: l.ending.process.Start, At: time.Now()}
		if status, err := eventMessage(s.tid); err == nil {
			exit.set(int(status), true)
		}
		l.x.g.o.Exiting(exit)
	}
	l.resume(s.tid, 0)
}

// arrived checks the new image of a launched exec.
func (l *leader) arrived(s stop) {
	e := l.pending
	l.pending = nil
	if e == nil {
		l.resume(s.tid, 0) // it was allowed unverified, or by another thread
		return
	}
	if e.allowed&HoldExit != 0 {
		l.hold.Store(true)
	}
	g := l.x.g
	if e.allowed&Unverified == 0 {
		if err := e.verify(); err != nil {
			_ = unix.Kill(e.PID, unix.SIGKILL)
			l.resume(s.tid, 0)
			g.failed(e, "killed before it ran: "+err.Error())
			return
		}
	}
	l.resume(s.tid, 0)
	g.recheck(e)
	e.close()
}

// cameBack tells that a launched exec has returned.
func (l *leader) cameBack(s stop) {
	if e := l.pending; e != nil {
		l.pending = nil
		g := l.x.g
		if errno := g.returned(s); !g.putOff(e, errno) {
			g.end(e, func() { g.refused(e, errno) })
		}
	}
}

// end lets go of the process, and returns when that is done.
func (l *leader) end() {
	close(l.stop)
	for {
		l.poke()
		select {
		case <-l.over:
			return
		case <-time.After(pokeAgain):
		}
	}
}

// worker is a locked thread that waits for what it traces.
type worker struct {
	tid int

	mu   sync.Mutex
	left bool // guarded by mu; the thread isn't its own any more
}

// poke has the thread look at what it is to do, if it waits. One that is about to wait
// misses it, so it is done again until there is an answer.
func (w *worker) poke() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.left {
		_ = unix.Tgkill(mainThread, w.tid, pokeSignal)
	}
}

// leave ends the pokes, so that none interrupts what the thread does next: one that
// was sent arrives with the call.
func (w *worker) leave() {
	w.mu.Lock()
	w.left = true
	w.mu.Unlock()
	_ = unix.Gettid()
}

const (
	pokeSignal = unix.Signal(63) // a real-time signal that nobody else uses
	pokeAgain  = time.Millisecond
)

// signals makes ready what this process does about two signals, once. What
// tracing stops is told by wait4(2): a SIGCHLD for each stop would only wake
// threads. And a poke ends wait4, which Go has other signals carry on with.
var signals = sync.OnceValue(func() error {
	change := func(s unix.Signal, set, clear uint64) error {
		var action [5]uint64 // struct sigaction of the kernel: handler, flags, restorer, mask
		at := unsafe.Pointer(&action)
		_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(at), 8, 0, 0)
		if e == 0 {
			action[1] = action[1]&^clear | set
			_, _, e = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(at), 0, 8, 0, 0)
		}
		if e != 0 {
			return fmt.Errorf("cannot change what signal %d does: %w", s, e)
		}
		return nil
	}
	const noChildStop, restart = 1, 0x10000000 // SA_NOCLDSTOP, SA_RESTART
	return errors.Join(change(unix.SIGCHLD, noChildStop, 0), change(pokeSignal, 0, restart))
})

var mainThread = unix.Getpid()

// onThread runs f on an operating system's thread of its own choice, which f
// may leave to die with what it traces by returning true. The process's main
// thread never dies, so it isn't used.
func onThread(f func() (used bool)) {
	runtime.LockOSThread()
	if unix.Gettid() == mainThread {
		done := make(chan struct{})
		go func() {
			defer close(done)
			onThread(f)
		}()
		<-done
		runtime.UnlockOSThread()
		return
	}
	if !f() {
		runtime.UnlockOSThread()
	}
}
