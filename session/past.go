package session

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/store"
)

// History reads recorded sessions, their files too. It is safe for concurrent use.
type History struct {
	ledger.History

	mu    sync.Mutex
	files []*files.Files // guarded by mu; of the sessions that were looked at last
}

// NewHistory reads what is in a store; see ledger.History.
func NewHistory(st *store.Store, live func(id string) bool) *History {
	return &History{History: ledger.History{Store: st, Live: live}}
}

// maxOpened is of how many sessions a History holds files in memory.
const maxOpened = 4

// filesOf is what the record has of a session's files. A checkpoint never
// changes, so what was read of one serves until others push it out.
func (h *History) filesOf(id string) *files.Files {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.files, func(f *files.Files) bool { return f.Session() == id })
	f := files.Recorded(h.Store, id)
	if i >= 0 {
		f = h.files[i]
		h.files = slices.Delete(h.files, i, i+1)
	}
	h.files = append([]*files.Files{f}, h.files[:min(len(h.files), maxOpened-1)]...)
	return f
}

// open finds a recorded session's files and the two states of a scope.
func (h *History) open(ctx context.Context, id string, n int) (f *files.Files, from, to *manifest.Manifest, scope string, err error) {
	if _, err := ledger.Doc[api.Session](ctx, h.Store, id, "session", 0); err != nil {
		return nil, nil, nil, "", api.Problemf(api.CodeNotFound, "there is no session %q", api.Escape(api.Trim(id, 80)))
	}
	f = h.filesOf(id)
	if n == 0 {
		b, err := h.Store.LastDoc(ctx, id, "checkpoint")
		if errors.Is(err, store.ErrNotFound) { // it ended before its first
			return f, nil, nil, "session", nil
		}
		var last api.Checkpoint
		if err == nil {
			err = json.Unmarshal(b, &last)
		}
		for err == nil && last.Action != 0 && last.ID > 1 { // what one action alone changed
			last, err = ledger.Doc[api.Checkpoint](ctx, h.Store, id, "checkpoint", last.ID-1)
		}
		if err == nil {
			to, err = f.At(ctx, last.ID)
		}
		return f, nil, to, "session", err
	}
	a, err := ledger.Doc[api.Action](ctx, h.Store, id, "action", int64(n))
	if err != nil {
		return nil, nil, nil, "", api.Problemf(api.CodeNotFound, "there is no action %d", n)
	}
	from, to, err = f.OfAction(ctx, a, nil)
	return f, from, to, scopeName(n), err
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
	out, err := f.Page(ctx, from, to, p)
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
	return f.Diff(ctx, key, from, to)
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
			f.Diffs(ctx, from, to)(yield)
		}
	}
}
