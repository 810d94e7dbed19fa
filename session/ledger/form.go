package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"stepbox/session/api"
	"stepbox/store"
)

// form is how the resources of a kind stand in events.
type form struct {
	kind store.Kind
	get  func(*api.Event) (resource any, number int64) // nil: the event has another
	make func(*api.Event) (resource any)               // to be decoded into
}

func formOf[T any](kind store.Kind, at func(*api.Event) **T, number func(*T) int64) form {
	return form{
		kind: kind,
		get: func(e *api.Event) (any, int64) {
			if r := *at(e); r != nil {
				return r, number(r)
			}
			return nil, 0
		},
		make: func(e *api.Event) any {
			*at(e) = new(T)
			return *at(e)
		},
	}
}

// forms are the kinds of resources that events hold. Chunks and seals aren't among them:
// they index the terminal's journal, and sign the record, and aren't news.
var forms = []form{
	formOf(store.KindSession, func(e *api.Event) **api.Session { return &e.Session }, func(*api.Session) int64 { return 0 }),
	formOf(store.KindAction, func(e *api.Event) **api.Action { return &e.Action }, func(a *api.Action) int64 { return int64(a.N) }),
	formOf(store.KindQuestion, func(e *api.Event) **api.Question { return &e.Question }, func(q *api.Question) int64 { return q.ID }),
	formOf(store.KindDecision, func(e *api.Event) **api.Decision { return &e.Decision }, func(d *api.Decision) int64 { return d.Question }),
	formOf(store.KindExec, func(e *api.Event) **api.Exec { return &e.Exec }, func(x *api.Exec) int64 { return x.ID }),
	formOf(store.KindEnds, func(e *api.Event) **api.Ends { return &e.Ends }, func(x *api.Ends) int64 { return x.ID }),
	formOf(store.KindAttempt, func(e *api.Event) **api.Attempt { return &e.Attempt }, func(a *api.Attempt) int64 { return a.ID }),
	formOf(store.KindCheckpoint, func(e *api.Event) **api.Checkpoint { return &e.Checkpoint }, func(c *api.Checkpoint) int64 { return c.ID }),
	formOf(store.KindRollback, func(e *api.Event) **api.Rollback { return &e.Rollback }, func(r *api.Rollback) int64 { return r.ID }),
	formOf(store.KindApply, func(e *api.Event) **api.Apply { return &e.Apply }, func(a *api.Apply) int64 { return a.ID }),
	formOf(store.KindClaim, func(e *api.Event) **api.Claim { return &e.Claim }, func(c *api.Claim) int64 { return c.N }),
	formOf(store.KindNote, func(e *api.Event) **api.Note { return &e.Note }, func(n *api.Note) int64 { return n.ID }),
}

// fact is the stored form of an event: the resource itself, under its kind and
// number. The stream's sequence number and time are the store's to give.
func fact(e api.Event) (store.Fact, error) {
	for _, f := range forms {
		if r, number := f.get(&e); r != nil {
			doc, err := json.Marshal(r)
			if err != nil {
				err = fmt.Errorf("cannot encode %s: %w", e.Kind, err)
			}
			return store.Fact{Kind: f.kind, Event: e.Kind, Key: number, Doc: doc}, err
		}
	}
	return store.Fact{}, fmt.Errorf("cannot record an event %q that holds no resource", e.Kind)
}

// event is the wire form of a stored event; ok is false for what isn't news. Of
// a kind that isn't known there is the name.
func event(se store.Event) (e api.Event, ok bool, err error) {
	e = api.Event{Seq: se.Seq, At: se.At, Kind: se.Event}
	for _, f := range forms {
		if f.kind == se.Kind {
			if err := json.Unmarshal(se.Doc, f.make(&e)); err != nil {
				return e, false, fmt.Errorf("cannot decode event %d: %w", se.Seq, err)
			}
			return e, true, nil
		}
	}
	return e, se.Kind != store.KindChunk && se.Kind != store.KindSeal, nil
}

// Append records events of a session that nobody has a Ledger of, in one
// transaction. Whoever calls it has the session, store.Own; foretell is told
// before, see store.AppendForetold.
func Append(ctx context.Context, st *store.Store, session string, foretell func([]store.Event) error, events ...api.Event) error {
	facts := make([]store.Fact, len(events))
	for i, e := range events {
		var err error
		if facts[i], err = fact(e); err != nil {
			return err
		}
	}
	_, err := st.AppendForetold(ctx, session, foretell, facts...)
	return err
}
