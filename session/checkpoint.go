package session

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/loop"
)

// checkpoint makes sure that all changes so far are in a checkpoint and are
// accounted for, and then goes on in the loop: with the checkpoint, or with the
// error that kept it from being taken or recorded. The session stops then:
// without it nothing could be taken back. A nil then says that nobody needs it
// now: what is half-way is left to the next one, for a while.
func (s *Session) checkpoint(then func(*files.Checkpoint, error)) { s.take(then, false) }

// settle is checkpoint for the end: what commands that run may have made is theirs.
func (s *Session) settle(then func(*files.Checkpoint, error)) { s.take(then, true) }

func (s *Session) take(then func(*files.Checkpoint, error), settles bool) {
	rests := then == nil
	if rests {
		then = func(*files.Checkpoint, error) {}
	}
	// Where edits are asked about it has to be known who runs also before the first command begins.
	s.restorer.Commands.Store(len(s.actions.alive()) > 0 || !rests && s.info.Mode == api.ModeStep)
	var t files.Taken
	s.loop.Alone(func() error {
		var err error
		t, err = s.restorer.Take(context.Background(), s.line.Last)
		return err
	}, func(err error, next func()) {
		if err != nil {
			err = fmt.Errorf("cannot take a checkpoint: %w", err)
			s.fail(err)
			then(nil, err)
			next()
			return
		}
		ran := s.accountant.Ran(t.Until, t.Froze, s.roster.ownerOf)
		if rests {
			if wait := s.early(t, ran); wait > 0 {
				s.quiet.Reset(wait)
				next()
				return
			}
		}
		s.halfway = 0
		if t.Torn != nil && s.loop.Now() < loop.Draining && !s.tornSaid {
			// The state may be one that never was; that is said, once.
			s.tornSaid = true
			s.note(true, "checkpoints are taken while the agent runs: it can't be frozen: %v", t.Torn)
		}
		s.account(t, ran, settles, func(cp *files.Checkpoint, err error) {
			then(cp, err)
			next()
		})
	})
}

// early is how long the changes of a look are left to later ones: they are half-way, or it isn't
// known whose they are until a command ends. 0: they aren't.
func (s *Session) early(t files.Taken, ran map[int]bool) time.Duration {
	switch {
	case s.halfway < maxHalfway && files.Halfway(t.Changed):
		s.halfway++
		return quietTime
	case s.info.Mode == api.ModeStep && len(t.Changed) > 0 && s.questions.commands():
		return restless // asked about before that command starts: else one that goes on writing would keep it from being answered
	case s.info.Mode == api.ModeStep && len(t.Changed) > 0:
		return files.Undecided(s.writers(), ran, time.Now())
	}
	return 0
}

// Keep marks an action's changes as reviewed.
func (s *Session) Keep(ctx context.Context, n int) (api.Action, error) {
	return loop.Ask(ctx, s.loop, func(done func(api.Action, error)) {
		a := s.actions.at(n)
		if a == nil {
			done(api.Action{}, api.Problemf(api.CodeNotFound, "there is no #%d", n))
			return
		}
		reply := func(err error) { done(a.Action, err) }
		for _, q := range s.questions {
			if !q.edit() || q.action != a || q.Closed != "" {
				continue
			}
			d := api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerKeep, By: cmp.Or(api.Person(ctx), "keep")}
			if _, err := s.questions.decidable(d, s.info.Mode == api.ModeStep); err != nil {
				reply(err)
				return
			}
			d.At, d.Action = time.Now().UTC(), n
			s.close(q, d, reply)
			return
		}
		if a.Review == api.ReviewKept {
			reply(nil)
			return
		}
		if a.Review != api.ReviewOpen {
			reply(api.Problemf(api.CodeInvalid, "#%d has no changes that wait for a review", n))
			return
		}
		if err := a.review(api.ReviewKept); err != nil {
			reply(err)
			return
		}
		a.ReviewedBy, a.KeptTo = api.Person(ctx), a.toldTo
		s.record(reply, s.actionEvent(a, "kept"), s.changed("counted"))
	})
}
