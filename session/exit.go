package session

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/judge"
)

// onExit is a process that the gate saw start and that is gone now.
func (s *Session) onExit(e gate.Exit) {
	p := s.roster.ends(e.PID, e.Start)
	if p == nil {
		return
	}
	end := api.Ended{Exec: p.exec.ID, Ran: e.At.Sub(p.exec.At)}
	if e.Known {
		end.Exit = exitOf(e)
	}
	s.ended(end)
	a := p.action
	if a != nil && a.State == api.ActionEnded {
		a.shed(&s.roster)
	}
	if a == nil || !p.leader {
		return
	}
	s.leaderGone(a, later(a.last, end.Exit, p.proc, a))
}

// ends are programs that have ended and of which that isn't recorded yet: many
// are in one event, since a build starts thousands.
type ends struct {
	list  []api.Ended
	told  int64       // events so far
	timer *time.Timer // records them before long
}

const (
	endsMost = 128         // in one event
	endsWait = time.Second // that the end of a program waits for company
)

// ended notes the end of a program.
func (s *Session) ended(e api.Ended) {
	s.ends.list = append(s.ends.list, e)
	switch n := len(s.ends.list); {
	case n >= endsMost:
		s.recordEnds()
	case n == 1:
		s.ends.timer = time.AfterFunc(endsWait, func() { s.loop.Submit(s.recordEnds) })
	}
}

func (s *Session) recordEnds() {
	if e := s.tellEnds(); e != nil {
		s.record(nil, e...)
	}
}

// tellEnds is the event of the programs that have ended, if any have.
func (s *Session) tellEnds() []api.Event {
	if len(s.ends.list) == 0 {
		return nil
	}
	s.ends.timer.Stop()
	s.ends.told++
	e := api.Event{Kind: "execs.ended", Ends: &api.Ends{ID: s.ends.told, List: s.ends.list}}
	s.ends.list = nil
	return []api.Event{e}
}

// onExiting is an action's leader that is about to end, which nobody has noticed
// yet: what the files are now is what the action left, and what its parent does
// next isn't its doing.
func (s *Session) onExiting(e gate.Exit, goOn func()) {
	p := s.roster.procs[proc{e.PID, e.Start}]
	if p == nil || p.action == nil || !p.leader || p.action.leaders > 1 || p.action.State != api.ActionRunning {
		goOn()
		return
	}
	p.action.exiting = true
	s.checkpoint(func(cp *files.Checkpoint, err error) {
		if err == nil && p.action.exiting { // else something has joined it, and goes on
			p.action.atExit = cp
		}
		goOn()
	})
}

// later picks the exit that a shell reports for a job: its last member's.
func later(last, now *api.Exit, p proc, a *action) *api.Exit {
	if len(a.seats) > 0 && a.seats[len(a.seats)-1].proc == p || last == nil {
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
	why = api.Escape(api.Trim(why, 500))
	gone := func(x *judge.Exec) bool { return x.Exec == e }
	for _, q := range slices.Concat(s.questions, s.letting) {
		if !slices.ContainsFunc(q.execs, gone) {
			continue
		}
		q.execs = slices.DeleteFunc(q.execs, gone)
		if len(q.execs) > 0 || !q.Open() {
			continue
		}
		s.withdraw(q)
		if p, nested := q.about.(*aboutProgram); nested && p.joins {
			s.leaderGone(q.action, nil)
		}
	}
	if p := s.roster.fails(e); p != nil {
		exec := p.exec
		exec.Failure = why
		s.record(nil, api.Event{Kind: "exec.failed", Exec: &exec})
		if p.leader {
			if p.action.person { // who approved it takes it that it runs
				s.note(true, "#%d was approved and did not start: %s", p.action.N, api.Escape(why))
			}
			s.leaderGone(p.action, nil)
		}
		return
	}
	if a := s.actions.lost(e); a != nil {
		if len(a.members) > 0 || a.State != api.ActionHeld {
			return
		}
		s.actions.decided(a)
		if err := a.to(api.ActionAbandoned); err != nil {
			s.fail(err)
			return
		}
		a.EndedAt, a.Reason = time.Now().UTC(), why
		s.record(nil, s.actionEvent(a, "abandoned"), s.changed("counted"))
		return
	}
	s.note(true, "%s did not start: %s", listedArgs(e.Argv), why)
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
	s.recordEnds()
	s.finish(a, a.last)
}

// shed gives up what is only needed while an action runs.
func (a *action) shed(r *roster) {
	a.commands, a.seats = nil, nil
	if !a.lingers { // else what it starts may have been approved
		a.shown = nil
	}
	r.forget(a)
}

func listedArgs(argv []string) string {
	if len(argv) == 0 {
		return "a program"
	}
	return api.Escape(api.Trim(argv[0], 200))
}
