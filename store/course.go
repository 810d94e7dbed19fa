package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Course is a resource as it was last recorded, and the event that told of it first.
type Course struct {
	Kind Kind
	Key  int64
	Doc  json.RawMessage // valid until the next one
	Seq  uint64
	At   time.Time
}

// Courses yields the courses of a session's resources of a kind, of those whose
// numbers every divides, in the order of these, without holding more than one. After an
// event, if one is named, it yields only those of which events of that kind, or of the others,
// told since: it costs what is new. An error is the last pair.
func (s *Store) Courses(ctx context.Context, session string, kind Kind, every int, after uint64, others ...Kind) iter.Seq2[Course, error] {
	return func(yield func(Course, error) bool) {
		if err := s.courses(ctx, session, kind, every, after, others, func(c Course) bool { return yield(c, nil) }); err != nil {
			yield(Course{}, fmt.Errorf("cannot read the course of the %ss of session %.80q: %w", kind, session, s.fault(err)))
		}
	}
}

func (s *Store) courses(ctx context.Context, session string, kind Kind, every int, after uint64, others []Kind, yield func(Course) bool) error {
	k := kindOf(kind)
	if k == nil {
		return nil
	}
	since, args := "", []any{session, string(kind), every}
	if after > 0 {
		told, err := json.Marshal(append(others, kind))
		if err != nil {
			return err
		}
		since = ` AND r.key IN (SELECT key FROM events WHERE session = ?1 AND seq > ?4 AND +kind IN (SELECT value FROM json_each(?5)))` // + has it go by seq
		args = append(args, int64(min(after, 1<<62)), string(told))
	}
	return s.eachCourse(ctx, kind, yield, `SELECT r.key, r.doc, e.seq, e.time FROM "`+k.table+`" r
JOIN events e ON e.session = r.session AND e.seq = (SELECT min(seq) FROM events WHERE session = r.session AND kind = ?2 AND key = r.key)
WHERE r.session = ?1 AND r.key % ?3 = 0`+since+` ORDER BY r.key`, args...)
}

func (s *Store) begun(ctx context.Context, session string, kind Kind, after uint64, yield func(Course) bool) error {
	k := kindOf(kind)
	if k == nil {
		return nil
	}
	return s.eachCourse(ctx, kind, yield, `SELECT r.key, r.doc, e.seq, e.time FROM events e
CROSS JOIN "`+k.table+`" r ON r.session = e.session AND r.key = e.key
WHERE e.session = ?1 AND +e.kind = ?2 AND e.seq > ?3 AND e.seq = (SELECT min(seq) FROM events WHERE session = ?1 AND kind = ?2 AND key = e.key)
ORDER BY e.seq`, session, string(kind), int64(min(after, 1<<62)))
}

// eachCourse yields what a query finds.
func (s *Store) eachCourse(ctx context.Context, kind Kind, yield func(Course) bool, query string, args ...any) error {
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var doc sql.RawBytes // the next row's takes its place
	for rows.Next() {
		c := Course{Kind: kind}
		var at int64
		if err := rows.Scan(&c.Key, &doc, &c.Seq, &at); err != nil {
			return err
		}
		c.Doc, c.At = json.RawMessage(doc), time.Unix(0, at).UTC()
		if !yield(c) {
			return nil
		}
	}
	return rows.Err()
}

// Begun yields the courses of a session's resources of a kind that began after an event, in
// the order in which they did. It costs what is taken. An error is the last pair.
func (s *Store) Begun(ctx context.Context, session string, kind Kind, after uint64) iter.Seq2[Course, error] {
	return func(yield func(Course, error) bool) {
		if err := s.begun(ctx, session, kind, after, func(c Course) bool { return yield(c, nil) }); err != nil {
			yield(Course{}, fmt.Errorf("cannot read which %ss of session %.80q began: %w", kind, session, s.fault(err)))
		}
	}
}

// Named lists the events of a name that told of resources of a kind, in order.
func (s *Store) Named(ctx context.Context, session string, kind Kind, event string) ([]Event, error) {
	return s.eventsWhere(ctx, session, " "+event, `session = ? AND kind = ? AND event = ? ORDER BY seq`, session, string(kind), event)
}

// Ran is when something last happened in a session before an event, while it ran: what
// applies and resumes record may come long after. Zero: nothing did.
func (s *Store) Ran(ctx context.Context, session string, before uint64) (at time.Time, err error) {
	var ns int64
	err = s.reads.QueryRowContext(ctx, `SELECT coalesce((SELECT time FROM events WHERE session = ? AND seq < ? AND kind NOT IN ('apply', 'checkpoint', 'session') ORDER BY seq DESC LIMIT 1), 0)`,
		session, int64(min(before, 1<<62))).Scan(&ns)
	if err != nil {
		return at, fmt.Errorf("cannot find out until when session %.80q ran: %w", session, s.fault(err))
	}
	if ns != 0 {
		at = time.Unix(0, ns).UTC()
	}
	return at, nil
}
