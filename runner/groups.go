package runner

import "stepbox/runner/box"

// CanGroup says whether this host lets processes of the sandbox be put into
// groups.
func (s *Sandbox) CanGroup() bool { return s.cgroups.CanGroup() }

// EnterGroup puts a process into a group, which is made if it isn't there: all
// that descends from it is in that group too, whatever becomes of its parents,
// unless it is put into another. A process has to stand still for it, so that it
// forks nothing meanwhile. Names are short, of digits and dashes. The gate's Execs
// tell the group of their process.
func (s *Sandbox) EnterGroup(name string, pid int) error { return s.cgroups.EnterGroup(name, pid) }

// DropGroup removes a group and says whether it is gone: one with processes
// stays. All go with the sandbox.
func (s *Sandbox) DropGroup(name string) bool { return s.cgroups.DropGroup(name) }

// GroupProcesses lists the living processes of a group.
func (s *Sandbox) GroupProcesses(name string) []Process {
	var list []Process
	for _, pid := range s.cgroups.GroupProcesses(name) {
		status, err := box.ReadStatus(pid)
		if err != nil || over(status) {
			continue // gone
		}
		list = append(list, Process{PID: pid, Parent: status.Parent, Start: status.Start, Name: status.Name, State: status.State})
	}
	return list
}

// Alive says whether a process of the sandbox hasn't ended.
func (s *Sandbox) Alive(pid int, start uint64) bool {
	status, err := box.ReadStatus(pid)
	return err == nil && status.Start == start && !over(status)
}
