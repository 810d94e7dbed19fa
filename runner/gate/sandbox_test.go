package gate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

const patience = 2 * time.Minute // for what should happen at once, also under emulation and load

func init() {
	roles["first"] = playFirst
}

const (
	skipEnv    = "STEPBOX_GATE_TEST_SKIP"    // the guard to leave out, or "bounds", or "native": no filter at all
	prepareEnv = "STEPBOX_GATE_TEST_PREPARE" // what to do before the filter is on
)

// playFirst is PID 1 of a sandbox: it installs the filter on one thread, hands
// the listener out on descriptor 3, runs the program from that thread, and
// ends as it did.
func playFirst(args []string) {
	// A job in a script's background ignores these, and so would all that it starts.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGQUIT)
	if unix.Getpid() == 1 {
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			die("mount proc", err)
		}
	}
	if f := prepare[os.Getenv(prepareEnv)]; f != nil {
		dir, err := os.Getwd()
		if err == nil {
			err = f(dir)
		}
		if err != nil {
			die("prepare", err)
		}
	}
	skip := os.Getenv(skipEnv)
	for _, v := range []string{roleEnv, skipEnv, prepareEnv} {
		os.Unsetenv(v)
	}
	if role := os.Getenv("AGENT_ROLE"); role != "" {
		os.Unsetenv("AGENT_ROLE")
		os.Setenv(roleEnv, role)
	}
	runtime.LockOSThread()
	if skip != "native" {
		list := slices.DeleteFunc(guards(), func(g guard) bool { return g.name == skip })
		fd, err := install(assemble(list, skip != "bounds"))
		if err != nil {
			die("install", err)
		}
		if err := unix.Sendmsg(3, []byte{1}, unix.UnixRights(fd), nil, 0); err != nil {
			die("send", err)
		}
		unix.Close(fd)
	}
	var b [1]byte
	if _, err := unix.Read(3, b[:]); err != nil { // the gate is up
		die("wait", err)
	}
	unix.Close(3)
	path, err := exec.LookPath(args[0])
	if err != nil {
		die("look", err)
	}
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		fmt.Fprintf(os.Stderr, "first: %v\n", err)
		os.Exit(126)
	}
	for {
		var status unix.WaitStatus
		p, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			die("wait", err)
		}
		if p == pid {
			if status.Signaled() {
				os.Exit(128 + int(status.Signal()))
			}
			os.Exit(status.ExitStatus())
		}
	}
}

func die(what string, err error) {
	fmt.Fprintf(os.Stderr, "first: %s: %v\n", what, err)
	os.Exit(98)
}

// box is a sandbox under test: a process in its own user, pid and mount
// namespace with the filter on it.
type box struct {
	t    testing.TB
	cmd  *exec.Cmd
	gate *Gate
	out  bytes.Buffer
	err  bytes.Buffer
	dir  string // its working directory

	mu     sync.Mutex
	execs  []*Exec  // guarded by mu
	exits  []Exit   // guarded by mu
	failed []string // guarded by mu
	logs   []string // guarded by mu
}

// setup says how a sandbox differs from the usual.
type setup struct {
	args    []string
	role    string // run the test binary in that part
	skip    string // what the filter leaves out
	env     []string
	decide  func(*Exec) // nil: allow
	options Options     // callbacks in it come after the box's own
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	dir     string
	attr    func(*syscall.SysProcAttr)
	quiet   bool // keep no account
	// elsewhere hands the listener to who answers in place of a gate of ours.
	elsewhere func(listener *os.File)
}

// start brings a sandbox up. It is gone when the test ends.
func start(t testing.TB, s setup) *box {
	t.Helper()
	b := &box{t: t, dir: s.dir}
	if b.dir == "" {
		b.dir = t.TempDir()
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	ours, theirs := pair[0], os.NewFile(uintptr(pair[1]), "theirs")
	if s.role != "" {
		s.args = append([]string{"/proc/self/exe"}, s.args...)
		exe, err := os.Executable()
		must.OK(t, err)
		s.args[0] = exe
		s.env = append(s.env, "AGENT_ROLE="+s.role)
	}
	b.cmd = exec.Command("/proc/self/exe", s.args...)
	b.cmd.Dir = b.dir
	b.cmd.Env = append(append(os.Environ(), roleEnv+"=first", skipEnv+"="+s.skip, "GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"), s.env...)
	b.cmd.ExtraFiles = []*os.File{theirs}
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.err
	if s.stdin != nil {
		b.cmd.Stdin = s.stdin
	}
	if s.stdout != nil {
		b.cmd.Stdout = s.stdout
	}
	if s.stderr != nil {
		b.cmd.Stderr = s.stderr
	}
	attr := &syscall.SysProcAttr{Setpgid: true}
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	if s.attr != nil {
		s.attr(attr)
	}
	b.cmd.SysProcAttr = attr
	must.OK(t, b.cmd.Start())
	theirs.Close()
	t.Cleanup(func() {
		b.cmd.Process.Kill()
		b.cmd.Wait()
		if b.gate != nil {
			b.gate.Close()
		}
		unix.Close(ours)
		if t.Failed() {
			b.mu.Lock()
			defer b.mu.Unlock()
			t.Logf("stdout: %s\nstderr: %s\nfailed: %q\nlogs: %q\nexits: %v", &b.out, &b.err, b.failed, b.logs, b.exits)
			for _, e := range b.execs {
				t.Logf("exec %d of %d: %q %q", e.ID, e.PID, e.Path, cut(e.Argv))
			}
		}
	})
	switch {
	case s.skip == "native":
	case s.elsewhere != nil:
		s.elsewhere(receiveListener(t, ours))
	default:
		file := receiveListener(t, ours)
		o := s.options
		inner := o
		o.Exec = func(e *Exec) {
			if !s.quiet {
				b.mu.Lock()
				b.execs = append(b.execs, e)
				b.mu.Unlock()
			}
			if s.decide != nil {
				s.decide(e)
			} else {
				e.Allow()
			}
		}
		o.Exit = func(x Exit) {
			if !s.quiet {
				b.mu.Lock()
				b.exits = append(b.exits, x)
				b.mu.Unlock()
			}
			if inner.Exit != nil {
				inner.Exit(x)
			}
		}
		o.Failed = func(e *Exec, why string) {
			b.mu.Lock()
			b.failed = append(b.failed, why)
			b.mu.Unlock()
			if inner.Failed != nil {
				inner.Failed(e, why)
			}
		}
		o.Log = func(s string) {
			b.mu.Lock()
			b.logs = append(b.logs, s)
			b.mu.Unlock()
		}
		if b.gate, err = New(file, o); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := unix.Write(ours, []byte{1}); err != nil {
		t.Fatal(err)
	}
	return b
}

func cut(argv []string) []string {
	var l []string
	for _, a := range argv[:min(8, len(argv))] {
		l = append(l, a[:min(80, len(a))])
	}
	return l
}

func receiveListener(t testing.TB, fd int) *os.File {
	t.Helper()
	tv := unix.NsecToTimeval(patience.Nanoseconds())
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	data, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(fd, data, oob, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) {
		_, n, _, _, err = unix.Recvmsg(fd, data, oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		t.Fatalf("no listener: %v", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		t.Fatalf("no listener from the sandbox: %v %d", err, len(messages))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	must.OK(t, err)
	return os.NewFile(uintptr(fds[0]), "listener")
}

// wait waits for the sandbox's end and returns its exit code.
func (b *box) wait() int {
	b.t.Helper()
	limit := patience
	if _, bench := b.t.(*testing.B); bench {
		limit = 10 * time.Minute
	}
	timer := time.AfterFunc(limit, func() { b.cmd.Process.Kill() })
	defer timer.Stop()
	b.cmd.Wait()
	if b.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		b.t.Fatalf("the sandbox was killed: %v", b.cmd.ProcessState)
	}
	return b.cmd.ProcessState.ExitCode()
}

// eventually waits for a condition that the kernel brings about.
func (b *box) eventually(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			b.t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (b *box) seen() []*Exec {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.execs)
}

func (b *box) ended() []Exit {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.exits)
}

func (b *box) failures() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.failed)
}

// oneFailure waits until the gate has told of the one failure that there is: it
// does so after the program was turned away, which may have ended by then.
func (b *box) oneFailure() {
	b.t.Helper()
	b.eventually("a failure is told", func() bool { return len(b.failures()) > 0 })
	if f := b.failures(); len(f) != 1 {
		b.t.Errorf("failures: %q", f)
	}
}

func (b *box) logged() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.logs)
}

// find is the first exec that was shown of a program by its base name.
func (b *box) find(name string) *Exec {
	for _, e := range b.seen() {
		if filepath.Base(e.Path) == name || strings.HasSuffix(e.Path, name) {
			return e
		}
	}
	return nil
}

// exitOf waits for the exit of an exec's process.
func (b *box) exitOf(e *Exec) Exit {
	b.t.Helper()
	var found Exit
	b.eventually("the exit of "+e.Path, func() bool {
		for _, x := range b.ended() {
			if x.PID == e.PID && x.Start == e.Start {
				found = x
				return true
			}
		}
		return false
	})
	return found
}
