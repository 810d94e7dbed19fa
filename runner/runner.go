// Package runner makes sandboxes: Start turns a specification into a running
// Sandbox, whose agent is held at its first program, and a Sandbox can be
// frozen, killed, resized, measured and restored. It knows nothing of sessions.
//
// A sandbox is a supervisor (the caller), a holder, a PID 1 and the agent's
// tree; see the packages holder, box, pid1 and gate. If the supervisor dies, the
// holder and PID 1 each end the sandbox; if those die too, Sweep does.
//
// A Sandbox may be used from several goroutines. Nothing inside it is trusted;
// the specification and its paths are.
package runner

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"stepbox/runner/box"
	"stepbox/runner/holder"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/pid1"
	"stepbox/runner/seqpacket"
)

// Reexec runs what this program does as a helper of a sandbox, if it was
// started as one, and doesn't return then. It has to come first in main and in
// every TestMain whose tests make sandboxes.
//
// Else it keeps the process's first thread for the calling goroutine: making a
// sandbox takes a thread into its mount namespace for good, and only other threads
// can be ended after that. The first would hold on to the mounts, and be what
// /proc/self tells of. Whoever has much to do does it in another goroutine.
func Reexec() {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "init":
			box.Init()
		case "pid1":
			pid1.Main(installGate)
		case "holder":
			holder.Main(holder.Ops{Link: makeLink, Open: inode.OpenUpper, Restore: carryOut})
		}
	}
	runtime.LockOSThread()
}

// Command is this program's sealed copy, to be run with arguments of its own.
// What makes sandboxes should be run so: libcontainer copies a program that isn't
// sealed for each of them.
func Command(args ...string) (*exec.Cmd, error) {
	self, err := box.Self()
	if err != nil {
		return nil, err
	}
	number, err := seqpacket.Number(self)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: "/proc/self/fd/" + strconv.Itoa(number), Args: append([]string{"stepbox"}, args...)}, nil
}

// Bind is a host file or folder to show, which nothing inside can change.
type Bind = box.Bind

// Limits bound what the agent may use; zero means no bound.
type Limits = box.Limits

// MaxTerminals is how many pseudo-terminals a sandbox may have.
const MaxTerminals = box.MaxTerminals

// Spec says what a sandbox is. Paths are absolute host paths; missing folders
// below StateDir and RunDir are made.
type Spec struct {
	ID       string // [a-z0-9-]{1,64}, unique among live sandboxes
	StateDir string // the session's own folder, kept unless it is below RunDir/ID: upper, work and tmp are below it
	RunDir   string // where the run-time folders of all sandboxes are, on a local filesystem

	Workspace  string            // the project; see CheckWorkspace
	Home       string            // mounted read-write at HomeTarget; "" for no home
	HomeTarget string            // the home directory inside, absolute
	HomeUpper  string            // a folder of StateDir's filesystem that takes what is written to Home, which stays as it is; "" for none
	HomeAbove  []string          // as Above, for a Home with HomeUpper
	Binds      []Bind            // shown read-only
	Hidden     []string          // paths below Workspace, relative, that don't exist inside
	ReadOnly   []string          // paths below Workspace, relative, that are there and can't be changed, removed or replaced
	Above      []string          // host folders whose files stand in front of Workspace's, topmost first
	Etc        map[string][]byte // files of /etc, by their names below it, that stand in front of the host's
	Self       string            // this program's file on the host, shown at SelfPath; one that is gone is copied; "" for not
	SelfAs     []string          // further names that it has there
	Outer      string            // a host folder beyond Workspace that is an overlay too, at its own path; "" for none
	OuterLower string            // the folder whose files are shown at Outer

	Argv []string // Argv[0] is looked up in Env's PATH, inside
	Env  []string
	Cwd  string // "" for the Workspace

	Limits     Limits
	Cols, Rows int // of the terminal; 80×24 when zero
}

// ErrNotFrozen is returned for what takes a frozen sandbox.
var ErrNotFrozen = errors.New("the sandbox isn't frozen")

// ErrEnded is returned once the sandbox is gone.
var ErrEnded = errors.New("the sandbox has ended")

// ErrMounts is why a sandbox was ended, or wasn't begun, whose project or a person's tools aren't where they belong.
var ErrMounts = errors.New("what the sandbox shows isn't where it belongs")

// ErrHolder is why a sandbox was ended whose holder had died.
var ErrHolder = errors.New("the sandbox's helper process, its holder, was killed, and nothing can be rolled back without it: the agent was ended")

// ErrFirst is why a sandbox ended that nobody here ended.
var ErrFirst = errors.New("the sandbox's first process was killed from outside, and the agent with it")

// StartError is a start that failed because of what was asked for, such as a
// program that doesn't exist inside, rather than because of this host.
type StartError struct {
	Reason string
	Code   int // 126 or 127 as shells have it for programs, else 0
}

func (e *StartError) Error() string { return e.Reason }

func (s *Spec) prepare() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return &StartError{Reason: "no program was named"}
	}
	if s.Cols <= 0 || s.Rows <= 0 {
		s.Cols, s.Rows = 80, 24
	}
	s.Cwd = cmp.Or(s.Cwd, s.Workspace)
	return nil
}

func validID(id string) bool {
	if len(id) < 1 || len(id) > 64 || id[0] == '-' {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Exit is how an agent ended.
type Exit struct {
	Code   int    // 0…255
	Signal string // SIGKILL and so on, when it was killed
	Known  bool   // false when the sandbox ended before its agent's end was reported
}

// cleanup is a stack of what undoes a half-made sandbox.
type cleanup []func()

func (c *cleanup) add(f func()) { *c = append(*c, f) }

// run undoes everything, the last first.
func (c *cleanup) run() {
	for i := len(*c) - 1; i >= 0; i-- {
		(*c)[i]()
	}
	*c = nil
}

// keep forgets what there was to undo.
func (c *cleanup) keep() { *c = nil }
