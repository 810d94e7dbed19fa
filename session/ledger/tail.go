package ledger

import (
	"context"
	"encoding/json"

	"stepbox/session/api"
	"stepbox/store"
)

// Tail is how a session stands, for who doesn't want all that led there: the
// session and its newest resources, at most last of each kind, as events without
// a sequence number. What happens later is in the events from next on, which may
// repeat some of it.
func (h *History) Tail(ctx context.Context, id string, last int) (events []api.Event, next uint64, err error) {
	s, err := h.Session(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	seq, err := h.Store.LastEvent(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	events = append(events, api.Event{Kind: "session.now", Session: &s})
	for _, kind := range []store.Kind{"note", "attempt", "action"} {
		newest, err := h.newest(ctx, id, kind, last)
		if err != nil {
			return nil, 0, err
		}
		events = append(events, newest...)
	}
	return events, seq + 1, nil
}

// newest gives the newest resources of a kind as events.
func (h *History) newest(ctx context.Context, id string, kind store.Kind, last int) ([]api.Event, error) {
	docs, err := h.Store.Newest(ctx, id, kind, last)
	if err != nil {
		return nil, err
	}
	return nowOf(kind, docs)
}

// nowOf are resources as events that say how they stand.
func nowOf(kind store.Kind, docs []json.RawMessage) ([]api.Event, error) {
	events := make([]api.Event, 0, len(docs))
	for _, d := range docs {
		e, _, err := event(store.Event{Kind: kind, Event: string(kind) + ".now", Doc: d})
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// TailAt is how a session stood just after an event: as Tail, and with what was held
// then, and what had been rolled back and applied.
func (h *History) TailAt(ctx context.Context, id string, seq uint64, last int) ([]api.Event, error) {
	if _, err := h.Session(ctx, id); err != nil {
		return nil, err
	}
	var events []api.Event
	for _, kind := range []store.Kind{store.KindSession, store.KindNote, store.KindAttempt, store.KindAction, store.KindRollback, store.KindApply, store.KindQuestion} {
		docs, err := h.Store.AsOf(ctx, id, kind, seq, last)
		if err != nil {
			return nil, err
		}
		these, err := nowOf(kind, docs)
		if err != nil {
			return nil, err
		}
		for _, e := range these {
			if e.Question == nil || e.Question.Open() {
				events = append(events, e)
			}
		}
	}
	return events, nil
}
