package session

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Live reads a session that this process owns: from the record, which is ahead
// of everything shown, and for what moves (the files, what is held, events as
// they happen) from the session itself.
type Live struct {
	*History
	s *Session
}

// Reader answers questions about the session.
func (s *Session) Reader() *Live {
	return &Live{History: NewHistory(s.store, func(id string) bool { return id == s.cfg.ID }), s: s}
}

// Questions lists what is held, oldest first.
func (l *Live) Questions(ctx context.Context, id string) ([]api.Question, error) {
	out := []api.Question{}
	err := l.s.call(ctx, func() {
		for _, q := range l.s.questions {
			if q.Open() {
				out = append(out, q.Question)
			}
		}
	})
	if errors.Is(err, ErrEnded) {
		return l.History.Questions(ctx, id)
	}
	return out, err
}

// Changes is a page of what an action changed, or for action 0 of how the files
// differ from the project folder.
func (l *Live) Changes(ctx context.Context, id string, n int, p api.Page) (api.Changes, error) {
	from, to, version, err := l.scope(ctx, n)
	if errors.Is(err, ErrEnded) {
		return l.History.Changes(ctx, id, n, p)
	}
	if err != nil {
		return api.Changes{}, err
	}
	out, err := l.s.files.Page(ctx, from, to, p)
	out.Scope, out.Version = scopeName(n), version
	return out, err
}

// Diff is one changed file's difference in the scope that Changes has.
func (l *Live) Diff(ctx context.Context, id, key string, n int) (api.FileDiff, error) {
	from, to, _, err := l.scope(ctx, n)
	if errors.Is(err, ErrEnded) {
		return l.History.Diff(ctx, id, key, n)
	}
	if err != nil {
		return api.FileDiff{}, err
	}
	return l.s.files.Diff(ctx, key, from, to)
}

// Diffs yields the differences of all changed files in that scope, by path.
func (l *Live) Diffs(ctx context.Context, id string, n int) iter.Seq2[api.FileDiff, error] {
	return func(yield func(api.FileDiff, error) bool) {
		from, to, _, err := l.scope(ctx, n)
		switch {
		case errors.Is(err, ErrEnded):
			l.History.Diffs(ctx, id, n)(yield)
		case err != nil:
			yield(api.FileDiff{}, err)
		default:
			l.s.files.Diffs(ctx, from, to)(yield)
		}
	}
}

// scope is the two states that an answer compares, and the version it is of.
func (l *Live) scope(ctx context.Context, n int) (from, to *manifest.Manifest, version int64, err error) {
	version = l.s.files.AsOf() // before anything is looked at
	var a *action
	var copied api.Action
	if err := l.s.call(ctx, func() {
		if a = l.s.action(n); a != nil {
			copied = a.Action
		}
	}); err != nil {
		return nil, nil, 0, err
	}
	now, version, err := l.s.files.ScanSince(ctx, version)
	if err != nil || n == 0 {
		return nil, now, version, err
	}
	if a == nil {
		return nil, nil, 0, api.Problemf(api.CodeNotFound, "there is no action %d", n)
	}
	if from, to, err = l.s.files.OfAction(ctx, copied, now); to == nil && err == nil {
		from, to = now, now // it hasn't run, so it has changed nothing
	}
	return from, to, version, err
}

// scopeName is what Changes calls the scope of an action, or of all.
func scopeName(n int) string {
	if n == 0 {
		return "session"
	}
	return "action " + strconv.Itoa(n)
}

// Events yields recorded events from a sequence number on, then what happens.
func (l *Live) Events(ctx context.Context, _ string, from uint64) iter.Seq2[api.Event, error] {
	return l.s.ledger.Events(ctx, from)
}
