package files

import (
	"context"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Selected is a state of the files that has some of a session's changes and no
// others, on top of the project as the session first saw it.
type Selected struct {
	Scope                     // From is nil, the project; To has the changes
	Checkpoint int64          // the newest state of the session, which they are taken from; 0: there is none, and To is nil
	Conflicts  []api.Conflict // in which chosen changes meet others; To has such files as the project had them, or with the chosen changes so far
}

// Select makes the state that a selection names, from what is recorded: of a live
// session up to its newest checkpoint. CodeStale says that a file whose hunks are
// chosen isn't what was shown.
func (h *History) Select(ctx context.Context, id string, in api.Selection) (Selected, error) {
	if _, err := ledger.Doc[api.Session](ctx, h.Store, id, store.KindSession, 0); err != nil {
		return Selected{}, api.Problemf(api.CodeNotFound, "there is no session %q", api.Escape(api.Trim(id, 80)))
	}
	out := Selected{Scope: Scope{Files: h.filesOf(id), Final: !h.Live(id)}}
	now, last, err := h.newest(ctx, out.Files, id)
	if err != nil || now == nil {
		return out, err
	}
	out.To, out.Checkpoint = now, last
	if in.All() {
		return out, nil
	}
	return out, api.Problemf(api.CodeUnknown, "only all changes can be chosen")
}

// newest is the newest recorded state of a session's files and its checkpoint;
// nil when it ended before its first.
func (h *History) newest(ctx context.Context, f *Files, id string) (*manifest.Manifest, int64, error) {
	last, found, err := ledger.Last[api.Checkpoint](ctx, h.Store, id, store.KindCheckpoint)
	if err != nil || !found {
		return nil, 0, err
	}
	for err == nil && last.Action != 0 && last.ID > 1 { // what one action alone changed
		last, err = ledger.Doc[api.Checkpoint](ctx, h.Store, id, store.KindCheckpoint, last.ID-1)
	}
	if err != nil {
		return nil, 0, err
	}
	m, err := f.At(ctx, last.ID)
	return m, last.ID, err
}
