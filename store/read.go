package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ownDoc is the document of a session s, with that session's id whatever it says; as it is
// where damage left none.
const ownDoc = `iif(NOT json_valid(s.doc) OR s.doc ->> '$.id' IS s.session, s.doc, json_set(s.doc, '$.id', s.session))`

// Sessions lists the documents of all sessions, newest first.
func (s *Store) Sessions(ctx context.Context) ([]json.RawMessage, error) {
	docs, err := s.docs(ctx, `SELECT `+ownDoc+` FROM sessions s ORDER BY number DESC`)
	if err != nil {
		return nil, fmt.Errorf("cannot list the sessions: %w", err)
	}
	return docs, nil
}

// Docs lists resources of a kind in the order of their numbers, those above
// after, at most limit of them (0: all). A session that isn't there has none.
func (s *Store) Docs(ctx context.Context, session string, kind Kind, after int64, limit int) ([]json.RawMessage, error) {
	if limit <= 0 {
		limit = -1 // SQLite's word for all
	}
	return s.list(ctx, kind, "", session, `SELECT doc FROM "%s" WHERE session = ? AND key > ? ORDER BY key LIMIT ?`, after, limit)
}

// Any says whether any session has a resource of a kind.
func (s *Store) Any(ctx context.Context, kind Kind) (any bool, err error) {
	k := kindOf(kind)
	if k == nil {
		return false, nil
	}
	if err := s.reads.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM "`+k.table+`")`).Scan(&any); err != nil {
		return false, fmt.Errorf("cannot look for a %s: %w", kind, s.fault(err))
	}
	return any, nil
}

// Newest lists the resources of a kind that have the highest numbers, at most
// limit of them, in the order of their numbers.
func (s *Store) Newest(ctx context.Context, session string, kind Kind, limit int) ([]json.RawMessage, error) {
	return s.list(ctx, kind, "newest ", session, `SELECT doc FROM (SELECT key, doc FROM "%s" WHERE session = ? ORDER BY key DESC LIMIT ?) ORDER BY key`, limit)
}

// list asks for documents of a kind's table.
func (s *Store) list(ctx context.Context, kind Kind, what, session, query string, args ...any) ([]json.RawMessage, error) {
	k := kindOf(kind)
	if k == nil {
		return nil, fmt.Errorf("cannot list resources: there is no kind %q", kind)
	}
	docs, err := s.docs(ctx, fmt.Sprintf(query, k.table), append([]any{session}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("cannot list the %s%s of session %s: %w", what, k.table, session, err)
	}
	return docs, nil
}

func (s *Store) docs(ctx context.Context, query string, args ...any) ([]json.RawMessage, error) {
	return columnOf[json.RawMessage](ctx, s, query, args...)
}

// Doc is one resource as it was last recorded; ErrNotFound when it never was.
func (s *Store) Doc(ctx context.Context, session string, kind Kind, key int64) (json.RawMessage, error) {
	k := kindOf(kind)
	if k == nil {
		return nil, fmt.Errorf("cannot read a resource: there is no kind %q", kind)
	}
	var doc []byte
	err := s.reads.QueryRowContext(ctx, `SELECT doc FROM "`+k.table+`" WHERE session = ? AND key = ?`, session, key).Scan(&doc)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("%s %d of session %.80q: %w", kind, key, session, ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("cannot read %s %d of session %s: %w", kind, key, session, s.fault(err))
	}
	return doc, nil
}

// Events lists a session's events in order, those with a sequence number of at
// least from, at most limit of them (0: all).
func (s *Store) Events(ctx context.Context, session string, from uint64, limit int) ([]Event, error) {
	if limit <= 0 {
		limit = -1
	}
	return s.eventsWhere(ctx, session, "", fromSeq, session, int64(min(from, 1<<62)), limit)
}

// fromSeq is the condition of events from a number on, at most so many, in order.
const fromSeq = `session = ? AND seq >= ? ORDER BY seq LIMIT ?`

// readEvents calls f for those of a session's events that a condition says. One that was
// never written so comes with an error that wraps ErrTampered.
func readEvents(ctx context.Context, q querier, session string, f func(Event, error) error, where string, args ...any) error {
	return eachRow(ctx, q, `SELECT seq, time, kind, event, key, doc, prev, hash FROM events e WHERE `+where, args, func(rows *sql.Rows) error {
		e := Event{Session: session}
		var seq, at int64
		var doc, prev, hash []byte
		if err := rows.Scan(&seq, &at, &e.Kind, &e.Event, &e.Key, &doc, &prev, &hash); err != nil {
			return err
		}
		if seq < 1 || len(prev) != len(e.Prev) || len(hash) != len(e.Hash) {
			return f(e, fmt.Errorf("event %d has hashes of %d and %d bytes: %w", seq, len(prev), len(hash), ErrTampered))
		}
		e.Seq, e.At, e.Doc = uint64(seq), time.Unix(0, at).UTC(), doc
		copy(e.Prev[:], prev)
		copy(e.Hash[:], hash)
		return f(e, nil)
	})
}

// eventsWhere lists those of a session's events that a condition says; what names them
// in an error.
func (s *Store) eventsWhere(ctx context.Context, session, what, where string, args ...any) (events []Event, err error) {
	err = readEvents(ctx, s.reads, session, func(e Event, err error) error {
		events = append(events, e)
		return err
	}, where, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot read the events%s of session %s: %w", what, session, s.fault(err))
	}
	return events, nil
}

// LastEvent is the sequence number of a session's newest event, 0 when there is
// none.
func (s *Store) LastEvent(ctx context.Context, session string) (uint64, error) {
	var n uint64
	if err := s.reads.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM events WHERE session = ?`, session).Scan(&n); err != nil {
		return 0, fmt.Errorf("cannot read the events of session %s: %w", session, s.fault(err))
	}
	return n, nil
}

// AsOf lists the resources of a kind as they stood just after an event: those with
// the highest numbers then, at most limit of them, in the order of their numbers.
func (s *Store) AsOf(ctx context.Context, session string, kind Kind, seq uint64, limit int) ([]json.RawMessage, error) {
	k := kindOf(kind)
	if k == nil {
		return nil, fmt.Errorf("cannot list resources: there is no kind %q", kind)
	}
	// One walk down the index, which has all that is needed to choose; only what is
	// wanted is read.
	docs, err := s.docs(ctx, `SELECT e.doc FROM
	(SELECT key, max(seq) AS seq FROM events WHERE session = ?1 AND kind = ?2 AND seq <= ?3 GROUP BY key ORDER BY key DESC LIMIT ?4) latest
	JOIN events e ON e.session = ?1 AND e.seq = latest.seq ORDER BY latest.key`,
		session, string(kind), int64(min(seq, 1<<62)), limit)
	if err != nil {
		return nil, fmt.Errorf("cannot list the %s of session %s as of event %d: %w", k.table, session, seq, err)
	}
	return docs, nil
}

// Told lists the events that told of one resource, in order.
func (s *Store) Told(ctx context.Context, session string, kind Kind, key int64) ([]Event, error) {
	return s.eventsWhere(ctx, session, fmt.Sprintf(" of %s %d", kind, key), `session = ? AND kind = ? AND key = ? ORDER BY seq`, session, string(kind), key)
}

// EventBy finds the last event at or before a time; ErrNotFound when there is none.
// Times of events rise, so it takes as many looks as a number of events has bits.
func (s *Store) EventBy(ctx context.Context, session string, at time.Time) (Event, error) {
	last, err := s.LastEvent(ctx, session)
	if err != nil {
		return Event{}, err
	}
	found := Event{}
	for low, high := uint64(1), last; low <= high; {
		mid := (low + high) / 2
		es, err := s.Events(ctx, session, mid, 1)
		if err != nil {
			return Event{}, err
		}
		if len(es) == 0 || es[0].At.After(at) {
			high = mid - 1
			continue
		}
		found, low = es[0], mid+1
	}
	if found.Seq == 0 {
		return found, fmt.Errorf("an event of session %.80q by then: %w", session, ErrNotFound)
	}
	return found, nil
}
