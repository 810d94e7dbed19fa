package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/gate"
)

// Process is one process of the agent's tree. With PID, Start names it.
type Process struct {
	PID    int    // on the host
	Parent int    // on the host; PID 1's for orphans
	Start  uint64 // clock ticks after boot
	Name   string // as it calls itself: hostile
	State  byte   // as in proc_pid_stat(5)
}

// pids lists the agent's tree, and the agent before it was moved to its cgroup.
func (s *Sandbox) pids() []int {
	pids, ok := s.cgroups.Processes()
	if !ok {
		pids, _ = box.Members(s.namespace, func(pid int) bool { return gate.MarkOf(pid) != 0 })
	}
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == s.box.PID })
}

// Processes lists the agent's tree. It is a snapshot: what it lists may be gone.
func (s *Sandbox) Processes() ([]Process, error) { return living(s.pids()) }

// living looks at processes and leaves out those that are gone.
func living(pids []int) ([]Process, error) {
	var list []Process
	for _, pid := range pids {
		status, err := box.ReadStatus(pid)
		runs, err := lives(status, err)
		if err != nil {
			return nil, err
		}
		if runs {
			list = append(list, process(status))
		}
	}
	return list, nil
}

// Marks counts the processes of the agent's tree by their marks, which tell from
// what they descend. See [gate.SetMark]. Those that went away before it could be
// read count as 0.
func (s *Sandbox) Marks() map[uint64]int {
	marks := make(map[uint64]int)
	for _, pid := range s.pids() {
		marks[gate.MarkOf(pid)]++
	}
	return marks
}

// Marked lists the living processes whose marks are wanted.
func (s *Sandbox) Marked(wanted func(mark uint64) bool) ([]Process, error) {
	return living(slices.DeleteFunc(s.pids(), func(pid int) bool { return !wanted(gate.MarkOf(pid)) }))
}

// Use is what some processes have used.
type Use struct {
	CPU    time.Duration // with that of children that they waited for
	Memory int64         // resident bytes, added up
}

// Used measures the agent's tree by marks. It looks at each process once.
func (s *Sandbox) Used() map[uint64]Use {
	all := make(map[uint64]Use)
	for _, pid := range s.pids() {
		mark := gate.MarkOf(pid)
		if status, err := box.ReadStatus(pid); err == nil {
			u := all[mark]
			u.CPU += status.CPU + status.Waited
			u.Memory += status.Memory
			all[mark] = u
		}
	}
	return all
}

// Alive says whether a process of the sandbox hasn't ended.
func (s *Sandbox) Alive(pid int, start uint64) bool {
	status, err := box.ReadStatus(pid)
	return err == nil && status.Start == start && !over(status)
}

// lives says whether a process whose state was read still runs anything. One that
// was gone by then doesn't.
func lives(status box.Status, err error) (bool, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && !over(status), err
}

func process(s box.Status) Process {
	return Process{PID: s.PID, Parent: s.Parent, Start: s.Start, Name: s.Name, State: s.State}
}

// over says whether a process runs nothing any more. One whose first thread
// ended is shown as a zombie while its other threads live.
func over(status box.Status) bool {
	return status.State == 'X' || status.State == 'Z' && status.Count <= 1
}

// Usage is what the sandbox uses.
type Usage struct {
	CPU    float64 // of one processor since the last call, 1 = all of it
	Memory int64   // bytes
	Pids   int     // processes and threads
}

// SharedMemory is how many bytes the agent's tree has of shared memory that nothing
// bounds; bound is what it may have, 0 where that needn't be looked at.
func (s *Sandbox) SharedMemory(ctx context.Context) (bytes, bound int64) {
	if !s.eachItsMemory() {
		return 0, 0
	}
	bytes = box.SharedMemory(s.pids())
	if s.segments {
		ctx, cancel := context.WithTimeout(ctx, time.Second) // the next look comes then
		defer cancel()
		n, _ := s.holder.Segments(ctx) // a session ends with its holder
		bytes += n
	}
	return bytes, s.spec.Limits.Memory
}

// Starved is how many processes of the sandbox the kernel has killed for want of memory.
func (s *Sandbox) Starved() int64 { return s.cgroups.Starved() }

// Usage measures the sandbox, by its cgroups or else by its processes.
func (s *Sandbox) Usage() Usage {
	now := time.Now()
	sum, ok := s.cgroups.Usage()
	if !ok {
		for _, pid := range s.pids() {
			if status, err := box.ReadStatus(pid); err == nil {
				sum.CPU += status.CPU
				sum.Memory += status.Memory
				sum.Pids += status.Count
			}
		}
	}
	s.lastMu.Lock()
	defer s.lastMu.Unlock()
	u := Usage{Memory: sum.Memory, Pids: sum.Pids}
	if elapsed := now.Sub(s.lastAt); !s.lastAt.IsZero() && elapsed > 0 {
		// Processes that ended take their time along when only they are counted.
		u.CPU = min(max(float64(sum.CPU-s.lastUsage.CPU)/float64(elapsed), 0), float64(runtime.NumCPU()))
	}
	s.lastUsage, s.lastAt = sum, now
	return u
}

// ErrGone is returned for a process that doesn't live any more, or whose number
// is another's now.
var ErrGone = errors.New("that process is gone")

// Signal sends a signal to one process of the agent's tree.
func (s *Sandbox) Signal(pid int, start uint64, signal unix.Signal) error {
	fd, err := s.open(pid, start)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil {
		return fmt.Errorf("cannot signal process %d: %w", pid, err)
	}
	return nil
}

// open gives a pidfd of a process of the tree. The number is looked at after it
// was opened, when it can't become another's unnoticed.
func (s *Sandbox) open(pid int, start uint64) (int, error) {
	if pid <= 1 || pid == s.box.PID {
		return -1, fmt.Errorf("cannot signal process %d: %w", pid, ErrGone)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot signal process %d: %w", pid, ErrGone)
	}
	status, err := box.ReadStatus(pid)
	namespace, nsErr := box.PIDNamespace(pid)
	if err != nil || nsErr != nil || status.Start != start || namespace != s.namespace || over(status) {
		unix.Close(fd)
		return -1, fmt.Errorf("cannot signal process %d: %w", pid, ErrGone)
	}
	return fd, nil
}

// KillTree kills a process and all that descend from it. The tree is frozen
// meanwhile where that works in time, so that nothing is forked away from the
// list; where it doesn't, the list is taken again until nothing is left.
// Descendants whose parents ended before belong to PID 1 and aren't found.
func (s *Sandbox) KillTree(ctx context.Context, pid int, start uint64) error {
	fd, err := s.open(pid, start)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	s.freezing.Lock()
	defer s.freezing.Unlock()
	if !s.frozen {
		if err := s.freeze(ctx); err == nil {
			defer s.thaw()
		}
	}
	// Parents would be lost with their first kill: collect, then kill.
	for range 10 {
		list, err := s.Processes()
		if err != nil {
			return err
		}
		doomed := descendants(list, pid)
		if len(doomed) == 0 {
			break
		}
		for _, process := range doomed {
			_ = s.Signal(process.PID, process.Start, unix.SIGKILL)
		}
		if s.frozen {
			break // nothing could be forked meanwhile
		}
	}
	return nil
}

// descendants lists a process, if it is in the list, and all below it.
func descendants(list []Process, root int) []Process {
	var found []Process
	wanted := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, p := range list {
			if wanted[p.Parent] && !wanted[p.PID] {
				wanted[p.PID] = true
				grown = true
			}
		}
	}
	for _, p := range list {
		if wanted[p.PID] {
			found = append(found, p)
		}
	}
	return found
}
