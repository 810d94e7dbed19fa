package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/gate"
	"stepbox/runner/seqpacket"
)

// freezeLimit bounds how long a freeze may take before it is given up.
const freezeLimit = 250 * time.Millisecond

// ErrFreeze is returned when the tree didn't come to rest in time; it runs on.
var ErrFreeze = errors.New("the sandbox didn't come to rest in time")

// Freeze stops the agent's tree where it is; PID 1 and the holder go on. The
// gate answers nothing until Thaw, and what it holds counts as frozen. Freezing
// what is frozen does nothing.
func (s *Sandbox) Freeze(ctx context.Context) error {
	s.freezing.Lock()
	defer s.freezing.Unlock()
	if s.frozen {
		return nil
	}
	return s.freeze(ctx)
}

// Thaw lets the agent's tree go on.
func (s *Sandbox) Thaw() error {
	s.freezing.Lock()
	defer s.freezing.Unlock()
	if !s.frozen {
		return ErrNotFrozen
	}
	return s.thaw()
}

// freeze is called with freezing held, on a tree that isn't frozen.
func (s *Sandbox) freeze(ctx context.Context) error {
	select {
	case <-s.ended:
		return ErrEnded
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, freezeLimit)
	defer cancel()
	select {
	case <-s.adopted:
	case <-ctx.Done():
		return late(ctx)
	}
	s.gate.Hold()
	var err error
	if s.cgroups.CanFreeze() {
		err = s.freezeCgroup(ctx)
	} else {
		err = s.halt(ctx)
	}
	if err != nil {
		s.undoFreeze()
		s.gate.Release()
		return err
	}
	s.frozen = true
	return nil
}

// thaw is called with freezing held, on a frozen tree.
func (s *Sandbox) thaw() error {
	err := s.undoFreeze()
	s.frozen = false
	s.gate.Release()
	if err != nil {
		return fmt.Errorf("cannot let the sandbox go on: %w", err)
	}
	return nil
}

func (s *Sandbox) undoFreeze() error {
	if s.cgroups.CanFreeze() {
		err := s.cgroups.Freeze(false)
		select {
		case <-s.ended:
			return nil // with its cgroup, perhaps
		default:
			return err
		}
	}
	s.gate.Continue()
	return nil
}

func (s *Sandbox) freezeCgroup(ctx context.Context) error {
	if err := s.cgroups.Freeze(true); err != nil {
		return fmt.Errorf("cannot freeze the sandbox: %w", err)
	}
	var settling box.Settling
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		frozen, err := s.cgroups.Frozen(s.gate.Held(), &settling)
		if err != nil {
			return fmt.Errorf("cannot freeze the sandbox: %w", err)
		}
		if frozen {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return late(ctx)
	case <-time.After(wait):
		return nil
	}
}

// late is the error for a freeze whose context ended.
func late(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ErrFreeze
	}
	return ctx.Err()
}

// halt is for hosts without a cgroup to freeze: the gate's tracing stops the tree.
func (s *Sandbox) halt(ctx context.Context) error {
	var settling box.Settling
	err := s.gate.Halt(ctx, gate.Tree{
		Processes: func() ([]int, int, error) {
			pids := s.pids()
			all, err := s.countProcesses()
			return pids, all, err
		},
		AtRest: settling.Look,
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return late(ctx)
	}
	return fmt.Errorf("cannot freeze the sandbox: %w", err)
}

// countProcesses counts the agent's tree in the sandbox's own /proc, which shows
// nothing else, so that one look can't miss what comes while it is taken.
func (s *Sandbox) countProcesses() (int, error) {
	root, err := seqpacket.Number(s.proc)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Openat(root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("cannot count the sandbox's processes: %w", err)
	}
	proc := os.NewFile(uintptr(fd), "proc")
	defer proc.Close()
	var where unix.Statfs_t
	if err := unix.Fstatfs(fd, &where); err != nil || where.Type != unix.PROC_SUPER_MAGIC {
		return 0, errors.New("cannot count the sandbox's processes: its /proc is none")
	}
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("cannot count the sandbox's processes: %w", err)
	}
	n := 0
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != 1 {
			n++
		}
	}
	return n, nil
}
