package gate

import (
	"sync"
	"sync/atomic"
)

// maxAncestors bounds the chain of parents that is followed.
const maxAncestors = 512

// ancestors follows the chain of parents up to the sandbox's first process,
// which isn't among them.
func (g *Gate) ancestors(child int, s state) []Process {
	var l []Process
	for tries := 0; tries < 2*maxAncestors && len(l) < maxAncestors && s.parent != 0; tries++ {
		if s.parent == g.first.known() {
			break
		}
		ps, err := stateOf(s.parent)
		// The parent was looked up by its number, which may have been given
		// to another process meanwhile. That can't be older than the child.
		if err != nil || ps.start >= s.start {
			again, gone := stateOf(child)
			if gone != nil || again.start != s.start {
				break
			}
			if err != nil || again.parent != s.parent {
				s = again // it was handed to another parent
				continue
			}
		}
		if g.first.is(s.parent) {
			break
		}
		l = append(l, Process{PID: s.parent, Start: ps.start, Name: ps.name})
		child, s = s.parent, ps
	}
	return l
}

// first remembers the sandbox's first process once it was seen. It lives as
// long as the sandbox.
type first struct {
	pid     atomic.Int64
	filters filters
}

func (f *first) known() int { return int(f.pid.Load()) }

// filters is how many of them all processes of the sandbox have over their system calls: as many as that which
// starts its first program, and which runs nothing of the agent's.
type filters struct {
	once  sync.Once
	count int // 0 where it isn't known: then any is too much
}

// of counts them at the first call, which is for that process.
func (f *filters) of(tid int) {
	f.once.Do(func() {
		if st, err := statusOf(tid); err == nil {
			f.count = st.filters
		}
	})
}

// is says whether a process is the first. The kernel is asked until it was found.
func (f *first) is(pid int) bool {
	if known := f.known(); known != 0 {
		return pid == known
	}
	st, err := statusOf(pid)
	if err != nil || st.group != 1 {
		return false
	}
	f.pid.Store(int64(pid))
	return true
}
