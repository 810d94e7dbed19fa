package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ReachKind is what a process could do to another.
type ReachKind uint8

const (
	// ReachTrace is a process that wants to attach to another with ptrace(2). The kernel may do that
	// any time after the answer, when the other has become another program.
	ReachTrace ReachKind = iota
	// ReachTraced is one whose child wants to be traced by it, which waits in that call itself.
	ReachTraced
	// ReachShare is a process that wants a child whose working directory is
	// the same as its own whichever of the two changes it, also after the
	// child has become another program. There is no target yet.
	ReachShare
	// ReachStart is a process that traces another, which is about to start a
	// program that was allowed. Nobody else can check it.
	ReachStart
	// ReachSignal is a process that wants to send another a signal that isn't one of those
	// which any may send.
	ReachSignal
)

// Reach is a process of the sandbox that would get power over another one that
// goes beyond being its parent.
type Reach struct {
	Kind           ReachKind
	Caller, Target Party

	Signal unix.Signal // of ReachSignal
	Orders bool        // the target handles the signal, or is stopped by it or goes on; else it ends it
	Leads  bool        // it stops the target or has it go on, and the caller leads the target's session, as a shell does that of its jobs

	info   *unix.Siginfo // what goes with it; nil: nothing
	thread int           // of the caller's own process, if only that is meant
}

// Party is a process with what tells where it comes from.
type Party struct {
	Process
	Ancestors []Process // nearest first, without the sandbox's PID 1
	Mark      uint64    // as [SetMark] has put it
}

// reaches answers a call with which a process reaches for another.
//
// Between the answer and the attachment the target could end and its number
// be given to another process. A caller that is never allowed to attach to
// anything, as an agent that belongs to no action, gains nothing by that; one
// that is could meet a process of another action so.
func (g *Gate) reaches(n notification) {
	var r Reach
	var err error
	g.search(func() { r, err = g.readReach(n) })
	if !g.waits(n.ID) {
		err = errGone
	}
	switch errno, own := err.(unix.Errno); { //nolint:errorlint // wrapped ones are troubles of ours
	case errors.Is(err, errGone):
		g.answered(n.ID)
	case own && errno == unix.ESRCH:
		g.fail(n.ID, unix.ESRCH)
	case err != nil:
		g.o.Log(fmt.Sprintf("kept thread %d from another process: %v", n.TID, err))
		g.fail(n.ID, unix.EPERM)
	case g.owner(r):
		g.pass(n.ID)
	default:
		g.fail(n.ID, unix.EPERM)
	}
}

// owner asks the owner, who may take their time as long as the caller lives.
func (g *Gate) owner(r Reach) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fd, err := unix.PidfdOpen(r.Caller.PID, 0)
	if err != nil {
		return false
	}
	defer procDir(fd).close()
	n, err := g.watch.add(fd, false, cancel)
	if err != nil {
		return false
	}
	defer g.watch.remove(n)
	return g.o.Reach(ctx, r)
}

// search has something look at all processes: one at a time, as a thousand that signal
// each other would take every processor, and none while answers are held, as nothing
// comes of it then and a freeze has to be quick.
func (g *Gate) search(f func()) {
	g.turns.searches.Lock()
	defer g.turns.searches.Unlock()
	g.whenOpen(func() {})
	f()
}

// readReach finds out who reaches for whom.
func (g *Gate) readReach(n notification) (Reach, error) {
	r := Reach{Kind: ReachShare}
	thread, err := openProc(int(n.TID))
	if err != nil {
		return r, err
	}
	defer thread.close()
	if r.Caller, err = g.party(thread); err != nil || n.Nr != unix.SYS_PTRACE {
		return r, err
	}
	r.Kind = ReachTrace
	if n.Args[0] == unix.PTRACE_TRACEME {
		return g.readTraced(r, thread)
	}
	target, err := thread.neighbour(int32(n.Args[1]))
	if err != nil {
		return r, err
	}
	defer target.close()
	r.Target, err = g.party(target)
	return r, err
}

// readTraced is of a process that would be traced by its parent, which is that of the call as long as nobody becomes
// its parent by the death of that but the sandbox's PID 1.
func (g *Gate) readTraced(r Reach, thread procDir) (Reach, error) {
	s, err := thread.state()
	if err != nil {
		return r, err
	}
	parent, err := openProc(s.parent)
	if err != nil {
		return r, err
	}
	defer parent.close()
	r.Kind, r.Target = ReachTraced, r.Caller
	r.Caller, err = g.party(parent)
	return r, err
}

// party is the process of a thread.
func (g *Gate) party(thread procDir) (Party, error) {
	st, err := thread.status()
	if err != nil {
		return Party{}, err
	}
	process, err := openProc(st.tgid)
	if err != nil {
		return Party{}, err
	}
	defer process.close()
	mark := MarkOf(st.tgid) // before it is known to live still
	s, err := process.state()
	if err != nil {
		return Party{}, err
	}
	return Party{
		Process: Process{PID: st.tgid, Start: s.start, Name: s.name}, Ancestors: g.ancestors(st.tgid, s), Mark: mark,
	}, nil
}

// neighbour finds the process whose thread has a number in the thread's own
// pid namespace. No call tells such a number's meaning outside (before Linux
// 6.11), so every process of the host is looked at; few programs attach to others.
func (d procDir) neighbour(tid int32) (procDir, error) {
	group, err := d.groupOf(tid)
	if err != nil {
		return -1, err
	}
	found := procDir(-1)
	err = d.others(func(other procDir, st *status) (more bool) {
		if st.group != group {
			return true
		}
		found, err = openProc(st.tgid)
		return false
	})
	if err == nil && found < 0 {
		err = unix.ESRCH
	}
	return found, err
}

// others calls f for each process of the thread's own pid namespace, until that has enough. The folder is
// f's for the call.
func (d procDir) others(f func(other procDir, st *status) (more bool)) error {
	namespace, err := d.link("ns/pid")
	if err != nil {
		return err
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		other, err := openProc(pid)
		if err != nil {
			continue
		}
		more := true
		if its, err := other.link("ns/pid"); err == nil && its == namespace {
			if st, err := other.status(); err == nil {
				more = f(other, &st)
			}
		}
		other.close()
		if !more {
			break
		}
	}
	return nil
}

// groupOf is the process that a thread number of the thread's own pid
// namespace belongs to, in that namespace, as the thread's own /proc says.
func (d procDir) groupOf(tid int32) (int, error) {
	if tid <= 0 {
		return 0, unix.ESRCH
	}
	fd, err := d.open(fmt.Sprintf("root/proc/%d/status", tid), unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, unix.ENOENT) {
		return 0, unix.ESRCH
	}
	if err != nil {
		return 0, fmt.Errorf("cannot find the thread that it means: %w", err)
	}
	defer unix.Close(fd)
	var where unix.Statfs_t
	if err := unix.Fstatfs(fd, &where); err != nil || where.Type != unix.PROC_SUPER_MAGIC {
		return 0, errors.New("its /proc is none")
	}
	var b [4096]byte
	n, err := unix.Read(fd, b[:])
	if err != nil {
		return 0, fmt.Errorf("cannot find the thread that it means: %w", err)
	}
	st, err := parseStatus(b[:n])
	return st.group, err
}

// tracer tells whether a process of the sandbox traces an Exec's caller, and
// whether it may do so although the program can't be checked then. A held
// thread can't ask to be traced, and who attaches to it has to ask, so that
// the answer stays true.
func (g *Gate) tracer(e *Exec) (traced, may bool) {
	st, err := e.thread.status()
	if err != nil || st.tracer == 0 || g.exits.traces(e.PID) {
		return err != nil, false
	}
	thread, err := openProc(st.tracer)
	if err != nil {
		return true, false
	}
	defer thread.close()
	caller, err := g.party(thread)
	if err != nil {
		return true, false
	}
	if caller.PID == os.Getpid() {
		return false, false
	}
	target := Party{Process: Process{PID: e.PID, Start: e.Start}, Ancestors: e.Ancestors, Mark: e.Mark}
	return true, g.owner(Reach{Kind: ReachStart, Caller: caller, Target: target})
}
