package session

import (
	"errors"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/judge"
)

// proc names one process for good: a pid alone is used again.
type proc struct {
	pid   int
	start uint64 // clock ticks since boot, proc(5)
}

func procOf(x *judge.Exec) proc { return proc{x.PID, x.Start} }

// process is a living one in which a program began that the gate let start.
type process struct {
	proc
	pgid    int
	exec    api.Exec
	kin     *kin            // nil: a root, which belongs to no action
	action  *action         // the kin's
	profile *policy.Profile // a root's
	leader  bool            // the action ends with it
	agent   bool            // an agent's own main process
	starter bool            // the agent's own program, but only to become a command
	next    *judge.Chain    // the interpreter that its script still has to start
	is      *judge.Identity // which agent; nil: none
}

// kin are the processes that descend by fork from program starts that were
// judged together, and what the verdict on those covers. A process is known to
// be of a kin by its mark, which fork hands down and the agent can't change
// (runner/gate/mark.go). Process groups, sessions, pipes and names never tell.
type kin struct {
	action   *action
	mark     uint64 // 0: it has none
	person   bool   // a person approved it
	children bool   // a rule allows what it starts
	left     bool   // at the last look nobody was of it
}

// seat is where a program that started an action stands in its job.
type seat struct {
	proc
	pgid          int
	stdin, stdout uint64   // inodes of the pipes that they are, else 0
	inputs        []uint64 // inodes of what it is given to read that others can write to while it runs
	line          string
}

func seatOf(x *judge.Exec) seat {
	return seat{
		proc: procOf(x), pgid: x.PGID, stdin: x.Stdin, stdout: x.Stdout, line: x.Command.Line,
		inputs: slices.DeleteFunc(append(slices.Clone(x.Pipes), x.Input), func(inode uint64) bool { return inode == 0 }),
	}
}

// fedFromOutside says whether a program of an action is fed by way of what the
// action got from who started it: on its standard input, or in the place of a
// script. An approval doesn't cover what it starts.
func (a *action) fedFromOutside(x *judge.Exec) bool {
	return slices.ContainsFunc(a.seats, func(m seat) bool {
		return slices.ContainsFunc(m.inputs, func(inode uint64) bool { return slices.Contains(x.Feeds, inode) })
	})
}

// maxSeats bounds a job: what joins one that is full is an action of its own.
const maxSeats = 16

// maxUpkeep bounds what is remembered of the agent's housekeeping.
const maxUpkeep = 256

// kinOf makes a kin of an action. What an agent's own process becomes is told
// by its parents alone, as it covers nothing.
func (s *Session) kinOf(a *action) *kin {
	k := &kin{action: a}
	if !a.becomes {
		s.marked++
		k.mark = s.marked
		s.kins[k.mark] = k
	}
	return k
}

// belongs finds the process that an exec descends from, as far as that is
// known, and the kin that it is of. When there is none though it looks like
// one's, doubt says why in words.
func (s *Session) belongs(e *judge.Exec) (p *process, k *kin, doubt string) {
	return s.descends(gate.Party{Process: gate.Process{PID: e.PID, Start: e.Start}, Ancestors: e.Ancestors, Mark: e.Mark})
}

// descends is belongs for any process.
func (s *Session) descends(of gate.Party) (p *process, k *kin, doubt string) {
	if p = s.procs[proc{of.PID, of.Start}]; p != nil {
		return p, p.kin, ""
	}
	for _, a := range of.Ancestors {
		if p = s.procs[proc{a.PID, a.Start}]; p != nil {
			break
		}
	}
	if k = s.kins[of.Mark]; k != nil {
		return p, k, ""
	}
	if p != nil && p.kin != nil && p.kin.mark != 0 {
		doubt = "its parent became what was judged only after it had started this"
	}
	return p, nil, doubt
}

// await puts a process in its place when the program begins that it was allowed
// to start, and not before: the kernel may still refuse it, and then the process
// stays what it was. The program begins once its start is recorded. counted says
// that the action waits for its end.
func (s *Session) await(e *judge.Exec, p *process, counted bool, recorded func() error) {
	s.starting[e.Exec] = start{p, counted}
	mark := uint64(0)
	if p.kin != nil && p.kin.mark != e.Mark {
		mark = p.kin.mark
	}
	e.OnBegin(func() error {
		// On the gate's goroutine; the process stands before its first
		// instruction and is its only thread.
		if mark != 0 {
			if err := gate.SetMark(e.PID, mark); err != nil {
				return err
			}
		}
		if err := recorded(); err != nil {
			return errors.New(whyUnrecorded)
		}
		s.submit(func() { s.began(e.Exec) })
		return nil
	})
}

// start is an exec that was let happen and hasn't yet.
type start struct {
	*process
	counted bool
}

// began is a program that stands in its process now.
func (s *Session) began(e *gate.Exec) {
	st, ok := s.starting[e]
	if !ok {
		return
	}
	delete(s.starting, e)
	p, old := st.process, s.procs[st.proc]
	s.procs[p.proc] = p
	if old == nil || !old.leader {
		return
	}
	if old.action == p.action {
		p.leader = true
		return
	}
	// An agent that another started, and that becomes another program.
	s.leaderGone(old.action, nil)
}

// leaderGone ends an action with the last of those that it waits for.
func (s *Session) leaderGone(a *action, last *api.Exit) {
	a.leaders--
	if last != nil {
		a.last = last
	}
	if a.leaders > 0 || a.State != api.ActionRunning {
		return
	}
	s.finish(a, a.last)
}

// job finds the action whose job an exec belongs to: the same process group as
// a shell with job control makes them, or joined to it by a pipe. That says what
// it is shown with, and nothing about its verdict: the agent chooses its groups
// and pipes.
func (s *Session) job(e *judge.Exec, parent *process) *action {
	joined := func(a *action, m seat) bool {
		if parent != nil && a.parent != nil && parent.proc == a.parent.proc && m.pgid == e.PGID && e.PGID != parent.pgid {
			return true
		}
		return m.stdout != 0 && m.stdout == e.Stdin || m.stdin != 0 && m.stdin == e.Stdout
	}
	for _, a := range s.forming {
		for _, m := range a.members {
			if !a.becomes && len(a.members) < maxSeats && joined(a, seatOf(m)) {
				return a
			}
		}
	}
	for _, a := range s.actions {
		if a.State != api.ActionRunning || a.agent != nil || len(a.seats) >= maxSeats {
			continue
		}
		for _, m := range a.seats {
			if joined(a, m) {
				return a
			}
		}
	}
	return nil
}

// titleOf is an action's, of all that stand in its job.
func titleOf(seats []seat) string {
	var lines []string
	for _, m := range seats {
		lines = append(lines, m.line)
	}
	return strings.Join(lines, " | ")
}

// shed gives up what is only needed while an action runs, and the kins of all
// that are over once nobody was found to be of them twice in a row: a process
// may have been forked while they were looked for.
func (s *Session) shed(a *action) {
	a.commands, a.members, a.seats, a.shown = nil, nil, nil, nil
	living := s.box.Marks()
	for mark, k := range s.kins {
		if k.action.State != api.ActionEnded {
			continue
		}
		left := living[mark] == 0
		if left && k.left {
			delete(s.kins, mark)
		}
		k.left = left
	}
}

// tree lists the living processes of an action: those that began a program and
// those of its kins.
func (s *Session) tree(a *action) []proc {
	var out []proc
	list, err := s.box.Marked(func(mark uint64) bool {
		k := s.kins[mark]
		return k != nil && k.action == a
	})
	if err != nil {
		s.log.Warn("cannot list the sandbox's processes", "error", err)
	}
	for _, p := range list {
		out = append(out, proc{p.PID, p.Start})
	}
	for _, p := range s.procs {
		if p.action == a && !slices.Contains(out, p.proc) && s.box.Alive(p.pid, p.start) {
			out = append(out, p.proc)
		}
	}
	return out
}
