package session

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"stepbox/runner"
	"stepbox/session/api"
)

// Whose a change is. The kernel doesn't say who wrote a file, but a process that
// ran nothing since the last checkpoint can't have written since. So what the
// processes had run is noted with each checkpoint, and compared:
//
//   - nothing ran but commands and what they left running: the change is theirs;
//   - they ran nothing: it is the agent's own, an edit;
//   - both ran: a command that runs for less than absorbTime, or that ends right
//     now, is the likely writer and gets it, since its changes are reviewed at its
//     end, soon. Else the change is an edit, which is asked about and reviewed,
//     and says with whom it is shared. It is an edit too when the agent waits for
//     none of them: it started something else since, as beside a tool server.
//
// So an edit by the agent is never absorbed by something that was approved
// before and lives on.

// absorbTime is how long a command that runs takes changes that could as well be
// the agent's own.
const absorbTime = time.Minute

// watching is what is known of what runs. Owned by the loop, but for wanted.
type watching struct {
	wanted atomic.Bool // something runs that could have made changes besides the agent
	again  *time.Timer // until the next look
	base   *glance     // when the changes began that aren't accounted for; nil: not known
}

// glance is what the processes of the sandbox had run at a moment, and whose they
// were: an action that is or was a command, or nil, the agent itself.
type glance struct {
	list   []runner.Activity
	owners []*action
}

// alive lists the commands that can make changes: those that run, and those that
// left something running.
func (s *Session) alive() []*action {
	var l []*action
	for _, a := range s.actions {
		if a.Kind == api.KindCommand && !a.Housekeeping && a.agent == nil && (a.State == api.ActionRunning || a.lingers) {
			l = append(l, a)
		}
	}
	return l
}

// fresh says whether a command takes changes that could be the agent's own.
func (a *action) fresh(now time.Time) bool {
	return a.State == api.ActionRunning && a.atExit == nil && (a.exiting || now.Sub(a.ReleasedAt) < absorbTime)
}

// goesOn notes what the process that starts something hasn't waited for.
func (s *Session) goesOn(parent *process) {
	for _, a := range s.alive() {
		if parent != nil && a.parent != nil && a.parent.proc == parent.proc {
			a.beside = true
		}
	}
}

// owners says whose each process is. One that the gate has seen start is known,
// and so is one in the cgroup of an action's kin; any other belongs where it was
// seen before, or where its parent does. Where there are no cgroups, an orphan
// that was never seen belongs to the action whose process group it is in, or
// else to the agent.
func (s *Session) owners(list []runner.Activity) *glance {
	l := &glance{list, make([]*action, len(list))}
	known := make(map[proc]*action)
	if b := s.watch.base; b != nil {
		for i, p := range b.list {
			known[proc{p.PID, p.Start}] = b.owners[i]
		}
	}
	index := make(map[int]int, len(list))
	for i, p := range list {
		index[p.PID] = i
		if k := s.kins[p.Within]; k != nil {
			known[proc{p.PID, p.Start}] = k.action
		}
	}
	alive := s.alive()
	done := make([]bool, len(list))
	var own func(i, depth int) *action
	own = func(i, depth int) *action {
		if done[i] || depth > len(list) {
			return l.owners[i]
		}
		p := list[i]
		a, seen := known[proc{p.PID, p.Start}]
		parent, here := index[p.Parent]
		switch t := s.procs[proc{p.PID, p.Start}]; {
		case t != nil:
			a = t.action
		case seen:
		case here:
			a = own(parent, depth+1)
		default:
			a = inGroup(alive, p.Group)
		}
		if a != nil && (a.Housekeeping || a.agent != nil) {
			a = nil
		}
		l.owners[i], done[i] = a, true
		return a
	}
	for i := range list {
		own(i, 0)
	}
	return l
}

func inGroup(alive []*action, group int) *action {
	for _, a := range alive {
		for _, m := range a.seats {
			if m.pgid == group && (a.parent == nil || group != a.parent.pgid) {
				return a
			}
		}
	}
	return nil
}

// of lists an action's processes.
func (l *glance) of(a *action) []proc {
	var out []proc
	for i, o := range l.owners {
		if o == a {
			out = append(out, proc{l.list[i].PID, l.list[i].Start})
		}
	}
	return out
}

// ran says who can have run between two looks; nil means everyone.
func ran(base, now *glance) map[*action]bool {
	if base == nil || now == nil {
		return nil
	}
	who := make(map[*action]bool)
	index := make(map[proc]int, len(now.list))
	for i, p := range now.list {
		index[proc{p.PID, p.Start}] = i
	}
	for i, b := range base.list {
		j, lives := index[proc{b.PID, b.Start}]
		if lives && still(b, now.list[j]) {
			delete(index, proc{b.PID, b.Start})
			continue
		}
		who[base.owners[i]] = true
		if lives {
			who[now.owners[j]] = true
			delete(index, proc{b.PID, b.Start})
		}
	}
	for _, j := range index { // those that are new
		who[now.owners[j]] = true
	}
	return who
}

// still says whether a process has run nothing from one look to the next.
func still(before, now runner.Activity) bool {
	return !before.Running && maps.Equal(before.Threads, now.Threads)
}

// idle says whether nothing has run from one look to the next.
func idle(before, now []runner.Activity) bool {
	return before != nil && len(before) == len(now) && slices.EqualFunc(before, now, func(b, n runner.Activity) bool {
		return b.PID == n.PID && b.Start == n.Start && still(b, n)
	})
}

// whose says which commands made the changes since the last checkpoint; none
// means that the agent made them by itself, or may have: shared are the commands
// that may have as well.
func whose(alive []*action, ran map[*action]bool, now time.Time) (theirs, shared []*action) {
	var may []*action
	for _, a := range alive {
		if ran == nil || ran[a] {
			may = append(may, a)
		}
	}
	if ran != nil && !ran[nil] {
		if len(may) == 0 {
			return alive, nil // nobody ran: a store that the disk got later
		}
		return may, nil
	}
	waited := false
	for _, a := range may {
		if a.fresh(now) {
			theirs = append(theirs, a)
			waited = waited || a.exiting || !a.beside
		}
	}
	if waited {
		return theirs, nil
	}
	return nil, may
}

// lookEvery is how often it is looked who runs while that may matter: what ran
// before a look at which no file had moved didn't write what moves later.
const lookEvery = time.Second

// keepLooking looks again and again while commands, or what they left running,
// live.
func (s *Session) keepLooking() {
	if s.watch.again != nil || s.life.now != phaseRunning || len(s.alive()) == 0 {
		return
	}
	s.watch.again = time.AfterFunc(lookEvery, func() {
		s.submit(func() {
			s.watch.again = nil
			s.advance()
		})
	})
}

// advance moves the beginning of the changes that aren't accounted for up to
// now, if there are none.
func (s *Session) advance() {
	if s.life.now != phaseRunning || len(s.alive()) == 0 {
		return
	}
	var since []runner.Activity
	s.alone(func() error {
		now := s.looked()
		if moved, err := s.files.moved(context.Background()); err == nil && !moved && s.files.scanned() == s.lastFiles.manifest {
			since = now
		}
		return nil
	}, func(_ error, next func()) {
		if since != nil {
			s.watch.base = s.owners(since)
			if events := s.survivors(s.watch.base); len(events) > 0 {
				s.record(nil, events...)
			}
		}
		s.keepLooking()
		next()
	})
}

// looked is what the processes have run by now; nil when that can't be told.
func (s *Session) looked() []runner.Activity {
	list, err := s.box.Activity()
	if err != nil {
		s.log.Warn("cannot tell what the sandbox's processes run", "error", err)
		return nil
	}
	return list
}
