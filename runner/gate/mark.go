package gate

import (
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"
)

// A mark is a number on a process that fork hands down, whatever becomes of its
// parents, and that stays through exec. It tells what descends from a program
// start that was judged. It is kept where Linux keeps the bound on file locks,
// RLIMIT_LOCKS, which has had no effect since 2.4: a process's own limits can be
// set from outside by its own user, without waiting, and the filter keeps the
// sandbox from changing this one. Unlike a cgroup, it needs nothing of the host.
//
// As a bound can only be lowered, a process takes a higher mark only.

// OwnMark is what all of a sandbox has from its PID 1. Marks that are given are
// higher.
const OwnMark = 1

// unmarked is the bound of a process without a mark: that of all marks is lower.
// It is this process's own, which a sandbox inherits.
var unmarked = sync.OnceValues(func() (uint64, error) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &own); err != nil {
		return 0, fmt.Errorf("cannot mark processes: %w", err)
	}
	if own.Max < math.MaxUint32 {
		return 0, fmt.Errorf("cannot mark processes: the bound on file locks is %d, and has to be unlimited (ulimit -x)", own.Max)
	}
	return min(own.Max, 1<<62), nil
})

// SetMark puts a mark on a process that stands still: what it has forked before
// keeps the mark that it has.
func SetMark(pid int, mark uint64) error {
	top, err := unmarked()
	if err != nil {
		return err
	}
	bound := unix.Rlimit{Cur: top - mark, Max: top - mark}
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, &bound, nil); err != nil {
		return fmt.Errorf("cannot mark process %d: %w", pid, err)
	}
	return nil
}

// MarkOf is the mark of a process, 0 when it is gone or of no sandbox.
func MarkOf(pid int) uint64 {
	top, err := unmarked()
	var bound unix.Rlimit
	if err != nil || unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &bound) != nil || bound.Max >= top {
		return 0
	}
	return top - bound.Max
}
