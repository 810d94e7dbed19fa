package gate

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// errGone says that a caller went away while it was looked at.
var errGone = errors.New("the process is gone")

// Flags of execveat(2) that the unix package doesn't name.
const atExecveCheck = 0x10000 // 6.14: look whether it would work, run nothing

// handle decides what to do about one notification: most go to the Exec
// callback, others to the Reach callback, the rest are answered here.
func (g *Gate) handle(n notification) {
	switch n.Nr {
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
	case unix.SYS_PTRACE, unix.SYS_CLONE:
		g.reaches(n)
		return
	default:
		g.signal(n)
		return
	}
	g.first.filters.of(int(n.TID))
	if !g.room.enter(g.done) {
		return // the gate has failed the call
	}
	g.turns.readers <- struct{}{}
	e, err := g.readPatiently(n)
	<-g.turns.readers
	if err != nil {
		g.room.leave()
		g.answer(n, err)
		return
	}
	e.left = g.room.leave
	if g.repeats(e) {
		g.fail(n.ID, unix.EACCES)
		e.close()
		return
	}
	g.mu.Lock()
	if w := g.waiting[n.ID]; w != nil {
		w.exec = e
	}
	g.mu.Unlock()
	if g.resume(e) {
		return
	}
	if why := e.image.refusal(); why != "" {
		g.o.Log(fmt.Sprintf("refused an exec of process %d: %s", e.PID, why))
		if e.resolve() {
			g.deny(e, why)
		}
		return
	}
	e.show()
}

// answer ends a call that isn't shown. Errors that come bare are the caller's
// own; all others say why it can't be judged.
func (g *Gate) answer(n notification, err error) {
	errno, own := err.(unix.Errno) //nolint:errorlint // wrapped ones are troubles of ours
	switch {
	case errors.Is(err, errGone):
		g.answered(n.ID)
	case errors.Is(err, errCheckOnly):
		g.pass(n.ID)
	case own:
		g.fail(n.ID, errno)
	default:
		g.o.Log(fmt.Sprintf("refused an exec of thread %d: %v", n.TID, err))
		g.fail(n.ID, unix.EACCES)
	}
}

var errCheckOnly = errors.New("only asks whether a program could be run")

// pass lets a call happen that runs nothing. What it was judged by is in
// registers, out of the reach of other threads.
func (g *Gate) pass(id uint64) {
	if !g.begin() {
		return
	}
	defer g.finish()
	g.answered(id)
	_ = g.l.proceed(id)
}

// read finds out who wants to run what. Errors of type unix.Errno are the
// answer that the caller gets.
func (g *Gate) read(n notification) (*Exec, error) {
	e := &Exec{
		ID: n.ID, TID: int(n.TID), gate: g, thread: -1, leader: -1, pidfd: -1,
		place: place{from: -1, open: -1},
	}
	err := e.read(n)
	// Whatever was found by the thread's number belongs to the caller if that
	// still waits now.
	if !g.waits(n.ID) {
		err = errGone
	}
	if err != nil {
		var u unreadable
		if errors.As(err, &u) {
			_ = e.say(err.Error())
		}
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *Exec) read(n notification) (err error) {
	if e.thread, err = openProc(e.TID); err != nil {
		return err
	}
	e.leader = e.thread
	if err := e.readIDs(); err != nil {
		return err
	}
	if e.view, err = openView(e.thread); err != nil {
		return err
	}
	e.view.programs = &e.gate.programs
	args, err := e.readPlace(n)
	if err != nil {
		return err
	}
	// As in the kernel the file comes first: who looks along PATH fails here, many
	// times for each program that it finds.
	if e.image, err = e.view.resolve(e.place); err != nil {
		return err
	}
	if err := e.readArguments(args); err != nil {
		return err
	}
	e.readFiles()
	named := e.image.named()
	e.Program = Program{Path: named.path, Dev: named.stat.Dev, Ino: named.stat.Ino}
	if err := e.readProcess(); err != nil {
		return err
	}
	if err := e.pin(); err != nil {
		return err
	}
	return e.view.short
}

// readIDs finds the process that a thread belongs to.
func (e *Exec) readIDs() (err error) {
	// A pidfd of a thread that isn't its process's first can't be had this way.
	if e.pidfd, err = unix.PidfdOpen(e.TID, 0); err == nil {
		e.PID = e.TID
		return nil
	}
	e.pidfd = -1
	st, err := e.thread.status()
	if err != nil {
		return err
	}
	e.PID = st.tgid
	if e.leader, err = openProc(e.PID); err != nil {
		e.leader = e.thread
		return err
	}
	if e.pidfd, err = unix.PidfdOpen(e.PID, 0); err != nil {
		e.pidfd = -1
		return fmt.Errorf("cannot open the process %d: %w", e.PID, err)
	}
	return nil
}

// readPlace reads which file a call names, and returns its arguments from that on.
func (e *Exec) readPlace(n notification) (args []uint64, err error) {
	text := openMemory(e.TID)
	defer text.close()
	args = n.Args[:]
	flags, dirfd := uint32(0), int32(unix.AT_FDCWD)
	if n.Nr == unix.SYS_EXECVEAT {
		dirfd, flags = int32(n.Args[0]), uint32(n.Args[4])
		args = args[1:]
	}
	if e.Path, err = text.path(untag(args[0])); err != nil {
		return nil, err
	}
	if err := e.locate(dirfd, flags); err != nil {
		return nil, err
	}
	if flags&atExecveCheck != 0 {
		return nil, errCheckOnly
	}
	return args, nil
}

// readArguments reads what the program would be given.
func (e *Exec) readArguments(args []uint64) (err error) {
	text, pointers := openMemory(e.TID), openMemory(e.TID)
	defer text.close()
	defer pointers.close()
	if e.argv, err = text.words(untag(args[1]), maxStrings, keepArgv, pointers, true, nil); err != nil {
		return err
	}
	if e.env, err = text.words(untag(args[2]), maxStrings-e.argv.size, keepEnv, pointers, false, e.gate.o.Telling); err != nil {
		return err
	}
	e.Argv, e.Env = e.argv.list, e.env.list
	e.Truncated = e.argv.truncated || e.env.truncated
	e.Digest = e.digest()
	return nil
}

// locate works out which file a call names, as execveat(2) says.
func (e *Exec) locate(dirfd int32, flags uint32) error {
	if flags&^(unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW|atExecveCheck) != 0 {
		return unix.EINVAL
	}
	p := &e.place
	p.path, p.name, p.noFollow = e.Path, e.Path, flags&unix.AT_SYMLINK_NOFOLLOW != 0
	p.from = e.view.cwd
	switch {
	case e.Path == "" && flags&unix.AT_EMPTY_PATH == 0:
		return unix.ENOENT
	case dirfd == unix.AT_FDCWD && e.Path == "":
		return unix.EACCES // the working directory
	case dirfd == unix.AT_FDCWD || e.Path != "" && e.Path[0] == '/':
		return nil
	}
	fd, err := e.view.descriptor(dirfd)
	if err != nil {
		return err
	}
	p.name = fmt.Sprintf("/dev/fd/%d", dirfd)
	if e.Path == "" {
		p.open = fd
		return nil
	}
	p.name += "/" + e.Path
	p.from = fd
	return nil
}

// readProcess reads what else is worth knowing of the caller.
func (e *Exec) readProcess() error {
	// Before it is known to live still: then the number was the process's own.
	e.Mark = MarkOf(e.PID)
	s, err := e.leader.state()
	if err != nil {
		return err
	}
	e.Parent, e.PGID, e.Start = s.parent, s.pgid, s.start
	e.newborn = s.flags&forkedOnly != 0
	// The very folder that is compared later: another thread may change it at
	// any moment.
	if e.Cwd, err = procDir(e.view.cwd).self(); err != nil {
		return err
	}
	if err := e.view.stands(); err != nil {
		return fmt.Errorf("cannot run anything in %q: %w", e.Cwd, err)
	}
	e.input = e.gate.input(e.thread, s.tty)
	e.Open, e.Own = e.input.open, e.input.own
	e.Given = e.Open && !e.Own || e.input.file || e.input.tty != 0
	e.Writes = slices.Compact(slices.DeleteFunc([]string{e.input.toOut, e.input.toErr}, func(to string) bool { return to == "" }))
	if e.input.mode == unix.S_IFIFO {
		e.Stdin = e.input.ino
	}
	e.Stdout = e.thread.pipe("1")
	e.Ancestors = e.gate.ancestors(e.PID, s)
	return nil
}

// Terminals by their major device numbers (Documentation/admin-guide/devices.txt).
const (
	majorTTY     = 4
	majorTTYAux  = 5
	majorPTYs    = 136 // the first of the eight of Unix98 pseudo terminals
	majorPTYsEnd = 143
)

func isTerminal(device uint64) bool {
	m := unix.Major(device)
	return m == majorTTY || m == majorTTYAux || m >= majorPTYs && m <= majorPTYsEnd
}
