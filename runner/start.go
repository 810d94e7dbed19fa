package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/egress"
	"stepbox/runner/holder"
	"stepbox/runner/pid1"
	"stepbox/runner/seqpacket"
)

// Start makes a sandbox and starts its agent, whose own first exec is held at
// the gate and comes to h.Gate.Exec like any other. A failed start leaves
// nothing behind but what StateDir holds.
//
// A start takes as long as it takes on a busy machine; every step of it ends
// when the process that it waits for does, and all of them when ctx does.
func Start(ctx context.Context, spec Spec, h Handlers) (*Sandbox, error) {
	return Prepare(ctx, spec).Start(ctx, spec, h)
}

// Prepared is what a sandbox needs whatever is in it: its folders, its cgroups
// and a holder, which are made in the background. One of Start and Abandon has
// to follow.
type Prepared struct {
	sandbox *Sandbox
	undo    cleanup
	guarded func() error  // waits for the holder to be up and to know what goes with the sandbox
	done    chan struct{} // closed once all is made, or err is set
	err     error
}

// Prepare begins to make a sandbox of which only ID, StateDir, RunDir, Workspace
// and Limits are known yet, so that the rest can be found out meanwhile.
func Prepare(ctx context.Context, spec Spec) *Prepared {
	p := &Prepared{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = p.make(ctx, spec)
	}()
	return p
}

// OpenUpper is Sandbox.OpenUpper, for before the sandbox is there.
func (p *Prepared) OpenUpper(ctx context.Context, rel string) (*os.File, error) {
	if err := p.holding(); err != nil {
		return nil, err
	}
	return p.sandbox.OpenUpper(ctx, rel)
}

// OpenLower is Sandbox.OpenLower, for before the sandbox is there.
func (p *Prepared) OpenLower(ctx context.Context, rel string) (*os.File, error) {
	if err := p.holding(); err != nil {
		return nil, err
	}
	return p.sandbox.OpenLower(ctx, rel)
}

// holding waits for the holder to be up.
func (p *Prepared) holding() error {
	if <-p.done; p.err != nil {
		return p.err
	}
	return p.guarded()
}

// Wait waits until the folders are there.
func (p *Prepared) Wait() error {
	<-p.done
	return p.err
}

// Abandon undoes what was made, and waits for it, unless a sandbox was started.
func (p *Prepared) Abandon() {
	<-p.done
	p.undo.run()
}

func (p *Prepared) make(ctx context.Context, spec Spec) error {
	if !validID(spec.ID) {
		return fmt.Errorf("cannot use %q as a sandbox's name", spec.ID)
	}
	s := &Sandbox{
		spec:    spec,
		state:   spec.StateDir,
		dir:     filepath.Join(spec.RunDir, spec.ID),
		adopted: make(chan struct{}),
		left:    make(chan struct{}),
		exit:    make(chan struct{}),
		ended:   make(chan struct{}),
	}
	p.sandbox = s
	lock, err := s.makeFolders()
	if err != nil {
		return err
	}
	s.lock = lock
	p.undo.add(func() { s.removeFolders() })
	command, err := Command("holder")
	if err != nil {
		return err
	}
	if s.cgroups, err = box.MakeCgroups(ctx, spec.ID, spec.Limits, s.noteCgroups); err != nil {
		return err
	}
	p.undo.add(func() { removeCgroups(s.cgroups) })
	s.heir = s.cgroups.Heir()
	p.undo.add(s.heir.Dismiss)
	if s.holder, err = holder.Start(command, lock, s.heir.Alive); err != nil {
		return explain(err)
	}
	p.undo.add(func() { s.holder.Close() })
	// The holder comes up while the box is made, which needs no more of it than
	// its namespaces until there is a first process to guard.
	ready := make(chan error, 1)
	go func() {
		err := s.holder.Ready(ctx)
		if err == nil {
			err = s.setGuard(ctx, 0)
		}
		ready <- err
	}()
	p.guarded = sync.OnceValue(func() error { return <-ready })
	p.undo.add(func() { _ = p.guarded() })
	return nil
}

// Start is the package's Start with what is prepared; spec repeats what Prepare
// was told.
func (p *Prepared) Start(ctx context.Context, spec Spec, h Handlers) (*Sandbox, error) {
	defer p.Abandon()
	if err := spec.prepare(); err != nil {
		return nil, err
	}
	if err := CheckWorkspace(spec.Workspace, spec.StateDir, spec.RunDir); err != nil {
		return nil, err
	}
	if <-p.done; p.err != nil {
		return nil, p.err
	}
	s, undo, guarded := p.sandbox, &p.undo, p.guarded
	s.spec = spec
	sockets, err := h.sockets()
	if err != nil {
		return nil, err
	}
	link := s.beginLink(ctx, h)
	undo.add(func() { link.abandon() })
	if err := s.makeBox(ctx, sockets, guarded, undo); err != nil {
		if failure := guarded(); failure != nil {
			err = explain(failure) // which is why the box failed
		}
		return nil, err
	}
	if err := s.connect(ctx, h, sockets, link, undo); err != nil {
		return nil, err
	}
	if err := s.holdMounts(ctx, undo); err != nil {
		return nil, err
	}
	undo.keep()
	go s.watch()
	go s.watchHolder()
	go s.watchMounts()
	return s, nil
}

// makeFolders makes the run-time folder and locks it (who gets the lock knows
// that neither supervisor nor holder lives), and then the session's, which may be
// below it.
func (s *Sandbox) makeFolders() (*os.File, error) {
	err := os.MkdirAll(s.spec.RunDir, 0o700)
	var lock *os.File
	if err == nil {
		if lock, err = makeLocked(s.dir); err != nil {
			return nil, err
		}
		err = s.removeWork() // of one that was killed: the kernel wants it as it left it, or new
	}
	for _, dir := range []string{s.state, s.work(), s.temp()} {
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
	}
	if err == nil {
		err = os.Chmod(s.temp(), 0o777|os.ModeSticky)
	}
	if err != nil {
		if lock != nil {
			_ = holder.RemoveAll(s.dir)
			lock.Close()
		}
		return nil, fmt.Errorf("cannot make the session's folders: %w", err)
	}
	return lock, nil
}

// work is overlayfs's own folder, of no use once the sandbox is gone.
func (s *Sandbox) work() string { return filepath.Join(s.state, "work") }

// outer is a folder of the overlay beyond the project.
func (s *Sandbox) outer(name string) string { return filepath.Join(s.state, "outer", name) }

// homeWork is the work folder of the home's overlay.
func (s *Sandbox) homeWork() string { return filepath.Join(s.state, "home", "work") }

func (s *Sandbox) removeWork() error {
	return errors.Join(holder.RemoveAll(s.homeWork()), holder.RemoveAll(s.work()), holder.RemoveAll(s.outer("work")))
}

// folders are those that go with the sandbox, in that order: once its run-time
// folder is gone, the next sandbox of the session may make all of them anew.
func (s *Sandbox) folders() []string { return []string{s.work(), s.outer("work"), s.homeWork(), s.dir} }

// temp is /tmp inside.
func (s *Sandbox) temp() string { return filepath.Join(s.state, "tmp") }

func (s *Sandbox) removeFolders() {
	for _, dir := range s.folders() {
		_ = holder.RemoveAll(dir)
	}
	s.lock.Close()
}

func removeCgroups(c *box.Cgroups) {
	ctx, cancel := context.WithTimeout(context.Background(), holder.CloseTimeout)
	defer cancel()
	_ = c.Guard().Clean(ctx, -1)
}

// setGuard tells the holder, and a later Sweep, what has to go with the
// sandbox; pid is PID 1's, 0 while there is none.
func (s *Sandbox) setGuard(ctx context.Context, pid int) error {
	guard := s.cgroups.Guard()
	guard.Dirs = s.folders()
	var pidfd *os.File
	if pid != 0 {
		var err error
		if pidfd, err = box.PidFD(pid); err != nil {
			return err
		}
		defer pidfd.Close()
		status, err := box.ReadStatus(pid)
		if err != nil {
			return err
		}
		guard.PID, guard.Start = pid, status.Start
	}
	s.guard = guard
	if err := writeGuard(s.dir, guard); err != nil {
		return err
	}
	return s.holder.SetGuard(ctx, guard, pidfd)
}

// noteCgroups tells a later Sweep what there may be, before there is any of it.
func (s *Sandbox) noteCgroups(planned holder.Guard) error {
	planned.Dirs = s.folders()
	return writeGuard(s.dir, planned)
}

// makeBox makes the sandbox up to a PID 1 that waits to be told what to start.
func (s *Sandbox) makeBox(ctx context.Context, sockets []string, guarded func() error, undo *cleanup) error {
	control, theirs, err := seqpacket.Pair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	s.control = control
	undo.add(func() { control.Close() })
	if s.most, err = leftTasks(s.spec.Limits.Pids, s.holder.PID); err != nil {
		return err
	}
	if err := sendProgram(control, s.program(sockets), s.heir.Alive); err != nil {
		return err
	}
	var outer *box.Outer
	if s.spec.Outer != "" {
		if err := os.MkdirAll(s.outer("work"), 0o700); err != nil {
			return fmt.Errorf("cannot make the session's folders: %w", err)
		}
		outer = &box.Outer{Folder: s.spec.Outer, Upper: s.outer("upper"), Work: s.outer("work"), Lower: s.spec.OuterLower}
	}
	binds, err := s.withSelf()
	if err != nil {
		return err
	}
	files := map[string][]byte{"resolv.conf": []byte("nameserver " + egress.Nameserver + "\noptions timeout:10 attempts:2\n")}
	maps.Copy(files, s.spec.Etc)
	if s.spec.HomeUpper != "" {
		if err := os.MkdirAll(s.homeWork(), 0o700); err != nil {
			return fmt.Errorf("cannot make the session's folders: %w", err)
		}
	}
	var joining chan error // holds the result once the first process joined its cgroups
	s.box, err = box.Start(ctx, box.Spec{
		ID: s.spec.ID, Dir: s.dir, Holder: s.holder.PID, Root: os.Geteuid() == 0,
		Workspace: s.spec.Workspace, Upper: s.Upper(), Work: s.work(),
		Temp: s.temp(), Home: s.spec.Home, HomeTo: s.spec.HomeTarget,
		HomeUpper: s.spec.HomeUpper, HomeWork: s.homeWork(), HomeAbove: s.spec.HomeAbove,
		Binds: binds, Hidden: s.spec.Hidden, ReadOnly: s.spec.ReadOnly, Above: s.spec.Above, Outer: outer, Files: files,
		Shared: s.spec.Limits.Memory, Cols: s.spec.Cols, Rows: s.spec.Rows, Control: theirs,
		Layers: func(empty string, folders []string) ([]string, error) {
			return s.holder.ProbeLayers(ctx, empty, folders)
		},
		Created: func(pid int) error {
			joining = make(chan error, 1)
			go func() { joining <- s.cgroups.Join(pid) }()
			if err := guarded(); err != nil {
				return err
			}
			return s.setGuard(ctx, pid)
		},
	})
	if joining != nil {
		// PID 1 runs nothing before it is told to. One that has ended by now says
		// why it couldn't start the agent.
		if failure := <-joining; err == nil && failure != nil && !errors.Is(failure, unix.ESRCH) {
			s.box.Kill()
			s.box.Release()
			s.box.Terminal.Close()
			return failure
		}
	}
	if err != nil {
		return err
	}
	s.box.Notes = append(s.box.Notes, s.weaker(ctx)...)
	undo.add(func() {
		s.box.Kill()
		s.thawForGood()
		s.box.Release()
		s.box.Terminal.Close()
	})
	return nil
}

// program is what PID 1 starts.
func (s *Sandbox) program(sockets []string) pid1.Program {
	out := pid1.Program{Argv: s.spec.Argv, Env: s.spec.Env, Cwd: s.spec.Cwd, Rlimits: s.rlimits(), Sockets: sockets, Common: s.common()}
	for _, own := range []string{s.spec.Workspace, s.spec.Outer} {
		if own != "" && !strings.HasPrefix(out.Common+"/", own+"/") {
			out.Own = append(out.Own, own)
		}
	}
	return out
}

// weaker is what protects less than usual here, in words.
func (s *Sandbox) weaker(ctx context.Context) (notes []string) {
	if s.eachItsMemory() {
		notes = append(notes, s.boundShared(ctx))
	}
	if !pid1.MemoryGuard() {
		notes = append(notes, memoryOpen)
	}
	if s.spec.Home != "" && s.spec.HomeUpper == "" && s.common() == "" {
		notes = append(notes, homeMeets)
	}
	if !box.HasCgroups() {
		notes = append(notes, noCgroups)
	}
	if s.most != 0 {
		notes = append(notes, fmt.Sprintf("your own limit (ulimit -u) leaves the sandbox %d processes and threads, fewer than --pids allows", s.most))
	}
	return notes
}

// common is the home where other sandboxes have it too, "" where none can. Below /tmp it can't be told from that.
func (s *Sandbox) common() string {
	temporary := strings.HasPrefix(s.spec.HomeTarget, "/tmp/") || strings.HasPrefix(s.spec.HomeTarget, "/var/tmp/") // the same there
	if s.spec.Home == "" || s.spec.HomeUpper != "" || temporary {
		return ""
	}
	return s.spec.HomeTarget
}

// homeMeets says what stays open in a home below /tmp.
const homeMeets = "the home is below /tmp: the agents of sessions that share it can hand each other open files (--home session keeps them apart)"

// holdMounts has the folders above mounts stay where they are, and looks that all is where it belongs. PID 1 is the
// sandbox's own by then, so that its mounts may be looked into, and nothing hostile runs.
func (s *Sandbox) holdMounts(ctx context.Context, undo *cleanup) (err error) {
	if err = s.holder.Anchor(ctx, s.box.Placed.Above); err != nil {
		return err
	}
	if s.mounts, err = s.box.WatchMounts(); err != nil {
		return err
	}
	undo.add(s.mounts.Close)
	// Its own /proc is kept: it is a mount as any, and gone from there when the run-time folder is removed.
	if s.proc, err = os.Open(fmt.Sprintf("/proc/%d/root/proc", s.box.PID)); err != nil {
		return fmt.Errorf("cannot count the sandbox's processes: %w", err)
	}
	undo.add(func() { s.proc.Close() })
	if err = s.mounts.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrMounts, err)
	}
	return nil
}

// rlimits stand in for cgroups that couldn't be had, on the agent and what it
// starts alone. Memory is each process's own data, so weaker; processes are
// counted per user namespace since Linux 5.14, and root is exempt.
func (s *Sandbox) rlimits() []pid1.Rlimit {
	var list []pid1.Rlimit
	if s.eachItsMemory() {
		list = append(list, pid1.Rlimit{Resource: unix.RLIMIT_DATA, Value: uint64(cmp.Or(s.spec.Limits.Reserve, s.spec.Limits.Memory))})
	}
	most := s.most
	if most == 0 && s.cgroups.InForce.Pids == 0 {
		most = s.spec.Limits.Pids
	}
	if most > 0 {
		list = append(list, pid1.Rlimit{Resource: unix.RLIMIT_NPROC, Value: uint64(most)})
	}
	return list
}

// boundShared bounds what no rlimit counts, as far as the kernel does it, and says what
// isn't bounded.
func (s *Sandbox) boundShared(ctx context.Context) string {
	const said = "without cgroups memory is bounded for each program by itself; /dev/shm%s may have as much again, and so may other shared memory (memfd%s), which is looked at once a second. Caches of files, pipes and sockets aren't counted"
	if s.segments = s.holder.BoundIPC(ctx, s.spec.Limits.Memory) != nil; s.segments {
		return fmt.Sprintf(said, "", ", System V")
	}
	return fmt.Sprintf(said, " and System V's", "")
}

const (
	// tasksKept are for the supervisor to grow by, and for who looks at the session: at
	// least so many, and a quarter of what the user's other programs leave now, since
	// these grow too.
	tasksKept = 64
	// tasksLeast is what the agent gets however little is left.
	tasksLeast = 24
	// tasksNear is how much above the agent's bound a user's limit isn't near it.
	tasksNear = 1 << 14
)

// leftTasks is how many processes and threads the user's own limit leaves for the
// agent, of those that it wants (0: any number), with the sandbox's holder; 0 if that
// is enough. The kernel counts the agent's among the user's, so that one that took
// all would leave the supervisor none.
func leftTasks(want int64, holder int) (int64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit)
	bound := min(limit.Cur, limit.Max)
	switch {
	case err != nil || os.Geteuid() == 0, bound == unix.RLIM_INFINITY:
		return 0, nil
	case want > 0 && bound > uint64(want+tasksNear):
		return 0, nil
	}
	used, err := box.CountTasks(os.Getuid(), holder)
	if err != nil {
		return 0, err
	}
	free := int64(bound) - used
	left := max(free-max(tasksKept, free/4), tasksLeast)
	if want > 0 && left >= want {
		left = 0
	}
	return left, nil
}

// sendProgram says what to start in a file, since arguments and environment may
// be larger than a message; it is queued before PID 1 exists.
func sendProgram(control *seqpacket.Conn, program pid1.Program, alive *os.File) error {
	encoded, err := json.Marshal(program)
	if err != nil {
		return err
	}
	if len(encoded) > pid1.ProgramLimit {
		return &StartError{Reason: "the program's arguments and environment are too large"}
	}
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("cannot make a memfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), "program")
	defer file.Close()
	if _, err := file.Write(encoded); err != nil {
		return fmt.Errorf("cannot say what to start: %w", err)
	}
	message, err := json.Marshal(pid1.Message{Kind: pid1.Start})
	if err != nil {
		return err
	}
	if alive == nil {
		return control.Send(message, file)
	}
	return control.Send(message, file, alive)
}

// connect takes the gate's listener from PID 1, brings gate and gateway up, and
// lets the agent start.
func (s *Sandbox) connect(ctx context.Context, h Handlers, sockets []string, link *pendingLink, undo *cleanup) error {
	interrupt := context.AfterFunc(ctx, func() { _ = s.control.SetReadDeadline(time.Unix(1, 0)) })
	m, files, err := s.receive(1 + len(sockets))
	if !interrupt() {
		closeFiles(files)
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	if m.Kind != pid1.Ready || len(files) != 1 && len(files) != 1+len(sockets) {
		closeFiles(files)
		if m.Kind == pid1.Failed {
			return &StartError{Reason: m.Error, Code: m.Code}
		}
		return errors.New("cannot start the agent: PID 1 sent no listener")
	}
	undo.add(s.closeSockets)
	if err := s.serveSockets(files[1:], &h, sockets); err != nil {
		files[0].Close()
		return err
	}
	files = files[:1]
	// Not to be read before: until its exec PID 1 belongs to libcontainer, whose
	// first process is out of an ordinary user's reach.
	if s.namespace, err = box.PIDNamespace(s.box.PID); err != nil {
		closeFiles(files)
		return fmt.Errorf("cannot recognise the sandbox's processes: %w", err)
	}
	// Whoever lets an overlay go last waits until its whole filesystem is on the
	// disk. That shouldn't be PID 1, whose end is waited for.
	if s.view, err = s.holder.View(ctx, s.spec.Workspace); err != nil {
		closeFiles(files)
		return err
	}
	undo.add(func() { s.view.Close() })
	if s.spec.Outer != "" {
		if s.beyond, err = s.holder.View(ctx, s.spec.Outer); err != nil {
			closeFiles(files)
			return err
		}
		undo.add(func() { s.beyond.Close() })
	}
	if err := s.openGate(files[0], h.Gate); err != nil {
		return err
	}
	undo.add(func() {
		s.gate.Close()
		s.tasks.Wait()
	})
	if err := s.openGateway(ctx, h, link); err != nil {
		return err
	}
	if s.gateway != nil {
		undo.add(func() { s.gateway.Close() })
	}
	return s.say(pid1.Go)
}

func (s *Sandbox) say(kind pid1.Kind) error {
	message, err := json.Marshal(pid1.Message{Kind: kind})
	if err != nil {
		return err
	}
	return s.control.Send(message)
}

func (s *Sandbox) receive(maxFiles int) (pid1.Message, []*os.File, error) {
	buffer := make([]byte, pid1.MessageLimit)
	n, files, err := s.control.Receive(buffer, maxFiles)
	if err != nil {
		return pid1.Message{}, nil, fmt.Errorf("cannot hear from PID 1: %w", err)
	}
	m, err := pid1.Parse(buffer[:n])
	if err != nil {
		closeFiles(files)
		return pid1.Message{}, nil, err
	}
	return m, files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
