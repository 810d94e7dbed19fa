package runner

import (
	"sync"

	"stepbox/runner/box"
	"stepbox/runner/gate"
)

// groups names the marks that processes of the sandbox have.
type groups struct {
	mu    sync.Mutex
	marks map[string]uint64 // guarded by mu
	names map[uint64]string // guarded by mu
	last  uint64            // guarded by mu; marks only rise
}

// name is the group that a mark stands for, "" for none.
func (g *groups) name(mark uint64) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.names[mark]
}

// mark is the mark that stands for a group, which gets one.
func (g *groups) mark(name string) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.marks[name] == 0 {
		if g.marks == nil {
			g.marks, g.names = make(map[string]uint64), make(map[uint64]string)
		}
		g.last++
		g.marks[name], g.names[g.last] = g.last, name
	}
	return g.marks[name]
}

func (g *groups) drop(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.names, g.marks[name])
	delete(g.marks, name)
}

// CanGroup says whether this host lets processes of the sandbox be put into
// groups.
func (s *Sandbox) CanGroup() bool { return true }

// EnterGroup puts a process into a group, which is made if it isn't there: all
// that descends from it is in that group too, whatever becomes of its parents,
// unless it is put into another, later one. A process has to stand still for it,
// so that it forks nothing meanwhile. The gate's Execs tell the group of their
// process.
func (s *Sandbox) EnterGroup(name string, pid int) error {
	return gate.SetMark(pid, s.groups.mark(name))
}

// DropGroup forgets a group and says whether it did: one with processes stays.
func (s *Sandbox) DropGroup(name string) bool {
	mark := s.groups.mark(name)
	for _, pid := range s.pids() {
		if gate.MarkOf(pid) == mark {
			return false
		}
	}
	s.groups.drop(name)
	return true
}

// GroupProcesses lists the living processes of a group.
func (s *Sandbox) GroupProcesses(name string) []Process {
	var list []Process
	mark := s.groups.mark(name)
	for _, pid := range s.pids() {
		if gate.MarkOf(pid) != mark {
			continue
		}
		if status, runs, err := look(pid); err == nil && runs {
			list = append(list, process(status))
		}
	}
	return list
}

// Alive says whether a process of the sandbox hasn't ended.
func (s *Sandbox) Alive(pid int, start uint64) bool {
	status, err := box.ReadStatus(pid)
	return err == nil && status.Start == start && !over(status)
}
