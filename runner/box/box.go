// Package box makes one sandbox with libcontainer, of which it is the only
// importer: a root filesystem of read-only pieces of the host's, the project as
// an overlay at its own path, a PID 1 without capabilities, and the cgroups
// around it.
//
// A box joins the user and network namespaces of a holder (see package holder)
// by path and makes mount, pid, ipc, uts and cgroup namespaces of its own. The
// caller's uid and gid are 0 inside, and nothing else is mapped: no helper
// binary is needed, and it works the same for an ordinary user and for root.
//
// Start runs in the supervisor; libcontainer re-executes this program with the
// argument "init" (see Init). A Box may be used from several goroutines.
// Nothing that lives in the sandbox is trusted; the specification is.
package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"stepbox/runner/seqpacket"
)

// Spec says what a box looks like. Paths are absolute and clean; host paths
// have no symbolic links in them.
type Spec struct {
	ID     string // [a-z0-9-]; also the host name is built from it
	Dir    string // an existing folder for what lives as long as the box
	Holder int    // pid whose user and network namespaces are joined
	Root   bool   // the caller's uid is 0: what only root may read is hidden

	Workspace string   // host path of the project, mounted at the same path
	Upper     string   // the overlay's upper folder; kept
	Work      string   // the overlay's work folder, on the same filesystem
	Temp      string   // what /tmp is; kept
	Home      string   // host folder mounted read-write at HomeTarget; "" for none
	HomeTo    string   // where Home is mounted, and what the home directory is
	HomeUpper string   // takes what is written to Home, as an overlay's upper folder; kept; "" to write to Home itself
	HomeWork  string   // that overlay's work folder
	HomeAbove []string // host folders whose files stand in front of Home's there, topmost first
	Binds     []Bind   // read-only
	Hidden    []string // paths below Workspace, relative, that don't exist inside
	ReadOnly  []string // paths below Workspace, relative, that can't be changed
	Above     []string // host folders whose files stand in front of Workspace's, topmost first
	Outer     *Outer   // nil for none
	Files     map[string][]byte

	Shared int64 // most bytes in /dev/shm; 0: 1 GiB, which it has at most

	Cols, Rows int // of the terminal

	Control *os.File // PID 1's end of its control socket; the caller's
	// Layers says, for each folder, why the kernel doesn't take it as a layer of
	// a read-only overlay behind an empty folder; "" where it does.
	Layers func(empty string, folders []string) (refused []string, err error)
	// Created is called once the first process exists and has its cgroups to
	// join, before it runs anything of the sandbox.
	Created func(pid int) error
}

// Outer is a folder beyond the project that is an overlay too, at its own path: the
// repository of a project that is a linked working tree, a submodule or a part of one.
type Outer struct {
	Folder string // host path
	Upper  string // the overlay's upper folder; kept
	Work   string // its work folder
	Lower  string // the host folder whose files are shown there
}

// Bind is a host file or folder to show, which nothing inside can change.
type Bind struct {
	Source string // host path
	Target string // path inside; "" for the same
	// Upper takes what is written to a Source that is a folder, and that stays as it
	// is; "" for nothing. The overlay's work folder is made beside it. Where no
	// overlay can be put over Source, it can't be written.
	Upper string
	Spare bool // not shown at all then
}

// Limits bound what the agent may use; zero means no bound.
type Limits struct {
	Memory int64   // bytes
	CPUs   float64 // processors' worth of time
	Pids   int64   // processes and threads

	// Reserve is what each process may reserve where no cgroup bounds Memory, in bytes; 0: Memory.
	Reserve int64
}

// MaxTerminals is how many pseudo-terminals there may be in a box, the agent's own
// among them: all that the machine has are shared by everyone on it.
const MaxTerminals = 256

// Box is a running sandbox's first process and its terminal.
type Box struct {
	PID      int      // of PID 1, on the host
	Terminal *os.File // the master, non-blocking; the caller's to close
	Notes    []string // protections that are weaker than usual, in words
	Placed   Placed

	process *libcontainer.Process
	pidfd   int
	done    chan struct{} // closed once PID 1 was reaped
	killMu  sync.Mutex    // held while pidfd is used or closed
}

// Init is libcontainer's entry into a new sandbox. It never returns.
func Init() { libcontainer.Init() }

// quiet keeps libcontainer's log off the supervisor's standard error: what
// matters in it comes back as errors.
var quiet = sync.OnceFunc(func() { logrus.SetOutput(io.Discard) })

// Start makes the sandbox and runs PID 1 in it, which then waits for the
// supervisor's word. A failure leaves nothing but files below Dir behind.
func Start(ctx context.Context, spec Spec) (*Box, error) {
	quiet()
	self, err := Self()
	if err != nil {
		return nil, err
	}
	config, plan, err := configure(spec)
	if err != nil {
		return nil, err
	}
	b := &Box{Notes: plan.notes, Placed: plan.placed, pidfd: -1, done: make(chan struct{})}
	var created atomic.Int64 // pid of the first process
	config.Hooks = configs.Hooks{
		configs.CreateRuntime: configs.HookList{configs.NewFunctionHook(func(state *specs.State) error {
			created.Store(int64(state.Pid))
			return spec.Created(state.Pid)
		})},
	}
	container, err := create(filepath.Join(spec.Dir, "libcontainer"), spec.ID, config)
	if err != nil {
		return nil, fmt.Errorf("cannot configure the sandbox: %w", err)
	}
	console, theirs, err := seqpacket.Pair()
	if err != nil {
		return nil, err
	}
	defer console.Close()
	b.process = &libcontainer.Process{
		Args:          []string{"/proc/self/fd/3", "pid1"},
		Cwd:           "/",
		ExtraFiles:    []*os.File{self, spec.Control},
		ConsoleSocket: theirs,
		ConsoleWidth:  uint16(spec.Cols),
		ConsoleHeight: uint16(spec.Rows),
		Init:          true,
	}
	err = runUnder(ctx, container, b.process, &created)
	theirs.Close()
	if err != nil && strings.Contains(err.Error(), fmt.Sprintf("mounting \"overlay\" to rootfs at %q", spec.Workspace)) {
		err = fmt.Errorf("the kernel can't put the project under an overlay, and dmesg says why; many can't if its file system folds case (ext4 with casefold): have it on another one: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make the sandbox: %w", err)
	}
	if b.PID, err = b.process.Pid(); err == nil {
		b.pidfd, err = unix.PidfdOpen(b.PID, 0)
	}
	if err != nil {
		abandon(b.process)
		return nil, fmt.Errorf("cannot watch PID 1: %w", err)
	}
	go func() {
		_, _ = b.process.Wait() // how PID 1 ended says nothing; the agent's end is reported
		close(b.done)
	}()
	if b.Terminal, err = receiveTerminal(console); err != nil {
		b.Kill()
		<-b.done
		b.release()
		return nil, err
	}
	return b, nil
}

// starting is held while a box starts: what the cgroups library finds out about the host
// at the first start it keeps in a variable of its package, unguarded.
var starting sync.Mutex

// runUnder runs a container's first process; libcontainer knows no contexts.
func runUnder(ctx context.Context, container *libcontainer.Container, process *libcontainer.Process, created *atomic.Int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		// Not reaped before Run returned, so the number is still this process's.
		if pid := int(created.Load()); pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	starting.Lock()
	err := container.Run(process)
	starting.Unlock()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		abandon(process)
	}
	return err
}

// abandon kills and reaps a first process that is of no use. libcontainer may
// have done so already; then nothing happens.
func abandon(process *libcontainer.Process) {
	_ = process.Signal(unix.SIGKILL)
	_, _ = process.Wait()
}

// Kill ends every process of the box. It doesn't wait. Frozen processes of a
// v1 cgroup have to be thawed for it to take effect.
func (b *Box) Kill() {
	b.killMu.Lock()
	defer b.killMu.Unlock()
	if b.pidfd >= 0 {
		_ = unix.PidfdSendSignal(b.pidfd, unix.SIGKILL, nil, 0)
	}
}

// Done is closed once PID 1, and so every process of the box, is gone.
func (b *Box) Done() <-chan struct{} { return b.done }

// PidFD gives a new descriptor of PID 1 for another process.
func PidFD(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open PID 1: %w", err)
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// Release frees the box's own descriptors once it is done; the terminal stays.
func (b *Box) Release() {
	<-b.done
	b.release()
}

func (b *Box) release() {
	b.killMu.Lock()
	defer b.killMu.Unlock()
	if b.pidfd >= 0 {
		unix.Close(b.pidfd)
		b.pidfd = -1
	}
}

// receiveTerminal takes the master that libcontainer sent. It was sent before
// Run came back, so that nothing blocks for long.
func receiveTerminal(console *seqpacket.Conn) (*os.File, error) {
	fail := func(err error) (*os.File, error) { return nil, fmt.Errorf("cannot receive the terminal: %w", err) }
	_ = console.SetReadDeadline(time.Now().Add(terminalWait))
	_, files, err := console.Receive(make([]byte, 4096), 1) // its name, with the file
	if err != nil {
		return fail(err)
	}
	if len(files) != 1 {
		return fail(errors.New("none was sent"))
	}
	defer files[0].Close()
	fd, err := unix.FcntlInt(files[0].Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return fail(err)
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}

const terminalWait = 5 * time.Second

func namespacePath(pid int, kind string) string {
	return "/proc/" + strconv.Itoa(pid) + "/ns/" + kind
}
