package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stepbox/session/api"
	"stepbox/session/replay"
	"stepbox/store"
)

// At finds a moment of a session. One after its end is its end, and one before its
// start its start.
func (h *History) At(ctx context.Context, id string, m api.Moment) (api.At, error) {
	parts, err := m.Parse()
	if err != nil {
		return api.At{}, err
	}
	s, err := h.Session(ctx, id)
	if err != nil {
		return api.At{}, err
	}
	at := api.At{Time: s.StartedAt}
	last, err := h.Store.LastEvent(ctx, id)
	switch {
	case err != nil:
		return at, err
	case parts.Start:
	case parts.Action > 0:
		return h.atAction(ctx, s, parts)
	case parts.After != nil:
		at.Offset = *parts.After
		e, err := h.Store.EventBy(ctx, id, s.StartedAt.Add(at.Offset))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return at, err
		}
		if at.Seq = e.Seq; at.Seq == last { // there may be no more of it
			end, err := replay.Length(ctx, h.Store, s, last)
			if err != nil {
				return at, err
			}
			at.Offset = min(at.Offset, end)
		}
		at.Time = s.StartedAt.Add(at.Offset)
	case parts.Event > last:
		return at, api.Problemf(api.CodeNotFound, "there is no event %d in session %s; the last one is =%d", parts.Event, s.Name, last)
	case parts.Event > 0:
		at.Seq = parts.Event
	default:
		at.Seq = last
	}
	return h.about(ctx, s, at)
}

// inherited is the state that a fork began with: before anything happened in it, the
// files weren't the project's.
func (h *History) inherited(ctx context.Context, id string) (int64, error) {
	rows, err := h.Store.Docs(ctx, id, store.KindCheckpoint, -1, 1)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	var cp api.Checkpoint
	if err := json.Unmarshal(rows[0], &cp); err != nil {
		return 0, fmt.Errorf("cannot decode a checkpoint of session %s: %w", id, err)
	}
	return cp.ID, nil
}

// about adds to a moment what is known by its event, and of a fork's the state before
// its first.
func (h *History) about(ctx context.Context, s api.Session, at api.At) (api.At, error) {
	at, err := h.byEvent(ctx, s, at)
	if err == nil && at.Checkpoint == 0 && s.Parent != nil {
		at.Checkpoint, err = h.inherited(ctx, s.ID)
	}
	return at, err
}

func (h *History) byEvent(ctx context.Context, s api.Session, at api.At) (api.At, error) {
	if at.Seq == 0 {
		return at, nil
	}
	if at.Offset == 0 {
		es, err := h.Store.Events(ctx, s.ID, at.Seq, 1)
		if err != nil || len(es) == 0 {
			return at, err
		}
		at.Time = es[0].At
		at.Offset = max(0, at.Time.Sub(s.StartedAt))
	}
	actions, err := h.Store.AsOf(ctx, s.ID, store.KindAction, at.Seq, 1)
	if err == nil && len(actions) > 0 {
		var a api.Action
		err = json.Unmarshal(actions[0], &a)
		at.Action = a.N
	}
	if err == nil && at.Checkpoint == 0 {
		at.Checkpoint, err = h.checkpointBy(ctx, s.ID, at.Seq)
	}
	return at, err
}

// checkpointBy is the newest state of all files that was recorded by an event.
func (h *History) checkpointBy(ctx context.Context, id string, seq uint64) (int64, error) {
	for most := 4; ; most *= 8 {
		docs, err := h.Store.AsOf(ctx, id, store.KindCheckpoint, seq, most)
		if err != nil {
			return 0, err
		}
		for i := len(docs) - 1; i >= 0; i-- {
			var cp api.Checkpoint
			if err := json.Unmarshal(docs[i], &cp); err != nil {
				return 0, fmt.Errorf("cannot decode a checkpoint of session %s: %w", id, err)
			}
			if cp.Action == 0 { // else it has what one action alone changed
				return cp.ID, nil
			}
		}
		if len(docs) < most {
			return 0, nil
		}
	}
}

// atAction is the moment before an action was first told of, or after it ended: when
// it was told so first, or when its changes were counted if that was the next that was
// told of it, and of one that hasn't ended the newest.
func (h *History) atAction(ctx context.Context, s api.Session, parts api.Parts) (api.At, error) {
	told, err := h.Store.Told(ctx, s.ID, store.KindAction, int64(parts.Action))
	if err != nil {
		return api.At{}, err
	}
	if len(told) == 0 {
		return api.At{}, api.Problemf(api.CodeNotFound, "there is no #%d in session %s; stepbox show %s lists them", parts.Action, s.Name, s.ID)
	}
	at := api.At{Time: told[0].At, Seq: told[0].Seq - 1}
	var a api.Action
	if parts.Before {
		if err := json.Unmarshal(told[len(told)-1].Doc, &a); err != nil {
			return at, err
		}
		at.Checkpoint = a.Before
	} else {
		for _, e := range told {
			ended := a
			a = api.Action{}
			if err := json.Unmarshal(e.Doc, &a); err != nil {
				return at, err
			}
			over := !ended.EndedAt.IsZero() || ended.State == api.ActionEnded
			if over && (e.Event != "action.counted" || a.After != ended.After) { // they are others', or those since
				a = ended
				break
			}
			at.Time, at.Seq = e.At, e.Seq
			if over || a.Added+a.Removed > 0 {
				break
			}
		}
		at.Checkpoint = a.After
	}
	at.Offset = max(time.Nanosecond, at.Time.Sub(s.StartedAt))
	if at.Checkpoint != 0 {
		cp, err := Doc[api.Checkpoint](ctx, h.Store, s.ID, store.KindCheckpoint, at.Checkpoint)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return at, err
		}
		if err != nil || cp.Action != 0 {
			at.Checkpoint = 0
		}
	}
	return h.about(ctx, s, at)
}
