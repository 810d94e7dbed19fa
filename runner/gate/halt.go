package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Tree is what Halt has to be told of a sandbox's processes.
type Tree struct {
	// Processes lists them by their ids on the host, and says how many there are:
	// more than those listed if some came meanwhile. Ended ones that nobody has
	// waited for are among them.
	Processes func() (pids []int, all int, err error)
	// AtRest says whether threads were seen twice without having run in between.
	AtRest func(threads []int) bool
}

// errOut says that a gate that is closed halts nothing.
var errOut = errors.New("the gate is closed")

// Halt stops every process of a sandbox for which no freezer is to be had, until
// Continue: each of its threads is traced and stands in a stop of its tracer's, which
// no signal ends but KILL. Nobody inside is told of it, and what was stopped before
// is stopped after. If this process dies, the others do. Answers must be held from
// before Halt to after Continue, which has to follow also where Halt fails.
func (g *Gate) Halt(ctx context.Context, tree Tree) (err error) {
	if !g.halter.do(func() { err = g.halter.halt(ctx, tree) }) {
		return errOut
	}
	return err
}

// Continue undoes Halt.
func (g *Gate) Continue() { g.halter.do(g.halter.letAllGo) }

// haltOptions have what a thread makes while it is being stopped traced from its first
// instruction on, and tell of its end before what it traces itself is let go.
const haltOptions = unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACEEXIT | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK

// halter is who carries out Halt, on a locked thread that is started by the first. A
// thread that is seized and interrupted doesn't get back to its program: it stands
// or, in a call that nothing interrupts, will do so before it returns. One that stands
// when nothing is halted, as its call took so long, is let go.
type halter struct {
	worker
	g     *Gate
	begin func() bool // starts the thread, once
	up    chan struct{}
	jobs  chan func()
	over  chan struct{} // closed when the thread does no more jobs

	// What follows is the thread's alone.
	halted bool
	still  bool             // what is halted doesn't run
	traced map[int]standing // by thread
	whole  map[int]bool     // processes whose threads all stand by this halt
	others map[int]*other   // processes that others of the sandbox trace
}

// standing is how a traced thread stands.
type standing struct {
	stands bool        // else it is on its way
	signal unix.Signal // that it is to get when it is let go, or 0
}

func newHalter(g *Gate) *halter {
	h := &halter{
		g: g, up: make(chan struct{}), jobs: make(chan func()), over: make(chan struct{}),
		traced: map[int]standing{}, whole: map[int]bool{}, others: map[int]*other{},
	}
	h.begin = sync.OnceValue(func() bool { return g.spawn(func() { onThread(h.run) }) })
	return h
}

// do has the thread do something, and says whether it did.
func (h *halter) do(job func()) bool {
	if !h.begin() {
		return false
	}
	<-h.up
	done := make(chan struct{})
	for {
		h.poke()
		select {
		case h.jobs <- func() { defer close(done); job() }:
			<-done
			return true
		case <-h.over:
			return false
		case <-time.After(pokeAgain):
		}
	}
}

// end has the thread end, if there is one; the gate is closed, and starts none.
func (h *halter) end() {
	select {
	case <-h.up:
	default:
		return // it sees that by itself
	}
	for {
		h.poke()
		select {
		case <-h.over:
			return
		case <-time.After(pokeAgain):
		}
	}
}

// run does jobs, and waits for what is traced meanwhile: nobody else can take note of
// the end of a process that is killed. What is still traced at its end dies with the
// thread.
func (h *halter) run() (used bool) {
	h.tid = unix.Gettid()
	close(h.up)
	defer h.leave()
	defer close(h.over)
	for {
		select {
		case job := <-h.jobs:
			job()
			continue
		case <-h.g.done:
			h.letAllGo()
			return len(h.traced) > 0
		default:
		}
		s, err := awaitOnce(0)
		switch {
		case err == nil:
			h.note(s)
		case errors.Is(err, unix.ECHILD):
			clear(h.traced) // of a thread that became its process's first by an exec nothing is heard
			select {
			case job := <-h.jobs:
				job()
			case <-h.g.done:
			}
		}
	}
}

// note takes in what has happened to a traced thread.
func (h *halter) note(s stop) {
	if s.ended() {
		delete(h.traced, s.tid)
		delete(h.whole, s.tid)
		return
	}
	at := standing{stands: true}
	if s.event() == 0 {
		at.signal = s.signal()
	}
	h.traced[s.tid] = at
	switch {
	case !h.halted:
		h.letGo(s.tid)
	case s.event() == unix.PTRACE_EVENT_EXIT:
		if h.still {
			h.orphaned(s.tid)
		}
		h.traced[s.tid] = standing{}
		_, _ = ptrace(unix.PTRACE_CONT, s.tid, 0, 0)
	}
}

// collect takes in all that has happened.
func (h *halter) collect() {
	for {
		s, err := awaitOnce(unix.WNOHANG)
		switch {
		case err == nil && s.tid != 0:
			h.note(s)
		case !errors.Is(err, unix.EINTR):
			return
		}
	}
}

// letGo lets a standing thread go on. Of one that was killed its end is still to come.
func (h *halter) letGo(tid int) {
	if _, err := ptrace(unix.PTRACE_DETACH, tid, 0, uintptr(h.traced[tid].signal)); err == nil {
		delete(h.traced, tid)
	} else {
		h.traced[tid] = standing{}
	}
}

// letAllGo lets everything go on, or go once it stands.
func (h *halter) letAllGo() {
	h.halted, h.still = false, false
	// Before their tracers go on: these have been told of the signal, which has no
	// effect any more then.
	for pid, o := range h.others {
		if o.stopped {
			_ = unix.PidfdSendSignal(o.pidfd, unix.SIGCONT, nil, 0)
		}
		procDir(o.pidfd).close()
		delete(h.others, pid)
	}
	for tid, at := range h.traced {
		if at.stands {
			h.letGo(tid)
		}
	}
	h.collect()
}

// halt looks until everything stands.
func (h *halter) halt(ctx context.Context, tree Tree) error {
	h.halted, h.still = true, false
	clear(h.whole)
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		var err error
		if h.still, err = h.look(tree); h.still || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// look stops what doesn't stand, and says whether nothing can run any more. Who was
// seen to stand can't make another process or thread, so that nothing is missing as
// soon as there are no more of them than were seen.
func (h *halter) look(tree Tree) (still bool, err error) {
	h.collect()
	pids, all, err := tree.Processes()
	if err != nil {
		return false, err
	}
	held := map[int]bool{}
	for _, tid := range h.g.Held() {
		held[tid] = true
	}
	for _, o := range h.others {
		clear(o.tracers)
	}
	still = len(pids) == all
	var moving []int
	for _, pid := range pids {
		if !h.whole[pid] {
			rest, more := h.process(pid, held)
			still = still && rest >= coming
			moving = append(moving, more...)
		}
	}
	return still && (len(moving) == 0 || tree.AtRest(moving)), nil
}

// rest is how far a thread or process is on its way to stand.
type rest int

const (
	awake  rest = iota // it may run, or what it is doing isn't known
	coming             // it can't get back to its program, but may still do something in the kernel
	idle               // it can't run, as long as others stand
	stands
)

// process looks after all threads of a process. Those that are coming are listed.
func (h *halter) process(pid int, held map[int]bool) (least rest, moving []int) {
	threads := []int{pid}
	for {
		least, moving = stands, nil
		for _, tid := range threads {
			r := h.thread(pid, tid, held)
			if r == coming {
				moving = append(moving, tid)
			}
			least = min(least, r)
		}
		if least == awake {
			return awake, nil
		}
		n, err := countThreads(pid)
		if err != nil {
			return awake, nil
		}
		if n == len(threads) {
			h.whole[pid] = least == stands
			return least, moving
		}
		if len(threads) > 1 {
			return awake, nil
		}
		if threads, err = threadsOf(pid); err != nil || len(threads) == 1 {
			return awake, nil
		}
	}
}

// thread stops a thread, unless it waits for an answer: then it can't be stopped, nor
// can it run.
func (h *halter) thread(pid, tid int, held map[int]bool) rest {
	at, traced := h.traced[tid]
	switch {
	case at.stands:
		return stands
	case held[tid]:
		return idle
	case traced:
		return coming
	}
	switch err := seize(tid, haltOptions); {
	case err == nil:
		h.traced[tid] = standing{}
		_ = interrupt(tid)
		return awake
	case errors.Is(err, unix.EPERM):
		return h.foreign(pid, tid)
	default:
		return awake // it is gone
	}
}

// foreign looks after a thread that has ended, or that another traces: a thread of
// this process's, or a process of the sandbox. Whoever that is is stopped as well, so
// that what stands stays there.
func (h *halter) foreign(pid, tid int) rest {
	s, err := stateOf(tid)
	if err != nil {
		return awake
	}
	st, err := statusOf(tid)
	switch {
	case err != nil:
		return awake
	case s.letter == 'Z' || s.letter == 'X':
		return idle
	case st.tracer == 0:
		return awake // its tracer has just gone
	case ownThread(st.tracer):
		if s.letter == 't' {
			return idle
		}
		if tid == pid && !h.g.exits.halt(pid) {
			return awake
		}
		return coming
	}
	o := h.other(pid, st.tracer)
	if s.letter == 't' {
		return idle
	}
	if o != nil {
		o.stop()
	}
	if s.letter == 'D' {
		return coming
	}
	return awake
}

func ownThread(tid int) bool {
	return unix.Access(fmt.Sprintf("/proc/%d/task/%d", os.Getpid(), tid), unix.F_OK) == nil
}

// other is a process of which another of the sandbox traces threads.
type other struct {
	pidfd   int
	tracers map[int]bool // by thread, as of the last look
	stopped bool         // by a signal
}

// other remembers that a thread traces one of a process's; nil if that is gone.
func (h *halter) other(pid, tracer int) *other {
	o := h.others[pid]
	if o == nil {
		pidfd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return nil
		}
		if MarkOf(pid) == 0 { // the number is another's
			procDir(pidfd).close()
			return nil
		}
		o = &other{pidfd: pidfd, tracers: map[int]bool{}}
		h.others[pid] = o
	}
	o.tracers[tracer] = true
	return o
}

// stop has it stand before its tracer: it does for each signal, until that lets it go.
func (o *other) stop() {
	o.stopped = true
	_ = unix.PidfdSendSignal(o.pidfd, unix.SIGSTOP, nil, 0)
}

// orphaned kills what a thread traces that is about to end: it would run on.
func (h *halter) orphaned(tracer int) {
	for pid, o := range h.others {
		if o.tracers[tracer] {
			_ = unix.PidfdSendSignal(o.pidfd, unix.SIGKILL, nil, 0)
			h.g.o.Log(fmt.Sprintf("killed process %d, whose tracer was killed while the sandbox was frozen", pid))
		}
	}
}
