package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
)

// freezeLimit bounds how long a freeze may take before it is given up.
const freezeLimit = 250 * time.Millisecond

// ErrFreeze is returned when the tree didn't come to rest in time; it runs on.
var ErrFreeze = errors.New("the sandbox didn't come to rest in time")

// stopped is a process that the fallback stopped.
type stopped struct {
	pid   int
	start uint64
}

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
		err = s.stopAll(ctx)
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
	s.continueAll()
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

// stopAll is for hosts without a cgroup to freeze: SIGSTOP for every process of
// the sandbox but PID 1, until none is left that runs. Processes that were
// stopped before aren't ours to continue. A parent sees its children stop, as
// job control shells do: children are stopped first, and continued first, so
// that no parent acts on it meanwhile.
func (s *Sandbox) stopAll(ctx context.Context) error {
	s.stopped = nil
	var settling box.Settling
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		list, err := s.Processes()
		if err != nil {
			return err
		}
		slices.SortFunc(list, func(a, b Process) int { return generation(list, b) - generation(list, a) })
		held := s.gate.Held()
		all := true
		var unsettled []int
		for _, p := range list {
			running := slices.DeleteFunc(box.Threads(p.PID), func(thread int) bool { return slices.Contains(held, thread) || isStopped(thread) })
			if len(running) == 0 {
				continue
			}
			if slices.ContainsFunc(s.stopped, func(o stopped) bool { return o.pid == p.PID && o.start == p.Start }) {
				// On its way, or where a signal is only taken once the kernel is
				// done: a vfork whose child is held.
				unsettled = append(unsettled, running...)
				continue
			}
			all = false
			if s.Signal(p.PID, p.Start, unix.SIGSTOP) == nil {
				s.stopped = append(s.stopped, stopped{p.PID, p.Start})
			}
		}
		if all && (len(unsettled) == 0 || settling.Look(unsettled)) {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

func isStopped(thread int) bool {
	status, err := box.ReadStatus(thread)
	return err != nil || status.State == 'T' || status.State == 't' || status.State == 'Z' || status.State == 'X'
}

// continueAll continues what stopAll stopped, children before parents.
func (s *Sandbox) continueAll() {
	for _, p := range s.stopped {
		_ = s.Signal(p.pid, p.start, unix.SIGCONT) // it may have been killed
	}
	s.stopped = nil
}

// generation counts the processes of the list above one.
func generation(list []Process, p Process) int {
	n := 0
	for parent := p.Parent; n < len(list); n++ {
		i := slices.IndexFunc(list, func(q Process) bool { return q.PID == parent })
		if i < 0 {
			break
		}
		parent = list[i].Parent
	}
	return n
}
