package ledger

import (
	"context"
	"encoding/json"
	"fmt"

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

// TailAt is how a session stood just after an event: as Tail, and with what was held
// then, and what had been rolled back and applied. The events are in the form in which
// they are sent, which leaves the documents as they are.
func (h *History) TailAt(ctx context.Context, id string, seq uint64, last int) ([]json.RawMessage, error) {
	if _, err := h.Session(ctx, id); err != nil {
		return nil, err
	}
	var events []json.RawMessage
	for _, kind := range []store.Kind{store.KindSession, store.KindNote, store.KindAttempt, store.KindAction, store.KindRollback, store.KindApply, store.KindQuestion} {
		docs, err := h.Store.AsOf(ctx, id, kind, seq, last)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			if kind == store.KindQuestion {
				var q api.Question
				if err := json.Unmarshal(d, &q); err != nil {
					return nil, fmt.Errorf("cannot decode a question of session %s: %w", id, err)
				}
				if !q.Open() {
					continue
				}
			}
			events = append(events, fmt.Appendf(nil, `{"at":"0001-01-01T00:00:00Z","kind":"%s.now","%s":%s}`, kind, kind, d))
		}
	}
	return events, nil
}
