package session

import (
	"context"
	"errors"
	"iter"
	"slices"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/redact"
)

// Live reads a session that this process owns: from the record, which is ahead
// of everything shown, and for what moves (the files, what is held, events as
// they happen) from the session itself.
type Live struct {
	*files.History
	s *Session
}

// Reader answers questions about the session.
func (s *Session) Reader() *Live {
	l := &Live{History: files.NewHistory(s.store, func(id string) bool { return id == s.cfg.ID }), s: s}
	l.Now = l.scope
	return l
}

// Questions lists what is held, oldest first.
func (l *Live) Questions(ctx context.Context, id string) ([]api.Question, error) {
	out := []api.Question{}
	err := l.s.loop.Call(ctx, func() {
		for _, q := range l.s.questions {
			if q.Open() {
				out = append(out, redact.Of(l.s.secrets, q.Question))
			}
		}
	})
	if errors.Is(err, ErrEnded) {
		return l.History.Questions(ctx, id)
	}
	return out, err
}

// scope is the two states that an answer compares, as they are now.
func (l *Live) scope(ctx context.Context, in api.Scope) (files.Scope, error) {
	out := files.Scope{Files: l.s.files, Version: l.s.files.AsOf()} // before anything is looked at
	var a *action
	var copied api.Action
	var spans []files.Span
	var last *files.Checkpoint // what came since may be the action's; nil: it isn't, since it waits for an answer
	if err := l.s.loop.Call(ctx, func() {
		if a = l.s.actions.at(in.Action); a != nil {
			copied, spans = a.Action, slices.Clone(a.spans)
			if !l.s.questions.about(a) {
				last = l.s.line.Last
			}
		}
		if l.s.line.Last != nil {
			out.Newest = l.s.line.Last.ID
		}
	}); err != nil {
		return out, err
	}
	now, version, err := l.s.files.ScanSince(ctx, out.Version)
	out.To, out.Version = now, version
	if err == nil && in.Since != 0 {
		out.From, err = l.s.files.Since(ctx, in.Since)
	}
	if err != nil || in.Action == 0 {
		return out, err
	}
	if a == nil {
		return out, api.Problemf(api.CodeNotFound, "there is no #%d", in.Action)
	}
	if copied.State == api.ActionRunning && copied.Before != 0 {
		now, err = l.s.files.SoFar(ctx, copied.Before, spans, last, now)
	}
	if err == nil {
		out.From, out.To, err = l.s.files.OfAction(ctx, copied, now)
	}
	if out.To == nil && err == nil {
		out.From, out.To = now, now // it hasn't run, so it has changed nothing
	}
	return out, err
}

// Events yields recorded events from a sequence number on, then what happens; of
// some kinds of resources alone, if any are named.
func (l *Live) Events(ctx context.Context, _ string, from uint64, kinds ...string) iter.Seq2[api.Event, error] {
	return l.s.ledger.Events(ctx, from, kinds...)
}
