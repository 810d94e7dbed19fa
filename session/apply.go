package session

import (
	"context"
	"time"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/loop"
)

// Desk is who has a live session while something of it is applied: an Owner of
// package apply.
type Desk struct{ s *Session }

// Desk gives the session's.
func (s *Session) Desk() Desk { return Desk{s} }

// holdWait is how long another apply is waited for: one that was stopped is through
// in a moment.
const holdWait = 5 * time.Second

// Hold keeps the session from coming to its end until it is released. One at a
// time has it.
func (d Desk) Hold(ctx context.Context) (release func(), err error) {
	s := d.s
	select {
	case s.applying <- struct{}{}:
	case <-time.After(holdWait):
		return nil, api.Problemf(api.CodeBusy, "another apply of this session is under way; try again when it is through")
	case <-s.Done():
		return nil, ErrEnded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var end func(then func())
	// What has begun must be known, so that it is ended.
	if err := s.loop.Request(context.WithoutCancel(ctx), func() { end = s.loop.Begin() }); err != nil {
		<-s.applying
		return nil, err
	}
	return func() {
		<-s.applying
		end(nil)
	}, nil
}

// Settle has all changes so far be in a checkpoint.
func (d Desk) Settle(ctx context.Context) error {
	_, err := loop.Ask(ctx, d.s.loop, func(reply func(*files.Checkpoint, error)) { d.s.checkpoint(reply) })
	return err
}

// Record commits an apply as it is after an event, and the session's numbers.
func (d Desk) Record(ctx context.Context, event string, a api.Apply, count func(*api.Session)) error {
	s := d.s
	return s.loop.Do(ctx, func(done func(error)) {
		count(&s.info)
		s.files.Bump() // changes say whether they were applied
		s.record(done, api.Event{Kind: event, Apply: &a}, s.changed("counted"))
	})
}
