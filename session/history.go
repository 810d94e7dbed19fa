package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"stepbox/runner/overlay"
	"stepbox/session/api"
	"stepbox/session/screen"
	"stepbox/store"
)

// History reads recorded sessions. It is safe for concurrent use.
type History struct {
	store *store.Store

	mu    sync.Mutex
	files []*files // guarded by mu; of the sessions that were looked at last

	// Live says whether a supervisor owns a session. What the record calls
	// live but nobody owns was interrupted.
	Live func(id string) bool
}

// NewHistory reads what is in a store.
func NewHistory(st *store.Store, live func(id string) bool) *History {
	return &History{store: st, Live: live}
}

// doc fetches one resource as it was last recorded.
func doc[T any](ctx context.Context, st *store.Store, session string, kind store.Kind, key int64) (T, error) {
	var out T
	b, err := st.Doc(ctx, session, kind, key)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(b, &out)
}

// docs fetches all resources of a kind, by number.
func docs[T any](ctx context.Context, st *store.Store, session string, kind store.Kind) ([]T, error) {
	out := []T{}
	const page = 1000
	for after := int64(-1); ; {
		rows, err := st.Docs(ctx, session, kind, after, page)
		if err != nil {
			return nil, fmt.Errorf("cannot read the record: %w", err)
		}
		for _, r := range rows {
			var v T
			if err := json.Unmarshal(r, &v); err != nil {
				return nil, fmt.Errorf("cannot decode a %s of session %s: %w", kind, session, err)
			}
			out = append(out, v)
		}
		if len(rows) < page {
			return out, nil
		}
		after = keyOf(out[len(out)-1])
	}
}

// keyOf is a resource's number in its session.
func keyOf(v any) int64 {
	switch v := v.(type) {
	case api.Action:
		return int64(v.N)
	case api.Question:
		return v.ID
	case api.Exec:
		return v.ID
	case api.Attempt:
		return v.ID
	case api.Checkpoint:
		return v.ID
	case api.Rollback:
		return v.ID
	case api.Note:
		return v.ID
	}
	panic(fmt.Sprintf("a %T has no number", v)) // a fault of ours: no such kind is listed
}

// Sessions lists all sessions, newest first.
func (h *History) Sessions(ctx context.Context) ([]api.Session, error) {
	rows, err := h.store.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list the sessions: %w", err)
	}
	out := make([]api.Session, 0, len(rows))
	for _, r := range rows {
		var s api.Session
		if err := json.Unmarshal(r, &s); err != nil {
			return nil, fmt.Errorf("cannot decode a session: %w", err)
		}
		if s.Live() && !h.Live(s.ID) {
			var err error
			if s, err = h.Session(ctx, s.ID); err != nil {
				return nil, err
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// Session fetches one session. One that calls itself live but has no supervisor
// was interrupted.
func (h *History) Session(ctx context.Context, id string) (api.Session, error) {
	s, err := doc[api.Session](ctx, h.store, id, "session", 0)
	if errors.Is(err, store.ErrNotFound) {
		return s, api.Problemf(api.CodeNotFound, "there is no session %q", api.Escape(api.Trim(id, 80)))
	}
	if err == nil && s.Live() && !h.Live(id) {
		// Its supervisor may have recorded the end between the two looks.
		s, err = doc[api.Session](ctx, h.store, id, "session", 0)
		if err == nil && s.Live() {
			s.State, s.Held = api.SessionInterrupted, 0
			s.CutOff, err = h.cutOff(ctx, id)
		}
	}
	return s, err
}

// cutOff is where an interrupted session's last roll back was to go, if its end
// isn't in the record; else 0.
func (h *History) cutOff(ctx context.Context, id string) (int, error) {
	b, err := h.store.LastDoc(ctx, id, store.KindRollback)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	var last api.Rollback
	if err == nil {
		err = json.Unmarshal(b, &last)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read the last roll back of session %s: %w", id, err)
	}
	if !last.Open {
		return 0, nil
	}
	return last.ToBefore, nil
}

// Actions lists a session's actions.
func (h *History) Actions(ctx context.Context, id string) ([]api.Action, error) {
	return docs[api.Action](ctx, h.store, id, "action")
}

// Execs lists the programs that an action started.
func (h *History) Execs(ctx context.Context, id string, n int) ([]api.Exec, error) {
	return execs(ctx, h.store, id, n)
}

func execs(ctx context.Context, st *store.Store, id string, n int) ([]api.Exec, error) {
	all, err := docs[api.Exec](ctx, st, id, "exec")
	if err != nil {
		return nil, err
	}
	out := []api.Exec{}
	for _, e := range all {
		if e.Action == n {
			out = append(out, e)
		}
	}
	return out, nil
}

// Questions of a recorded session are none: nothing is held any more.
func (h *History) Questions(context.Context, string) ([]api.Question, error) {
	return []api.Question{}, nil
}

// Attempts lists a session's network attempts.
func (h *History) Attempts(ctx context.Context, id string) ([]api.Attempt, error) {
	return docs[api.Attempt](ctx, h.store, id, "attempt")
}

// Recorded yields the events that are recorded by now.
func (h *History) Recorded(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) { recorded(ctx, h.store, id, from, yield) }
}

// Events of a recorded session are those recorded: nothing follows.
func (h *History) Events(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error] {
	return h.Recorded(ctx, id, from)
}

// maxOpened is of how many sessions a History holds files in memory.
const maxOpened = 4

// filesOf is what the record has of a session's files. A checkpoint never
// changes, so what was read of one serves until others push it out.
func (h *History) filesOf(id string) *files {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.files, func(f *files) bool { return f.session == id })
	f := recordedFiles(h.store, id)
	if i >= 0 {
		f = h.files[i]
		h.files = slices.Delete(h.files, i, i+1)
	}
	h.files = append([]*files{f}, h.files[:min(len(h.files), maxOpened-1)]...)
	return f
}

// open finds a recorded session's files and the two states of a scope.
func (h *History) open(ctx context.Context, id string, n int) (f *files, from, to *overlay.Manifest, scope string, err error) {
	if _, err := doc[api.Session](ctx, h.store, id, "session", 0); err != nil {
		return nil, nil, nil, "", api.Problemf(api.CodeNotFound, "there is no session %q", api.Escape(api.Trim(id, 80)))
	}
	f = h.filesOf(id)
	if n == 0 {
		b, err := h.store.LastDoc(ctx, id, "checkpoint")
		if errors.Is(err, store.ErrNotFound) { // it ended before its first
			return f, nil, nil, "session", nil
		}
		var last api.Checkpoint
		if err == nil {
			err = json.Unmarshal(b, &last)
		}
		for err == nil && last.Action != 0 && last.ID > 1 { // what one action alone changed
			last, err = doc[api.Checkpoint](ctx, h.store, id, "checkpoint", last.ID-1)
		}
		if err == nil {
			to, err = f.at(ctx, last.ID)
		}
		return f, nil, to, "session", err
	}
	a, err := doc[api.Action](ctx, h.store, id, "action", int64(n))
	if err != nil {
		return nil, nil, nil, "", api.Problemf(api.CodeNotFound, "there is no action %d", n)
	}
	from, to, err = f.ofAction(ctx, a, nil)
	return f, from, to, scopeName(n), err
}

// ofAction is the two states around an action; until it has ended the second is now.
func (f *files) ofAction(ctx context.Context, a api.Action, now *overlay.Manifest) (from, to *overlay.Manifest, err error) {
	if a.Before == 0 || a.State == api.ActionHeld || a.State == api.ActionDenied || a.State == api.ActionAbandoned {
		return nil, nil, nil
	}
	if from, err = f.at(ctx, a.Before); err != nil {
		return nil, nil, err
	}
	switch {
	case a.After != 0:
		to, err = f.at(ctx, a.After)
	case now != nil:
		to = now
	default:
		to = from // it was interrupted before its end was seen
	}
	return from, to, err
}

// Changes is a page of what an action of a recorded session changed, or all of it did.
func (h *History) Changes(ctx context.Context, id string, n int, p api.Page) (api.Changes, error) {
	f, from, to, scope, err := h.open(ctx, id, n)
	if err != nil {
		return api.Changes{}, err
	}
	if to == nil {
		return api.Changes{Scope: scope, Final: true, Files: []api.Change{}}, nil
	}
	out, err := f.page(ctx, from, to, p)
	out.Scope, out.Final = scope, true
	return out, err
}

// Diff is one changed file's difference.
func (h *History) Diff(ctx context.Context, id, key string, n int) (api.FileDiff, error) {
	f, from, to, _, err := h.open(ctx, id, n)
	if err != nil {
		return api.FileDiff{}, err
	}
	if to == nil {
		return api.FileDiff{}, api.Problemf(api.CodeNotFound, "nothing has changed")
	}
	return f.diff(ctx, key, from, to)
}

// Diffs yields the differences of all changed files, by path.
func (h *History) Diffs(ctx context.Context, id string, n int) iter.Seq2[api.FileDiff, error] {
	return func(yield func(api.FileDiff, error) bool) {
		f, from, to, _, err := h.open(ctx, id, n)
		if err != nil {
			yield(api.FileDiff{}, err)
			return
		}
		if to != nil {
			f.diffs(ctx, from, to)(yield)
		}
	}
}

// Screen is the last screen of a recorded session.
func (h *History) Screen(ctx context.Context, id string) (api.Frame, error) {
	s, err := doc[api.Session](ctx, h.store, id, "session", 0)
	if err != nil {
		return api.Frame{}, api.Problemf(api.CodeNotFound, "there is no session %q", api.Escape(api.Trim(id, 80)))
	}
	cols, rows := max(s.Cols, 2), max(s.Rows, 1)
	sc := screen.New(cols, rows)
	defer sc.Close()
	for f, err := range h.store.ReadJournal(id) {
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			return api.Frame{}, fmt.Errorf("cannot read the terminal's record: %w", err)
		}
		switch f.Kind {
		case store.FrameOutput:
			_, _ = sc.Write(f.Data)
		case store.FrameResize:
			cols, rows = f.Cols, f.Rows
			sc.Resize(cols, rows)
		}
	}
	return api.Frame{Kind: api.FrameKeyframe, Cols: cols, Rows: rows, Data: sc.Keyframe()}, nil
}

// Output is all that the agent of a recorded session has printed.
func (h *History) Output(ctx context.Context, id string) iter.Seq2[api.Frame, error] {
	return func(yield func(api.Frame, error) bool) {
		for f, err := range h.store.ReadJournal(id) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(api.Frame{}, err)
				return
			}
			if f.Kind == store.FrameOutput && !yield(api.Frame{Kind: api.FrameOutput, Data: f.Data}, nil) {
				return
			}
		}
	}
}
