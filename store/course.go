package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Course is a resource as it was last recorded, and the events that told of it first
// and last.
type Course struct {
	Kind        Kind
	Key         int64
	Doc         json.RawMessage
	First, Last Told
}

// Told is an event's place in a session's course.
type Told struct {
	Seq uint64
	At  time.Time
}

// Courses yields the courses of a session's resources of a kind, in the order of
// their numbers, without holding more than one. An error is the last pair.
func (s *Store) Courses(ctx context.Context, session string, kind Kind) iter.Seq2[Course, error] {
	return func(yield func(Course, error) bool) {
		if err := s.courses(ctx, session, kind, func(c Course) bool { return yield(c, nil) }); err != nil {
			yield(Course{}, fmt.Errorf("cannot read the course of the %ss of session %.80q: %w", kind, session, s.fault(err)))
		}
	}
}

func (s *Store) courses(ctx context.Context, session string, kind Kind, yield func(Course) bool) error {
	k := kindOf(kind)
	if k == nil || k.since > s.schema {
		return nil
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT r.key, r.doc, a.seq, a.time, z.seq, z.time FROM "`+k.table+`" r
JOIN events z ON z.session = r.session AND z.seq = r.seq
JOIN events a ON a.session = r.session AND a.seq = (SELECT min(seq) FROM events WHERE session = r.session AND kind = ?2 AND key = r.key)
WHERE r.session = ?1 ORDER BY r.key`, session, string(kind))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c := Course{Kind: kind}
		var doc []byte
		var first, last int64
		if err := rows.Scan(&c.Key, &doc, &c.First.Seq, &first, &c.Last.Seq, &last); err != nil {
			return err
		}
		c.Doc, c.First.At, c.Last.At = doc, time.Unix(0, first).UTC(), time.Unix(0, last).UTC()
		if !yield(c) {
			return nil
		}
	}
	return rows.Err()
}

// Named lists the events of a name that told of resources of a kind, in order.
func (s *Store) Named(ctx context.Context, session string, kind Kind, event string) ([]Event, error) {
	var events []Event
	err := readEvents(ctx, s.reads, session, func(e Event) error {
		events = append(events, e)
		return nil
	}, `session = ? AND kind = ? AND event = ? ORDER BY seq`, session, string(kind), event)
	if err != nil {
		return nil, fmt.Errorf("cannot read the events %s of session %s: %w", event, session, s.fault(err))
	}
	return events, nil
}
