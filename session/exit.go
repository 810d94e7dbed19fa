package session

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/gate"
	"stepbox/session/api"
)

// onExit is a process that the gate saw start and that is gone now.
func (s *Session) onExit(e gate.Exit) {
	p := s.procs[proc{e.PID, e.Start}]
	if p == nil {
		return
	}
	delete(s.procs, p.proc)
	exec := p.exec
	exec.EndedAt = e.At.UTC()
	if e.Known {
		exec.Exit = exitOf(e)
	}
	s.record(nil, api.Event{Kind: "exec.ended", Exec: &exec})
	a := p.action
	if a == nil || !p.leader {
		return
	}
	a.leaders--
	a.last = later(a.last, exec.Exit, e.PID, a)
	if a.leaders > 0 || a.State != api.ActionRunning {
		return
	}
	s.finish(a, a.last)
}

// onExiting is an action's leader that is about to end, which nobody has noticed
// yet: what the files are now is what the action left, and what its parent does
// next isn't its doing.
func (s *Session) onExiting(e gate.Exit, goOn func()) {
	p := s.procs[proc{e.PID, e.Start}]
	if p == nil || p.action == nil || !p.leader || p.action.leaders > 1 || p.action.State != api.ActionRunning {
		goOn()
		return
	}
	s.checkpoint(func(cp *checkpoint, err error) {
		if err == nil {
			p.action.atExit = cp
		}
		goOn()
	})
}

// later picks the exit that a shell reports for a job: its last member's.
func later(last, now *api.Exit, pid int, a *action) *api.Exit {
	if len(a.members) > 0 && a.members[len(a.members)-1].PID == pid || last == nil {
		return now
	}
	return last
}

func exitOf(e gate.Exit) *api.Exit {
	if e.Signal != 0 {
		return &api.Exit{Code: 128 + int(e.Signal), Signal: unix.SignalName(e.Signal)}
	}
	return &api.Exit{Code: e.Code}
}

// onFailed is an exec that won't happen: its process was killed while held, or
// it was let go and the kernel refused it, or it turned out to be another
// program than the one that was judged and was killed.
func (s *Session) onFailed(e *gate.Exec, why string) {
	why = api.Escape(trim(why, 500))
	for _, q := range s.questions {
		if !q.Open() || !slices.Contains(q.execs, e) {
			continue
		}
		q.execs = slices.DeleteFunc(q.execs, func(o *gate.Exec) bool { return o == e })
		if len(q.execs) == 0 {
			s.withdraw(q)
		}
	}
	_, a := s.owner(e)
	for _, f := range append(slices.Clone(s.forming), s.actions...) {
		if slices.Contains(f.members, e) {
			a = f
		}
	}
	if a == nil {
		s.note(true, "%s did not start: %s", listedArgs(e.Argv), why)
		return
	}
	if a.State == api.ActionHeld || a.State == "" {
		a.members = slices.DeleteFunc(a.members, func(o *gate.Exec) bool { return o == e })
		if len(a.members) == 0 && a.State == api.ActionHeld {
			s.abandon(a, why)
		}
		return
	}
	exec := s.execRecord(a, e, s.command(e, a.profile), api.Allow, a.Rule)
	exec.Failure = why
	if p := s.procs[proc{e.PID, e.Start}]; p != nil {
		exec.ID = p.exec.ID
	}
	s.record(nil, api.Event{Kind: "exec.failed", Exec: &exec})
}

// abandon ends a held action whose processes went away.
func (s *Session) abandon(a *action, why string) {
	s.forming = slices.DeleteFunc(s.forming, func(f *action) bool { return f == a })
	if a.forming != nil {
		a.forming.Stop()
	}
	if err := a.to(api.ActionAbandoned); err != nil {
		s.fail(err)
		return
	}
	a.EndedAt, a.Reason = time.Now().UTC(), why
	s.record(nil, s.actionEvent(a, "abandoned"), s.changed("counted"))
}

// leftRunning counts what outlived an action's leaders.
func (s *Session) leftRunning(a *action) int {
	living, err := s.box.Processes()
	if err != nil {
		s.log.Warn("cannot list the sandbox's processes", "error", err)
		return 0
	}
	mine := make(map[int]bool)
	for _, p := range s.procs {
		if p.action == a {
			mine[p.pid] = true
		}
	}
	groups := make(map[int]bool)
	for _, m := range a.members {
		if a.parent == nil || m.PGID != a.parent.pgid {
			groups[m.PGID] = true
		}
	}
	n := 0
	for _, p := range living {
		if mine[p.PID] || mine[p.Parent] || groups[pgid(p.PID)] {
			mine[p.PID] = true
			n++
		}
	}
	return n
}

// tree lists the living processes of an action, for killing it.
func (s *Session) tree(a *action) []proc {
	var out []proc
	for _, p := range s.procs {
		if p.action == a {
			out = append(out, p.proc)
		}
	}
	return out
}

func listedArgs(argv []string) string {
	if len(argv) == 0 {
		return "a program"
	}
	return api.Escape(trim(argv[0], 200))
}

// pgid is a process's group; 0 when it is gone.
func pgid(pid int) int {
	g, err := unix.Getpgid(pid)
	if err != nil {
		return 0
	}
	return g
}
