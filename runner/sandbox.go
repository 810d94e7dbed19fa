package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/egress"
	"stepbox/runner/gate"
	"stepbox/runner/holder"
	"stepbox/runner/pid1"
	"stepbox/runner/seqpacket"
	"stepbox/runner/socket"
)

// drainLimit bounds how long a sandbox whose agent ended waits for the agent's
// last output to be read: ending PID 1 hangs the terminal up, which throws
// unread output away.
const drainLimit = 5 * time.Second

// Sandbox is a running sandbox. Close it when done, however it ended.
type Sandbox struct {
	spec    Spec   // whole once all of it is known
	state   string // its StateDir
	dir     string // its run-time folder
	lock    *os.File
	guard   holder.Guard
	cgroups *box.Cgroups
	holder  *holder.Holder
	heir    box.Heir
	box     *box.Box
	control *seqpacket.Conn
	gate    *gate.Gate
	gateway *egress.Gateway
	servers []*socket.Server // of its sockets
	beyond  *os.File         // the same of Spec.Outer; nil without one
	view    *os.File         // the project as the agent sees it, which keeps the overlay alive; not for looking at

	self      gate.File // this program as the sandbox has it; zero when it hasn't
	namespace uint64    // of its pid namespace, which names its processes

	most int64 // processes and threads that the user's own limit leaves the agent; 0: as many as it may have

	segments bool // System V's shared memory has no bound, and is counted

	tasks   sync.WaitGroup // short ones, waited for by Close
	adopted chan struct{}  // closed once PID 1 isn't among what can be frozen

	freezing  sync.Mutex // held while freezing, thawing or killing a tree
	frozen    bool       // guarded by freezing
	lastMu    sync.Mutex
	lastUsage box.Usage // guarded by lastMu
	lastAt    time.Time // guarded by lastMu

	leaving   atomic.Bool           // the holder is told to end
	abandoned atomic.Bool           // the holder ended without being told to
	misplaced atomic.Pointer[error] // what isn't mounted any more where it belongs
	mounts    *box.Watch
	proc      *os.File    // the sandbox's own /proc
	killed    atomic.Bool // Kill was called

	left     chan struct{} // closed when the agent ended by itself, before its last output is read
	exit     chan struct{} // closed once outcome is set
	outcome  Exit
	failure  error         // why the agent couldn't run although it was approved; set before exit closes
	ended    chan struct{} // closed once every process of the sandbox is gone
	closing  sync.Once
	closeErr error
}

// Terminal is the master of the agent's terminal, non-blocking. It stays the
// sandbox's; reads end with EIO once the agent's side is gone.
func (s *Sandbox) Terminal() *os.File { return s.box.Terminal }

// Notes lists protections that are weaker than usual on this host, in words.
func (s *Sandbox) Notes() []string { return s.box.Notes }

// Upper is the host folder of what the agent changed, Lower that of the project
// below it. Neither is to be written while the sandbox lives.
func (s *Sandbox) Upper() string { return filepath.Join(s.state, "upper") }

// Lower is the project on the host.
func (s *Sandbox) Lower() string { return s.spec.Workspace }

// Limits are the bounds in force, and Source says what enforces them.
func (s *Sandbox) Limits() (limits Limits, source string) {
	limits, source = s.cgroups.InForce, s.cgroups.Source
	for _, rlimit := range s.rlimits() {
		switch {
		case rlimit.Resource == unix.RLIMIT_DATA:
			limits.Memory = int64(rlimit.Value)
		case os.Geteuid() != 0:
			limits.Pids = int64(rlimit.Value)
		}
		if source != box.SourceNone && !strings.Contains(source, box.SourceNone) {
			source += " and " + box.SourceNone
		}
	}
	return limits, source
}

// eachItsMemory says whether memory is bounded by rlimits, for each process by itself.
func (s *Sandbox) eachItsMemory() bool {
	return s.spec.Limits.Memory > 0 && s.cgroups.InForce.Memory == 0
}

// watch follows PID 1 until the sandbox is gone.
func (s *Sandbox) watch() {
	defer close(s.ended)
	reported := s.follow()
	if reported {
		close(s.left)
		s.drain()
		_ = s.say(pid1.End)
	} else {
		s.Kill()
	}
	close(s.exit)
	select {
	case <-s.box.Done():
	case <-time.After(holder.CloseTimeout):
		s.box.Kill()
	}
	s.thawForGood()
	<-s.box.Done()
}

// watchHolder ends the sandbox when its holder dies: without it nothing can be
// restored, and nobody would clean up after the supervisor.
func (s *Sandbox) watchHolder() {
	select {
	case <-s.ended:
	case <-s.holder.Gone():
		if !s.leaving.Load() {
			s.abandoned.Store(true)
			s.Kill()
		}
	}
}

// watchMounts ends the sandbox once something isn't mounted any more where it belongs: another session of the same home can have
// removed the folder below it.
func (s *Sandbox) watchMounts() {
	defer s.mounts.Close()
	defer s.proc.Close()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		<-s.ended
		s.mounts.Stop()
	}()
	for s.mounts.Changed() {
		err := s.mounts.Check()
		if err != nil {
			err = s.mounts.Check() // the table is read in pieces: what went all at once may look as if a part had stayed
		}
		if err != nil && !s.leaving.Load() {
			err = fmt.Errorf("%w, and the agent was ended: %w", ErrMounts, err)
			s.misplaced.CompareAndSwap(nil, &err)
			s.Kill()
			break
		}
	}
	<-stop
}

// cause is why a sandbox ended whose agent's end wasn't reported; nil where somebody killed it.
func (s *Sandbox) cause() error {
	switch misplaced := s.misplaced.Load(); {
	case s.abandoned.Load():
		return ErrHolder
	case misplaced != nil:
		return *misplaced
	case !s.killed.Load():
		return ErrFirst
	}
	return nil
}

// follow hears PID 1 out and says whether the agent's end was reported.
func (s *Sandbox) follow() bool {
	for {
		m, files, err := s.receive(1)
		closeFiles(files)
		switch {
		case err != nil:
			s.failure = s.cause()
			return false
		case m.Kind == pid1.Exited:
			s.outcome = Exit{Code: m.Code, Known: true}
			if m.Signal != 0 {
				s.outcome.Signal = signalName(m.Signal)
			}
			return true
		case m.Kind == pid1.Failed:
			s.failure = &StartError{Reason: m.Error, Code: m.Code}
			s.outcome = Exit{Code: 127, Known: true}
			return false
		case m.Kind != pid1.Started || len(files) != 0:
			return false // it isn't ours any more
		}
	}
}

func signalName(number int) string {
	if name := unix.SignalName(unix.Signal(number)); name != "" {
		return name
	}
	return fmt.Sprintf("SIGRTMIN+%d", number-32)
}

// drain waits until the terminal's reader has caught up with the agent's
// output.
func (s *Sandbox) drain() {
	fd, err := seqpacket.Number(s.box.Terminal)
	if err != nil {
		return
	}
	for end := time.Now().Add(drainLimit); time.Now().Before(end); {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 0); err != nil && err != unix.EINTR || n == 0 || fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		select {
		case <-s.box.Done():
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Wait waits until the agent ended and gives how. The error is set when the
// agent was approved and still couldn't run, as with a file that isn't a
// program, is ErrHolder when the sandbox had to be ended, and ErrFirst when
// somebody else ended it: how the agent ended isn't unknown without a reason.
func (s *Sandbox) Wait() (Exit, error) {
	<-s.exit
	return s.outcome, s.failure
}

// Left is closed when the agent has ended by itself: what it printed has to be
// read from the terminal now, or is lost. Exited follows.
func (s *Sandbox) Left() <-chan struct{} { return s.left }

// Exited is closed once Wait would return.
func (s *Sandbox) Exited() <-chan struct{} { return s.exit }

// Kill ends every process of the sandbox, frozen or not. It doesn't wait.
func (s *Sandbox) Kill() {
	s.killed.Store(true)
	s.box.Kill()
	s.thawForGood()
}

// thawForGood lets frozen processes die.
func (s *Sandbox) thawForGood() {
	select {
	case <-s.adopted:
		s.gate.Doom()
	default: // no program was let run yet
	}
	for _, thaw := range s.cgroups.ThawWrites() {
		_ = os.WriteFile(thaw.Path, []byte(thaw.Value), 0)
	}
}

// Close ends the sandbox if it lives, and removes all but what StateDir holds.
// A context that ends makes it stop waiting; the holder goes on by itself.
func (s *Sandbox) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closeErr = s.close(ctx) })
	return s.closeErr
}

func (s *Sandbox) close(ctx context.Context) error {
	s.Kill()
	select {
	case <-s.ended:
	case <-ctx.Done():
		// The rest goes on at its own pace: the holder sees its socket close.
		s.leaving.Store(true)
		go s.holder.Close()
		return fmt.Errorf("cannot wait for the sandbox to end: %w", ctx.Err())
	}
	// The holder removes the folders and cgroups meanwhile.
	held := make(chan error, 1)
	go func() { held <- s.holder.Close() }()
	var failures []error
	if s.gateway != nil {
		failures = append(failures, s.gateway.Close())
	}
	s.closeSockets()
	failures = append(failures, s.gate.Close())
	s.tasks.Wait()
	s.control.Close()
	s.box.Release()
	s.box.Terminal.Close()
	failures = append(failures, <-held)
	s.heir.Dismiss()
	// Usually nothing is left; a holder that failed leaves it to us.
	limit, cancel := context.WithTimeout(ctx, holder.CloseTimeout)
	defer cancel()
	failures = append(failures, s.guard.Clean(limit, -1))
	s.lock.Close()
	go func() { // may take as long as the disk does, and nobody has to wait for it
		s.view.Close()
		if s.beyond != nil {
			s.beyond.Close()
		}
	}()
	return errors.Join(failures...)
}

// OpenUpper is an inode.Opener of the upper, for what the caller can't open:
// rel may hold any bytes, and links aren't followed.
func (s *Sandbox) OpenUpper(ctx context.Context, rel string) (*os.File, error) {
	return s.holder.Open(ctx, s.Upper(), rel)
}

// OpenLower is OpenUpper for the project.
func (s *Sandbox) OpenLower(ctx context.Context, rel string) (*os.File, error) {
	return s.holder.Open(ctx, s.Lower(), rel)
}
