package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stepbox/session/api"
	"stepbox/session/files"
)

// checkpoint makes sure that all changes so far are in a checkpoint and are
// accounted for, and then goes on in the loop: with the checkpoint, or with the
// error that kept it from being taken or recorded. The session stops then:
// without it nothing could be taken back.
func (s *Session) checkpoint(then func(*files.Checkpoint, error)) {
	s.restorer.Commands.Store(len(s.actions.alive()) > 0)
	var t files.Taken
	s.alone(func() error {
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
		if t.Torn != nil && s.life.now < phaseDraining && !s.tornSaid {
			// The state may be one that never was; that is said, once.
			s.tornSaid = true
			s.note(true, "checkpoints are taken while the agent runs: it can't be frozen: %v", t.Torn)
		}
		s.account(t, func(cp *files.Checkpoint, err error) {
			then(cp, err)
			next()
		})
	})
}

// Keep marks an action's changes as reviewed.
func (s *Session) Keep(ctx context.Context, n int) (api.Action, error) {
	done := make(chan result[api.Action], 1)
	err := s.request(ctx, func() { s.keep(n, done) })
	if err != nil {
		return api.Action{}, err
	}
	r, err := await(ctx, s, done)
	return r.value, errors.Join(r.err, err)
}

func (s *Session) keep(n int, done chan<- result[api.Action]) {
	a := s.actions.at(n)
	if a == nil {
		done <- result[api.Action]{err: api.Problemf(api.CodeNotFound, "there is no action %d", n)}
		return
	}
	reply := func(err error) { done <- result[api.Action]{a.Action, err} }
	for _, q := range s.questions {
		if q.Subject != api.SubjectEdit || q.action != a || q.Closed != "" {
			continue
		}
		d := api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerKeep, By: "keep"}
		if _, err := s.questions.decidable(d, s.info.Mode == api.ModeStep); err != nil {
			reply(err)
			return
		}
		d.At, d.Action = time.Now().UTC(), n
		s.close(q, d, reply)
		return
	}
	switch a.Review {
	case api.ReviewKept:
		reply(nil)
		return
	case api.ReviewOpen:
	default:
		reply(api.Problemf(api.CodeInvalid, "action %d has no changes that wait for a review", n))
		return
	}
	if err := a.review(api.ReviewKept); err != nil {
		reply(err)
		return
	}
	s.record(reply, s.actionEvent(a, "kept"), s.changed("counted"))
}

// result is what a request comes to.
type result[T any] struct {
	value T
	err   error
}

// await waits for what the loop sends; done holds one.
func await[T any](ctx context.Context, s *Session, done <-chan T) (T, error) {
	var none T
	select {
	case v := <-done:
		return v, nil
	case <-s.Done():
		select {
		case v := <-done: // the end came after it
			return v, nil
		default:
			return none, ErrEnded
		}
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// wait waits for what came of a request that has no other result.
func (s *Session) wait(ctx context.Context, done <-chan error) error {
	err, late := await(ctx, s, done)
	return errors.Join(err, late)
}
