package session

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"stepbox/runner/overlay"
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
	out, err := l.s.files.page(ctx, from, to, p)
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
	return l.s.files.diff(ctx, key, from, to)
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
			l.s.files.diffs(ctx, from, to)(yield)
		}
	}
}

// scope is the two states that an answer compares, and the version it is of.
func (l *Live) scope(ctx context.Context, n int) (from, to *overlay.Manifest, version int64, err error) {
	version = l.s.files.asOf() // before anything is looked at
	var a *action
	var copied api.Action
	if err := l.s.call(ctx, func() {
		if a = l.s.action(n); a != nil {
			copied = a.Action
		}
	}); err != nil {
		return nil, nil, 0, err
	}
	now, version, err := l.s.files.scanSince(ctx, version)
	if err != nil || n == 0 {
		return nil, now, version, err
	}
	if a == nil {
		return nil, nil, 0, api.Problemf(api.CodeNotFound, "there is no action %d", n)
	}
	if from, to, err = l.s.files.ofAction(ctx, copied, now); to == nil && err == nil {
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
	return l.s.Events(ctx, from)
}

// View is one viewer's place at the session's terminal. One goroutine may call
// Next while others call the rest.
type View struct {
	t     *terminal
	next  func(stop <-chan struct{}) ([]api.Frame, error)
	left  func()
	piped *literal // what a follower's input is made into; nil: it is typed as it is
}

// Terminal joins the session's terminal; the first frame is a keyframe.
func (s *Session) Terminal() *View {
	v := s.term.join()
	return &View{t: s.term, next: v.next, left: func() { s.term.leave(v) }}
}

// Output follows the session's output from its first byte on; there are no
// keyframes. A follower that doesn't read slows the agent. It gets all of it
// also when it comes after the end.
func (s *Session) Output() *View {
	f := s.term.follow()
	return &View{t: s.term, next: f.next, left: f.leave, piped: new(literal)}
}

// Next waits for frames. io.EOF says that the terminal closed or ctx is done;
// any other error that what was printed can't be read.
func (v *View) Next(ctx context.Context) ([]api.Frame, error) { return v.next(ctx.Done()) }

// Input queues bytes for the agent, in the order of the calls; it blocks while
// the agent doesn't read them. A viewer's are typed at the agent's terminal. A
// follower's are data, as from a pipe, and none are the end of it.
func (v *View) Input(p []byte) {
	switch {
	case v.piped == nil:
	case len(p) == 0:
		p = v.piped.end()
	case byLines(v.t.pty):
		p = v.piped.typed(p)
	}
	v.t.send(p)
}

// Resize sets the size of the agent's terminal; the last viewer to ask wins.
func (v *View) Resize(cols, rows int) { v.t.setSize(cols, rows) }

// Close leaves the terminal. Next must not be running, nor be called again.
func (v *View) Close() { v.left() }
