package session

import (
	"context"
	"errors"
	"fmt"

	"stepbox/session/api"
	"stepbox/session/loop"
	"stepbox/session/terminal"
)

// SetMode changes how actions are judged from now on.
func (s *Session) SetMode(ctx context.Context, m api.Mode) (api.Session, error) {
	if !m.Valid() {
		return api.Session{}, api.Problemf(api.CodeUsage, "there is no mode %q: use step, policy or watch", api.Escape(string(m)))
	}
	return s.change(ctx, "mode", func() error {
		s.info.Mode = m
		s.network.Rules(s.judge.Policy(), m)
		s.reconnect()
		s.loop.Post(s.pastEdits)
		return nil
	})
}

// change sets something and returns once it is in the record.
func (s *Session) change(ctx context.Context, kind string, set func() error) (api.Session, error) {
	return loop.Ask(ctx, s.loop, func(reply func(api.Session, error)) {
		if err := set(); err != nil {
			reply(api.Session{}, err)
			return
		}
		s.info.By = api.Person(ctx)
		e := s.changed(kind)
		s.info.By = "" // what comes next isn't theirs
		s.record(func(err error) { reply(*e.Session, err) }, e)
	})
}

// Pause freezes every process of the agent until Continue. What is held stays held.
func (s *Session) Pause(ctx context.Context) (api.Session, error) {
	thaw, err := s.freezer.Freeze(ctx)
	if err != nil {
		return api.Session{}, api.Problemf(api.CodeBusy, "cannot pause: %v", err)
	}
	used := false
	out, err := s.change(ctx, "paused", func() error {
		if s.thaw != nil {
			return nil
		}
		used, s.thaw, s.info.State = true, thaw, api.SessionPaused
		return nil
	})
	if !used { // it was paused already, or has ended
		if terr := thaw(); terr != nil && err == nil {
			err = terr
		}
	}
	return out, err
}

// Continue lets a paused agent go on.
func (s *Session) Continue(ctx context.Context) (api.Session, error) {
	var thaw func() error
	out, err := s.change(ctx, "continued", func() error {
		if s.thaw == nil {
			return api.Problemf(api.CodeInvalid, "the session isn't paused")
		}
		thaw, s.thaw, s.info.State = s.thaw, nil, api.SessionRunning
		return nil
	})
	if err != nil {
		return out, err
	}
	if err := thaw(); err != nil {
		return out, fmt.Errorf("cannot continue: %w", err)
	}
	return out, nil
}

// Kill ends the whole sandbox. It returns when the record is complete.
func (s *Session) Kill(ctx context.Context) (api.Session, error) {
	why := "it was killed"
	if who := api.Person(ctx); who != "" {
		why += " by " + who
	}
	return s.End(ctx, why)
}

// End is Kill for a reason of its own.
func (s *Session) End(ctx context.Context, why string) (api.Session, error) {
	if err := s.loop.Call(ctx, func() { s.stop(api.ByPerson, why) }); err != nil && !errors.Is(err, ErrEnded) {
		return api.Session{}, err
	}
	return s.Wait(ctx)
}

// Terminal is the agent's.
func (s *Session) Terminal() *terminal.Terminal { return s.term }

// Alive returns once the session answers: its loop isn't stuck.
func (s *Session) Alive(ctx context.Context) error { return s.loop.Call(ctx, func() {}) }

// Wait waits for the session's end and says how it ended.
func (s *Session) Wait(ctx context.Context) (api.Session, error) {
	select {
	case <-s.loop.Done():
		return s.final, nil
	case <-ctx.Done():
		return api.Session{}, ctx.Err()
	}
}

// KillAction ends an action's processes, and all that they started.
func (s *Session) KillAction(ctx context.Context, n int) (api.Action, error) {
	var a *action
	var out api.Action
	if err := s.loop.Call(ctx, func() { a = s.actions.at(n) }); err != nil {
		return out, err
	}
	if a == nil {
		return out, api.Problemf(api.CodeNotFound, "there is no #%d", n)
	}
	if err := s.killTree(ctx, a); err != nil {
		return out, err
	}
	err := s.loop.Call(ctx, func() { out = a.Action })
	return out, err
}
