package session

import (
	"bytes"
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/session/api"
)

// drainTime is how long the end waits for the agent's last words. The PTY of a
// sandbox that is gone ends by itself at once.
const drainTime = 2 * time.Second

// end records how everything stood when the sandbox ended and closes the session.
func (s *Session) end(exit runner.Exit, failure error) {
	s.stopping, s.ending = true, true
	close(s.closing)
	if failure != nil {
		s.note(true, "the agent didn't run: %v", failure)
	}
	if s.wall != nil {
		s.wall.Stop()
	}
	if s.quiet != nil {
		s.quiet.Stop()
	}
	for _, a := range s.forming {
		if a.forming != nil {
			a.forming.Stop()
		}
	}
	s.forming = nil
	go func() {
		s.watcher.Close()
		select {
		case <-s.term.eof:
		case <-time.After(drainTime):
		}
		frame, size := s.term.last()
		s.term.close()
		err := s.box.Close(context.Background())
		hash, _, herr := s.store.PutBody(context.Background(), bytes.NewReader(frame))
		err = errors.Join(err, herr)
		s.post(func() {
			if err != nil {
				s.note(true, "the sandbox wasn't removed cleanly: %v", err)
			}
			if herr == nil {
				s.info.Screen = hash.String()
			}
			s.info.Cols, s.info.Rows = size.cols, size.rows
			s.settleFiles(exit)
		})
	}()
}

// settleFiles takes the last checkpoint; there is nothing left to freeze.
func (s *Session) settleFiles(exit runner.Exit) {
	if s.checking { // a checkpoint under way ends by itself
		s.waiting = append([]func(){func() { s.settleFiles(exit) }}, s.waiting...)
		return
	}
	s.waiting = nil
	s.checkpoint(func(cp *checkpoint) { s.conclude(exit, cp) })
}

// conclude ends what was going on and records the end.
func (s *Session) conclude(exit runner.Exit, cp *checkpoint) {
	now := time.Now().UTC()
	var events []api.Event
	for _, q := range s.questions {
		if q.Open() {
			q.Closed = "withdrawn"
			copied := q.Question
			events = append(events, api.Event{Kind: "question.closed", Question: &copied})
		}
	}
	var open []*action
	for _, a := range s.actions {
		switch a.State {
		case api.ActionHeld:
			_ = a.to(api.ActionAbandoned) // the table has it
			a.EndedAt, a.Reason = now, "the session ended"
			events = append(events, s.actionEvent(a, "abandoned"))
		case api.ActionRunning:
			_ = a.to(api.ActionEnded) // the table has it
			a.EndedAt, a.After = now, cp.id
			if a.Exit == nil {
				a.Exit = a.last
			}
			open = append(open, a)
		}
	}
	go func() {
		// What ran until the end owns what it changed.
		for _, a := range open {
			if a.Housekeeping || a.agent != nil || a.Before == 0 {
				continue
			}
			changed, err := s.files.betweenIDs(context.Background(), a.Before, cp)
			if err != nil || len(changed) == 0 {
				continue
			}
			a.Files = len(changed)
			a.Added, a.Removed = s.files.lines(context.Background(), changed)
			if a.Review == api.ReviewNone {
				_ = a.review(api.ReviewOpen) // the table has it
			}
		}
		s.post(func() {
			for _, a := range open {
				events = append(events, s.actionEvent(a, "ended"))
			}
			s.info.State, s.info.EndedAt = api.SessionEnded, now
			if !exit.Known { // PID 1 was killed, and the agent with it
				exit.Signal = "SIGKILL"
			}
			s.info.Exit = &api.Exit{Code: exit.Code, Signal: exit.Signal}
			if n := unix.SignalNum(exit.Signal); n != 0 {
				s.info.Exit.Code = 128 + int(n) // as a shell says it
			}
			last := s.changed("ended")
			s.final = *last.Session
			s.rec.record(func(err error) {
				if err != nil {
					s.log.Error("the session's end isn't recorded", "error", err)
				}
				go s.letGo()
			}, append(events, last)...)
		})
	}()
}

// letGo ends the goroutines once the end is in the record.
func (s *Session) letGo() {
	s.rec.close()
	s.news.close()
	close(s.finished)
	close(s.ended)
}

// Exit is how the agent ended; valid once Done is closed.
func (s *Session) Exit() api.Exit {
	if s.final.Exit == nil {
		return api.Exit{Code: 1}
	}
	return *s.final.Exit
}
