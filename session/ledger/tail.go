package ledger

import (
	"context"

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
