package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"stepbox/session/api"
	"stepbox/session/terminal"
)

// fakeSession is what lies below the server: one session, "one", and its
// record. It notes what is asked of it and answers with what it is told to.
type fakeSession struct {
	info  api.Session
	err   error // of everything
	after error // of a stream, after its first value
	term  *terminal.Terminal

	mu    sync.Mutex
	asked []string // guarded by mu
}

func (f *fakeSession) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.err
}

// of is note for what names a session.
func (f *fakeSession) of(id, format string, args ...any) error {
	if err := f.note(format, args...); err != nil || id == "one" {
		return err
	}
	return api.Problemf(api.CodeNotFound, "there is no session %q", id)
}

func streamOf[T any](err, after error, v T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err != nil {
			yield(none, err)
			return
		}
		if yield(v, nil) && after != nil {
			yield(none, after)
		}
	}
}

func (f *fakeSession) Sessions(context.Context) ([]api.Session, error) {
	return []api.Session{f.info}, f.note("Sessions")
}

func (f *fakeSession) Session(_ context.Context, id string) (api.Session, error) {
	return f.info, f.of(id, "Session")
}

func (f *fakeSession) Actions(_ context.Context, id string) ([]api.Action, error) {
	return []api.Action{{N: 1}, {N: 2}}, f.of(id, "Actions")
}

func (f *fakeSession) Execs(_ context.Context, id string, n int) ([]api.Exec, error) {
	return []api.Exec{{ID: 7}}, f.of(id, "Execs %d", n)
}

func (f *fakeSession) Questions(_ context.Context, id string) ([]api.Question, error) {
	return []api.Question{{ID: 3}}, f.of(id, "Questions")
}

func (f *fakeSession) Attempts(_ context.Context, id string) ([]api.Attempt, error) {
	return []api.Attempt{{ID: 4}}, f.of(id, "Attempts")
}

func (f *fakeSession) Rollbacks(_ context.Context, id string) ([]api.Rollback, error) {
	return []api.Rollback{{ID: 6}}, f.of(id, "Rollbacks")
}

func (f *fakeSession) Applies(_ context.Context, id string) ([]api.Apply, error) {
	return []api.Apply{{ID: 5}}, f.of(id, "Applies")
}

func (f *fakeSession) ApplyPlan(_ context.Context, id string, r api.ApplyRequest) (api.ApplyPlan, error) {
	return api.ApplyPlan{Hash: "h"}, f.of(id, "ApplyPlan %v", r.Globs)
}

func (f *fakeSession) Apply(_ context.Context, id string, r api.ApplyRequest, tell func(api.Progress)) (api.Apply, error) {
	if err := f.of(id, "Apply %s", r.Hash); err != nil {
		return api.Apply{}, err
	}
	tell(api.Progress{Stage: "write", Part: 1, Whole: 2})
	return api.Apply{ID: 5}, f.after
}

func (f *fakeSession) UndoPlan(_ context.Context, id string, n int64) (api.ApplyPlan, error) {
	return api.ApplyPlan{Hash: "u"}, f.of(id, "UndoPlan %d", n)
}

func (f *fakeSession) Undo(_ context.Context, id string, n int64, r api.UndoRequest, _ func(api.Progress)) (api.Apply, error) {
	return api.Apply{ID: n}, f.of(id, "Undo %d %s", n, r.Hash)
}

func (f *fakeSession) Changes(_ context.Context, id string, in api.Scope, p api.Page) (api.Changes, error) {
	return api.Changes{Scope: "s"}, f.of(id, "Changes %d after %q at most %d", in.Action, p.After, p.Limit)
}

func (f *fakeSession) Diff(_ context.Context, id, key string, in api.Scope) (api.FileDiff, error) {
	return api.FileDiff{Note: "d"}, f.of(id, "Diff %q %d", key, in.Action)
}

func (f *fakeSession) Diffs(_ context.Context, id string, in api.Scope) iter.Seq2[api.FileDiff, error] {
	return streamOf(f.of(id, "Diffs %d", in.Action), f.after, api.FileDiff{Note: "d"})
}

func (f *fakeSession) Patch(_ context.Context, id string, r api.PatchRequest, w io.Writer) error {
	if err := f.of(id, "Patch %d %v", r.Scope.Action, r.Selection.Actions); err != nil {
		return err
	}
	_, err := io.WriteString(w, "diff\n")
	return err
}

func (f *fakeSession) Events(_ context.Context, id string, from uint64, _ ...string) iter.Seq2[api.Event, error] {
	return streamOf(f.of(id, "Events %d", from), f.after, api.Event{Seq: from, Kind: "live"})
}

func (f *fakeSession) Recorded(_ context.Context, id string, from uint64, _ ...string) iter.Seq2[api.Event, error] {
	return streamOf(f.of(id, "Recorded %d", from), f.after, api.Event{Seq: from, Kind: "recorded"})
}

func (f *fakeSession) Tail(_ context.Context, id string, last int) ([]api.Event, uint64, error) {
	return []api.Event{{Kind: "session.now"}}, 9, f.of(id, "Tail %d", last)
}

func (f *fakeSession) Screen(_ context.Context, id string) (api.Frame, error) {
	return api.Frame{Kind: api.FrameKeyframe, Cols: 80, Rows: 24, Data: []byte("last screen")}, f.of(id, "Screen")
}

func (f *fakeSession) Output(_ context.Context, id string) iter.Seq2[api.Frame, error] {
	return streamOf(f.of(id, "Output"), f.after, api.Frame{Kind: api.FrameOutput, Data: []byte("all of it")})
}

func (f *fakeSession) Decide(_ context.Context, d api.Decision) (api.Question, error) {
	return api.Question{ID: d.Question}, f.note("Decide %d %s %s", d.Question, d.Hash, d.Answer)
}

func (f *fakeSession) Keep(_ context.Context, n int) (api.Action, error) {
	return api.Action{N: n}, f.note("Keep %d", n)
}

func (f *fakeSession) KillAction(_ context.Context, n int) (api.Action, error) {
	return api.Action{N: n}, f.note("KillAction %d", n)
}

func (f *fakeSession) RollbackPlan(_ context.Context, r api.RollbackRequest) (api.RollbackPlan, error) {
	return api.RollbackPlan{RollbackTarget: r.RollbackTarget}, f.note("RollbackPlan %d", r.ToBefore)
}

func (f *fakeSession) Rollback(_ context.Context, r api.RollbackRequest) (api.Rollback, error) {
	return api.Rollback{RollbackTarget: r.RollbackTarget}, f.note("Rollback %d %s", r.ToBefore, r.Hash)
}

func (f *fakeSession) Publish(_ context.Context, p api.Publishing) (api.Port, error) {
	return api.Port{Port: p.Port, At: p.At}, f.note("Publish %d by %s", p.Port, p.By)
}

func (f *fakeSession) Unpublish(_ context.Context, p api.Publishing) (api.Session, error) {
	return f.info, f.note("Unpublish %d", p.Port)
}

func (f *fakeSession) SetMode(_ context.Context, m api.Mode) (api.Session, error) {
	return f.info, f.note("SetMode %s", m)
}

func (f *fakeSession) Proposals(_ context.Context, n int64) ([]api.Proposal, error) {
	return []api.Proposal{{Pattern: "go *"}}, f.note("Proposals %d", n)
}

func (f *fakeSession) AddRule(_ context.Context, r api.Rule) (api.Ruled, error) {
	return api.Ruled{Session: f.info}, f.note("AddRule %s %s by %s", r.Verdict, r.Host, r.By)
}
func (f *fakeSession) RemoveRule(_ context.Context, r api.Rule) (api.Session, error) {
	return f.info, f.note("RemoveRule %s %s", r.Verdict, r.Host)
}

func (f *fakeSession) Pause(context.Context) (api.Session, error) { return f.info, f.note("Pause") }
func (f *fakeSession) Continue(context.Context) (api.Session, error) {
	return f.info, f.note("Continue")
}
func (f *fakeSession) Kill(context.Context) (api.Session, error) { return f.info, f.note("Kill") }

func (f *fakeSession) Hear(_ context.Context, n api.News) (api.Session, error) {
	return f.info, f.note("Hear %s %s", n.Kind, n.From.ID)
}
func (f *fakeSession) Alive(context.Context) error  { return f.note("Alive") }
func (f *fakeSession) Terminal() *terminal.Terminal { return f.term }

// control finds the fake session if it lives.
func (f *fakeSession) control(id string) Controller {
	if id != "one" || !f.info.Live() {
		return nil
	}
	return f
}

var errFake = errors.New("it failed\x1b[2J")

// fakeKeeper answers for the record of all sessions.
type fakeKeeper struct{}

func (fakeKeeper) Space(_ context.Context, id string) (api.Space, error) {
	return api.Space{Files: int64(len(id))}, nil
}

func (fakeKeeper) Remove(_ context.Context, id string) error {
	return api.Problemf(api.CodeBusy, "session %s is running", id)
}

func (fakeKeeper) Collect(_ context.Context, r api.CollectRequest, tell func(api.Collecting)) (api.Collected, error) {
	tell(api.Collecting{Dropped: &api.Dropped{ID: "old"}})
	if r.Keep != nil {
		return api.Collected{}, api.Problemf(api.CodeBusy, "a session runs")
	}
	return api.Collected{Bodies: 7, Dry: r.Dry}, nil
}
