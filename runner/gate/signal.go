package gate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// passing are signals that any program may send any other: they end it, which whoever runs with it may
// do, or say what the kernel and run-time systems say all the time, which nobody takes for an order
// (Go's sends itself SIGURG hundreds of times a second).
var passing = []unix.Signal{0, unix.SIGKILL, unix.SIGTERM, unix.SIGINT, unix.SIGCHLD, unix.SIGWINCH, unix.SIGURG}

// signalRules have the gate asked about all other signals that a process sends, whatever the call.
func signalRules() (rules []rule) {
	first := calls(unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL)
	third := calls(unix.SYS_TGKILL, unix.SYS_RT_TGSIGQUEUEINFO)
	for _, s := range passing {
		rules = append(rules,
			rule{first, []condition{is(1, uint32(s))}, pass},
			rule{third, []condition{is(2, uint32(s))}, pass},
			// What the kernel would send later, also to another program that the process has become by then.
			rule{calls(unix.SYS_PRCTL), []condition{is(0, unix.PR_SET_PDEATHSIG), is(1, uint32(s))}, pass})
	}
	return append(rules,
		rule{calls: first, answer: notify},
		rule{calls: third, answer: notify},
		rule{calls(unix.SYS_PRCTL), []condition{is(0, unix.PR_SET_PDEATHSIG)}, errno(unix.EPERM)},
		rule{calls(unix.SYS_FCNTL), []condition{is(1, fSetSig), is(2, 0)}, pass},
		rule{calls(unix.SYS_FCNTL), []condition{is(1, fSetSig)}, errno(unix.EPERM)},
		rule{calls(unix.SYS_FCNTL), []condition{is(1, fSetOwn)}, notify}, // who gets SIGIO
		rule{calls(unix.SYS_FCNTL), []condition{is(1, fSetOwnEx)}, errno(unix.EPERM)},
		rule{calls(unix.SYS_IOCTL), []condition{is(1, fioSetOwn)}, errno(unix.EPERM)},
		rule{calls(unix.SYS_IOCTL), []condition{is(1, siocSPGrp)}, errno(unix.EPERM)})
}

// Commands of fcntl(2) and ioctl(2), asm-generic/fcntl.h and sockios.h.
const (
	fSetOwn   = 8
	fSetSig   = 10
	fSetOwnEx = 15
	fioSetOwn = 0x8901
	siocSPGrp = 0x8902
)

// meaning is what a signal means to who gets it, signal(7).
type meaning uint8

const (
	ends  meaning = iota // the process, unless that handles or ignores it
	stops                // it, or has it go on
)

func meaningOf(s unix.Signal) meaning {
	switch s {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT:
		return stops
	}
	return ends
}

// orders says whether a program may take a signal for an order: it handles it, or is stopped by it.
// One that blocks it may wait for it (sigwaitinfo(2), signalfd(2)).
func (st *status) orders(s unix.Signal) bool {
	bit := uint64(1) << (s - 1)
	return meaningOf(s) == stops || (st.caught|st.blocked)&bit != 0
}

// undirected are signals that a program is sent for what it does itself, or by what stops it, and that are no order.
var undirected = append(slices.Clone(passing),
	unix.SIGPIPE, unix.SIGALRM, unix.SIGVTALRM, unix.SIGPROF, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT)

// waiting is a signal that was sent before a program began and would meet it once it handles it; 0: there is none.
func (st *status) waiting() unix.Signal {
	for s := unix.Signal(1); s <= 64; s++ {
		if st.pending&(1<<(s-1)) != 0 && !slices.Contains(undirected, s) {
			return s
		}
	}
	return 0
}

// unarranged says that nothing was arranged for a new image that outlives an exec: no signal waits that somebody sent
// to what was there before, and if the image's owner wants that, no filter is over its calls.
func unarranged(e *Exec) error {
	st, err := e.leader.status()
	if err != nil {
		return err
	}
	if e.allowed&Unfiltered != 0 && st.filters > e.gate.first.filters.count {
		return errors.New("who started it has put a filter over its system calls (seccomp)")
	}
	if e.allowed&Unfiltered != 0 && st.ignored&(1<<(unix.SIGCHLD-1)) != 0 { // the ends of what it starts would be lost on it
		return errors.New("who started it has it ignore SIGCHLD")
	}
	if s := st.waiting(); s != 0 {
		return fmt.Errorf("the signal %s was sent to it before it began", unix.SignalName(s))
	}
	return nil
}

// signal answers a call by which a process sends a signal: to one process, or to all of a group. What is
// for others this process sends in its place, to those that were judged: the numbers, and descriptors, by which it
// was meant can be others' a moment later.
//
// A call that is interrupted before it was received, see [Install], has sent nothing, and its caller may get EINTR for it,
// of a handler that doesn't restart calls.
func (g *Gate) signal(n notification) {
	list, own, err := g.maySignal(n)
	if !g.waits(n.ID) {
		err = errGone
	}
	errno, bare := err.(unix.Errno) //nolint:errorlint // wrapped ones are troubles of ours
	switch {
	case errors.Is(err, errGone):
		g.answered(n.ID)
	case bare:
		g.fail(n.ID, errno)
	case err != nil:
		g.o.Log(fmt.Sprintf("kept thread %d from sending a signal: %v", n.TID, err))
		g.fail(n.ID, unix.EPERM)
	case own:
		g.pass(n.ID)
	case len(list) == 0:
		g.fail(n.ID, unix.ESRCH)
	default:
		failed := unix.Errno(0)
		for _, r := range list {
			errno, another := r.send()
			if another {
				errno = g.sendAgain(r)
			}
			failed = max(failed, errno)
		}
		g.fail(n.ID, failed)
	}
}

// sendAgain has a signal judged as one to what its target has become, and sends it.
func (g *Gate) sendAgain(r Reach) unix.Errno {
	process, err := openProc(r.Target.PID)
	if err != nil {
		return 0
	}
	defer process.close()
	was := r.Target.Start
	if r.Target, err = g.party(process); err != nil || r.Target.Start != was {
		return 0
	}
	r.Orders = true
	if !g.owner(r) {
		return unix.EPERM
	}
	errno, another := r.send()
	if another {
		return unix.EPERM
	}
	return errno
}

// send sends a signal to the process that was judged, or to the one thread of it that was meant. That it has ended is no failure.
// Another says that it isn't sent, as the target has begun to take it for an order since, or has become another's. What ignores
// it needn't get it, and might handle it a moment later.
func (r *Reach) send() (errno unix.Errno, another bool) {
	fd, err := unix.PidfdOpen(r.Target.PID, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	mark := MarkOf(r.Target.PID)
	st, unread := statusOf(r.Target.PID)
	s, err := stateOf(r.Target.PID)
	own := r.Target.Process == r.Caller.Process
	switch {
	case err != nil || unread != nil || s.start != r.Target.Start:
		return 0, false
	case r.thread != 0: // of the caller's own process, which lives as it waits: no other has the two numbers
		err = unix.Tgkill(r.Target.PID, r.thread, r.Signal)
	case !own && !r.Orders && st.ignored&(1<<(r.Signal-1)) != 0:
		return 0, false
	case !own && (mark != r.Target.Mark || !r.Orders && st.orders(r.Signal)):
		return 0, true
	default:
		err = unix.PidfdSendSignal(fd, r.Signal, r.info, 0)
	}
	if errno, ok := err.(unix.Errno); ok && errno != unix.ESRCH { //nolint:errorlint // of a system call
		return errno, false
	}
	return 0, false
}

// maySignal gives what a call is about, if all of it may be. Own says that it is for the caller alone, by a
// number that stays its own.
func (g *Gate) maySignal(n notification) (list []Reach, own bool, err error) {
	g.search(func() { list, own, err = g.readSignal(n) })
	for _, r := range list {
		if err == nil && r.Target.Process != r.Caller.Process && !g.owner(r) {
			err = unix.EPERM
		}
	}
	return list, own, err
}

// readSignal finds out who signals whom. The sandbox's first process gets none, as from the others in there.
func (g *Gate) readSignal(n notification) (list []Reach, own bool, err error) {
	thread, err := openProc(int(n.TID))
	if err != nil {
		return nil, false, err
	}
	defer thread.close()
	me, err := thread.status()
	if err != nil {
		return nil, false, err
	}
	if n.Nr == unix.SYS_FCNTL {
		if owner := int32(n.Args[2]); owner != 0 && int(owner) != me.group {
			return nil, false, unix.EPERM
		}
		return nil, true, nil
	}
	if me.itself(n) {
		return nil, true, nil
	}
	signal, info, err := signalOf(n)
	if err != nil {
		return nil, false, err
	}
	meant, err := thread.meant(n.Nr, int32(n.Args[0]), &me)
	if err != nil {
		return nil, false, err
	}
	caller, err := g.party(thread)
	if err != nil {
		return nil, false, err
	}
	sibling := 0
	if n.Nr == unix.SYS_TKILL && meant(&me) {
		if sibling, err = siblingOf(caller.PID, int(int32(n.Args[0]))); err != nil {
			return nil, false, err
		}
	}
	err = thread.others(func(other procDir, st *status) (more bool) {
		if !meant(st) || st.group == 1 {
			return true
		}
		r := Reach{Kind: ReachSignal, Caller: caller, Signal: signal, Orders: st.orders(signal), Leads: meaningOf(signal) == stops && st.session == me.group, info: info, thread: sibling}
		if r.Target, err = g.party(other); err == nil { // else it has just ended
			list = append(list, r)
		}
		return true
	})
	return list, false, err
}

// itself says whether a call is for the caller alone by a number that stays its own while it waits: that of its
// process, or by tkill(2) that of the thread that calls. Another thread of its process may end and leave its number to others.
func (st *status) itself(n notification) bool {
	target := int(int32(n.Args[0]))
	switch n.Nr {
	case unix.SYS_TKILL:
		return target == st.inner
	case unix.SYS_PIDFD_SEND_SIGNAL:
		return false
	}
	return target == st.group
}

// signalOf is which signal a call sends, and what goes with it.
func signalOf(n notification) (unix.Signal, *unix.Siginfo, error) {
	number, at := n.Args[1], uint64(0)
	switch n.Nr {
	case unix.SYS_TGKILL:
		number = n.Args[2]
	case unix.SYS_RT_TGSIGQUEUEINFO:
		number, at = n.Args[2], n.Args[3]
	case unix.SYS_RT_SIGQUEUEINFO:
		at = n.Args[2]
	case unix.SYS_PIDFD_SEND_SIGNAL:
		if at = n.Args[2]; uint32(n.Args[3]) != 0 {
			return 0, nil, unix.EINVAL // as before Linux 6.9
		}
	}
	signal := unix.Signal(int32(number))
	if signal < 0 || signal > 64 {
		return 0, nil, unix.EINVAL
	}
	if at == 0 && (n.Nr == unix.SYS_RT_SIGQUEUEINFO || n.Nr == unix.SYS_RT_TGSIGQUEUEINFO) {
		return 0, nil, unix.EFAULT
	}
	if at == 0 {
		return signal, nil, nil
	}
	info, err := queuedInfo(int(n.TID), at)
	if err == nil {
		info.Signo = int32(signal)
	}
	return signal, info, err
}

// queuedInfo is what a process has a signal carry. As in the kernel what looks like kill(2)'s or the kernel's own is
// refused; who sent it the kernel says.
func queuedInfo(tid int, at uint64) (*unix.Siginfo, error) {
	const siTKill = -6 // SI_TKILL, asm-generic/siginfo.h
	memory := openMemory(tid)
	defer memory.close()
	var info unix.Siginfo
	if err := memory.fill((*[unsafe.Sizeof(info)]byte)(unsafe.Pointer(&info))[:], untag(at)); err != nil {
		return nil, err
	}
	if info.Code >= 0 || info.Code == siTKill {
		return nil, unix.EPERM
	}
	return &info, nil
}

// siblingOf is the thread of a process that has a number in their own pid namespace, as it is numbered here.
func siblingOf(pid, inner int) (int, error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, unix.ESRCH
	}
	for _, task := range tasks {
		st, err := readStatus(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/task/%s/status", pid, task.Name()))
		if tid, e := strconv.Atoi(task.Name()); err == nil && e == nil && st.inner == inner {
			return tid, nil
		}
	}
	return 0, unix.ESRCH
}

// meant says which processes a call is about, by the number that it has been given, as kill(2) has it.
func (d procDir) meant(call int32, target int32, me *status) (func(st *status) bool, error) {
	switch {
	case call == unix.SYS_PIDFD_SEND_SIGNAL:
		pid, err := d.pidOf(target)
		return func(st *status) bool { return st.tgid == pid }, err
	case call != unix.SYS_KILL || target > 0:
		group, err := d.groupOf(target)
		return func(st *status) bool { return st.group == group }, err
	case target == -1:
		return func(st *status) bool { return st.group != me.group }, nil
	}
	group := -int(target)
	if group == 0 {
		group = me.pgrp
	}
	return func(st *status) bool { return st.pgrp == group }, nil
}

// pidOf is the process, as it is numbered here, that a pidfd of the thread's means.
func (d procDir) pidOf(fd int32) (int, error) {
	b, err := d.read("fdinfo/"+strconv.Itoa(int(fd)), 4096)
	if err != nil {
		return 0, unix.EBADF
	}
	for line := range bytes.Lines(b) {
		if value, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			pid, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			if err != nil || pid <= 0 {
				return 0, unix.ESRCH
			}
			return pid, nil
		}
	}
	return 0, unix.EBADF
}
