package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/loop"
)

// drainTime is how long the end waits for the agent's last words. The PTY of a
// sandbox that is gone ends by itself at once.
const drainTime = 2 * time.Second

// end settles what the sandbox left when it ended, whatever ended it: its last
// words, its last files, what was open; then it is recorded, and the session is
// closed. Every step goes on when one fails.
func (s *Session) end(exit runner.Exit, failure error) {
	if why := s.starvation(exit.Code, exit.Signal); why != "" {
		s.stop(api.ByLimit, why)
	}
	s.stop(api.ByAgent, cramped(s.info.Limits, exit.Signal))
	if failure != nil {
		why := "the agent didn't run: " + failure.Error()
		if errors.Is(failure, runner.ErrHolder) || errors.Is(failure, runner.ErrFirst) || errors.Is(failure, runner.ErrMounts) {
			why = failure.Error()
		}
		s.info.EndedBy, s.info.Reason = api.ByFailure, api.Escape(api.Trim(why, maxReason))
		s.note(true, "%s", why)
	}
	s.loop.Enter(loop.Draining)
	if s.wall != nil {
		s.wall.Stop()
	}
	if s.quiet != nil {
		s.quiet.Stop()
	}
	for _, a := range s.actions.forming {
		if a.forming != nil {
			a.forming.Stop()
		}
	}
	s.actions.forming = nil
	s.info.Ports, s.info.Servers, s.info.Pages = s.served(), nil, nil
	s.loop.Aside(func() func() {
		s.watcher.Close()
		s.sources.Close()
		s.ports.Close()
		s.files.Over()
		select {
		case <-s.term.Ended():
		case <-time.After(drainTime):
		}
		screen := s.term.Last()
		s.ledger.Output()
		s.term.Close()
		if s.unsealed != nil { // else nobody seals it
			<-s.unsealed
		}
		cerr := s.box.Close(context.Background())
		hash, _, herr := s.store.PutBody(context.Background(), bytes.NewReader(screen.Data))
		return func() {
			if cerr != nil {
				s.note(true, "the sandbox wasn't removed cleanly: %v", cerr)
			}
			if herr == nil {
				s.info.Screen = hash.String()
			}
			s.info.Cols, s.info.Rows = screen.Cols, screen.Rows
			s.lastCheckpoint(exit)
		}
	})
}

// lastCheckpoint says what the files were at the end. The session needn't be
// failed any more for one that can't be taken: the one before stands.
func (s *Session) lastCheckpoint(exit runner.Exit) {
	s.settle(func(cp *files.Checkpoint, err error) {
		if err != nil {
			s.log.Error("the files at the end aren't known", "error", err)
			if s.info.EndedBy != api.ByFailure {
				s.info.Reason = api.Escape(api.Trim("the files at its end aren't recorded: "+err.Error(), maxReason))
			}
		}
		for _, a := range s.actions.alive() { // what ran until the end owns what it changed
			if a.State == api.ActionRunning && a.Before != 0 {
				s.told(a, func(t files.Told) { s.own(a, t) })
			}
		}
		info := s.info
		s.loop.Aside(func() func() {
			changed, unapplied := 0, 0
			left := s.leftInHome()
			if cp != nil {
				has := s.files.InProject
				if info.Applies == 0 && info.Parent == nil {
					has = nil
				}
				var err error
				if changed, err = s.files.Changed(context.Background(), cp.Manifest); err == nil {
					unapplied, err = s.files.Unapplied(context.Background(), cp.Manifest, has)
				}
				if err == nil && has != nil && s.cfg.Returned != nil {
					var more []string
					more, err = s.cfg.Returned(context.Background(), info, s.files, cp.Manifest, cp.ID)
					unapplied += len(more)
				}
				if err != nil {
					s.log.Error("what the session changed can't be counted", "error", err)
				}
			}
			return func() {
				s.info.Changed, s.info.Unapplied, s.info.HomeLeft = changed, unapplied, left
				if traps := left.Traps(); traps != "" {
					s.note(true, "%s", traps)
				}
				s.loop.WhenIdle(func() { s.conclude(exit) })
			}
		})
	})
}

// conclude ends what was going on and records the end. Nothing else is under
// way by now.
func (s *Session) conclude(exit runner.Exit) {
	now := time.Now().UTC()
	events := s.lost.events(s)
	for _, q := range s.questions {
		if q.to(questionClosed, "", "withdrawn") == nil {
			events = append(events, q.event("closed"))
		}
	}
	for _, a := range s.actions.all {
		switch a.State {
		case api.ActionHeld:
			_ = a.to(api.ActionAbandoned) // the table has it
			a.EndedAt, a.Reason = now, "the session ended"
			events = append(events, s.actionEvent(a, "abandoned"))
		case api.ActionRunning:
			_ = a.to(api.ActionEnded) // the table has it
			a.EndedAt = now
			a.Exit = cmp.Or(a.Exit, a.last)
			events = append(events, s.actionEvent(a, "ended"))
		}
	}
	events = append(events, s.tellEnds()...)
	s.info.State, s.info.EndedAt = api.SessionEnded, now
	s.info.Beside = nil
	if !exit.Known { // PID 1 was killed, and the agent with it
		exit.Signal = "SIGKILL"
	}
	s.info.Exit = &api.Exit{Code: exit.Code, Signal: exit.Signal}
	if n := unix.SignalNum(exit.Signal); n != 0 {
		s.info.Exit.Code = 128 + int(n) // as a shell says it
	}
	last := s.changed("ended")
	s.final = *last.Session
	if !s.listed { // the agent never was: there is nothing to be told of
		s.shut()
		return
	}
	s.loop.Aside(func() func() {
		if err := s.ledger.End(append(events, last)...); err != nil {
			s.log.Error("the session's end isn't recorded", "error", err)
		}
		s.sealEnd()
		return s.shut
	})
}

// shut lets go of everything, once the end is in the record or can't be.
func (s *Session) shut() {
	s.loop.Enter(loop.Recorded)
	s.ledger.Close()
	s.loop.Enter(loop.Closed)
}
