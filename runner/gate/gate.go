package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Options are what a Gate's owner wants to be told. All callbacks but Exec may
// be nil.
type Options struct {
	// Exec is told of every program start that could happen. The caller is
	// held until the Exec is resolved.
	Exec func(*Exec)
	// Exit is told once of each process whose exec was allowed, unless with
	// NoExit, when it has ended.
	Exit func(Exit)
	// Exiting is told of each process whose exec was allowed with HoldExit
	// when it is about to end but nobody can have noticed yet, its parent
	// neither. The process waits until the callback returns. Exit follows.
	Exiting func(Exit)
	// Failed is told of an Exec that didn't lead to a running program though
	// it wasn't denied: its process was killed, the kernel refused it, or it
	// could not be checked. It comes after the Exec callback has returned.
	Failed func(e *Exec, why string)
	// Reach says whether a process may get hold of another; its call waits
	// meanwhile. Without it none may, but signal it.
	Reach func(context.Context, Reach) bool
	// Scripts names the arguments of an exec, as paths, from which the program
	// may read its commands if they are files: `sh FILE`. It is called before
	// Exec, and only reads the exported fields.
	Scripts func(*Exec) []string
	// Telling says which variables are kept for whom the program is shown to, as NAME=VALUE, though the environment
	// is too large to be kept whole.
	Telling func(variable string) bool
	// Full is told once, when execs first have to wait unread because as many are
	// held as this process has descriptors for.
	Full func(most int)
	// Log is told of what is odd.
	Log func(string)

	// traceExits watches exits with ptrace(2), as on kernels before 6.15,
	// also where pidfds would do.
	traceExits bool
	// places is how many execs may be held, of tests; 0: as descriptors allow.
	places int
}

// Exit is how a process ended.
type Exit struct {
	PID    int
	Start  uint64
	Code   int
	Signal unix.Signal // that killed it, or 0
	Known  bool        // whether Code and Signal could be found out
	At     time.Time
}

// Gate answers the execs of one sandbox.
type Gate struct {
	o     Options
	l     listener
	done  chan struct{} // closed when the gate closes
	tasks sync.WaitGroup
	once  sync.Once

	// sending is held shared while an answer goes out, and exclusively to
	// stop and let go all answers.
	sending sync.RWMutex
	holds   int           // guarded by sending
	open    chan struct{} // guarded by sending; closed when holds is 0
	closed  bool          // guarded by sending
	doomed  bool          // guarded by sending; nothing is held any more

	mu      sync.Mutex
	waiting map[uint64]*waiter // guarded by mu; received and not answered
	closing bool               // guarded by mu; nothing is started any more
	left    []*Exec            // guarded by mu; resolved when nothing was started any more
	denied  denials            // guarded by mu
	again   map[int]*Exec      // guarded by mu; by thread: allowed, but interrupted by the kernel before it happened

	contents contents
	programs programs

	watch  *watcher
	exits  *exits
	first  first
	own    atomic.Int64 // number of the session's terminal, or unseen
	turns  turns
	halter *halter
	room   *room
}

// waiter is a thread that waits for an answer.
type waiter struct {
	tid  int
	exec *Exec // nil while it is being read
}

// turns bounds how much is read of processes at once.
type turns struct {
	readers  chan struct{} // of callers
	searches sync.Mutex    // of all processes
}

// maxReaders is how many callers are read at once. Others wait their turn.
const maxReaders = 32

// New begins to answer the execs of a listener that [Install] made in the
// sandbox. It owns the file from then on.
func New(file *os.File, o Options) (*Gate, error) {
	if o.Exec == nil {
		return nil, errors.New("cannot gate execs: nobody decides on them")
	}
	if o.Exit == nil {
		o.Exit = func(Exit) {}
	}
	if o.Exiting == nil {
		o.Exiting = func(Exit) {}
	}
	if o.Failed == nil {
		o.Failed = func(*Exec, string) {}
	}
	if o.Reach == nil {
		o.Reach = func(_ context.Context, r Reach) bool { return r.Kind == ReachSignal }
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if _, err := unmarked(); err != nil {
		return nil, err
	}
	if err := signals(); err != nil {
		return nil, err
	}
	g := &Gate{
		o: o, done: make(chan struct{}),
		open: make(chan struct{}), waiting: map[uint64]*waiter{}, again: map[int]*Exec{},
		turns: turns{readers: make(chan struct{}, maxReaders)}, room: newRoom(o.Full, o.places),
	}
	g.own.Store(unseen)
	close(g.open)
	var err error
	if g.watch, err = newWatcher(); err != nil {
		return nil, err
	}
	if g.l, err = listen(file); err != nil {
		g.watch.close()
		return nil, err
	}
	g.exits = newExits(g, o.traceExits)
	g.halter = newHalter(g)
	g.l.wakeUpInPlace()
	g.spawn(g.watch.run)
	g.spawn(g.receive)
	return g, nil
}

// spawn runs a task that Close waits for; not any more once the gate closes.
func (g *Gate) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return false
	}
	g.tasks.Add(1)
	go func() { defer g.tasks.Done(); f() }()
	return true
}

// end runs the task that ends an Exec, which was resolved. While the Exec
// callback runs that has to wait, and is then done by the callback's
// goroutine. A gate that closes gives up what the Exec holds by itself.
func (g *Gate) end(e *Exec, f func()) {
	if e.afterShowing(f) {
		return
	}
	if !g.spawn(func() { g.watch.remove(e.watched); f() }) {
		g.mu.Lock()
		g.left = append(g.left, e)
		g.mu.Unlock()
	}
}

// receive takes notifications as soon as they are there, whatever becomes of them,
// as only a received one is protected from signals, and has them handled. The
// thread that took one goes on with handling it, as this waits meanwhile.
func (g *Gate) receive() {
	for {
		n, ok, err := g.next()
		switch {
		case errors.Is(err, errOver):
			g.abandonAll()
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			return // the gate closes
		case err != nil:
			g.o.Log(fmt.Sprintf("cannot receive an exec: %v", err))
			return
		case ok:
			g.spawn(func() { g.handle(n) })
		}
	}
}

// next waits for a notification and takes it; ok is false when the one that was there
// went away again. While answers are held none is taken: those can't be stopped by a
// signal or a tracer, and must be known to who stops all others.
func (g *Gate) next() (n notification, ok bool, err error) {
	if err := g.l.wait(); err != nil {
		return n, false, err
	}
	if !g.begin() {
		return n, false, os.ErrDeadlineExceeded
	}
	defer g.finish()
	if n, ok, err = g.l.receive(); ok {
		g.mu.Lock()
		g.waiting[n.ID] = &waiter{tid: int(n.TID)}
		g.mu.Unlock()
	}
	return n, ok, err
}

// abandonAll fails what is held once nobody is left under the filter.
func (g *Gate) abandonAll() {
	for _, e := range g.heldExecs(0) {
		g.gone(e)
	}
}

// heldExecs lists the Execs that wait, of one process or (0) of all.
func (g *Gate) heldExecs(pid int) []*Exec {
	g.mu.Lock()
	defer g.mu.Unlock()
	var l []*Exec
	for _, w := range g.waiting {
		if w.exec != nil && (pid == 0 || w.exec.PID == pid) {
			l = append(l, w.exec)
		}
	}
	return l
}

// Held lists the threads, by their ids on the host, that wait for an answer.
// They run no code of their own, and a freezer may not be able to stop them. While
// answers are held, none is added.
func (g *Gate) Held() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := make([]int, 0, len(g.waiting))
	for _, w := range g.waiting {
		l = append(l, w.tid)
	}
	return l
}

// waits says whether the thread of a notification still waits.
func (g *Gate) waits(id uint64) bool {
	g.sending.RLock()
	defer g.sending.RUnlock()
	return !g.closed && g.l.valid(id)
}

// answered forgets a notification.
func (g *Gate) answered(id uint64) {
	g.mu.Lock()
	delete(g.waiting, id)
	g.mu.Unlock()
}

// fail answers a notification with an error once that may be done.
func (g *Gate) fail(id uint64, e unix.Errno) {
	if !g.begin() {
		return
	}
	defer g.finish()
	g.answered(id)
	// It fails only when the thread is gone.
	_ = g.l.fail(id, e)
}

// mind watches for the end of a process whose Exec is still open.
func (g *Gate) mind(e *Exec) {
	n, err := g.watch.add(e.pidfd, false, func() { g.gone(e) })
	if err != nil {
		g.o.Log(err.Error())
		return
	}
	e.watched = n
}

// gone tells that an Exec's process went away while it was held.
func (g *Gate) gone(e *Exec) {
	if !e.resolve() {
		return
	}
	g.answered(e.ID)
	g.end(e, func() { g.failed(e, whyGone) })
}

// failed tells that an Exec, which was resolved, will not run, and ends it.
func (g *Gate) failed(e *Exec, why string) {
	g.o.Failed(e.shownAs(), why)
	e.close()
}

// Close ends the gate: execs that are held or come later fail with ENOSYS. It
// returns when nothing of the gate runs any more; callbacks are over then.
func (g *Gate) Close() error {
	g.once.Do(func() {
		g.sending.Lock()
		g.closed = true
		g.mu.Lock()
		g.closing = true
		for id := range g.waiting {
			_ = g.l.fail(id, unix.ENOSYS)
		}
		g.mu.Unlock()
		g.sending.Unlock()
		close(g.done)
		g.l.end()
		g.watch.end()
		g.exits.end()
		g.halter.end()
		g.tasks.Wait()
		for _, e := range g.heldExecs(0) {
			if e.resolve() {
				e.close()
			}
		}
		for _, e := range g.left {
			e.close()
		}
		g.exits.close()
		g.watch.close()
		_ = g.l.file.Close()
	})
	return nil
}
