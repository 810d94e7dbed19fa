package store

import (
	"context"
	"fmt"
	"strings"
)

// Everywhere lists every session that any table tells of: also those whose own row or
// events are gone.
func (s *Store) Everywhere(ctx context.Context) ([]string, error) {
	parts := []string{`SELECT session FROM events`}
	for _, k := range s.kinds() {
		parts = append(parts, `SELECT session FROM "`+k.table+`"`)
	}
	rows, err := s.reads.QueryContext(ctx, strings.Join(parts, " UNION "))
	if err != nil {
		return nil, fmt.Errorf("cannot list the sessions: %w", s.fault(err))
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, s.fault(err)
		}
		out = append(out, id)
	}
	return out, s.fault(rows.Err())
}

// Sound looks at the database as such: its pages, its indexes, and what keeps events
// from being changed by a slip of the hand. It lists what is wrong.
func (s *Store) Sound(ctx context.Context) (wrong []string, err error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT integrity_check FROM pragma_integrity_check
UNION ALL SELECT 'the guard is missing, or another: ' || value FROM json_each(?) WHERE value NOT IN (SELECT sql FROM sqlite_schema WHERE type = 'trigger')`,
		list([]string{eventsStay, eventsRemain}))
	if err != nil {
		return nil, fmt.Errorf("cannot check the database: %w", s.fault(err))
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, s.fault(err)
		}
		if line != "ok" {
			wrong = append(wrong, line)
		}
	}
	return wrong, s.fault(rows.Err())
}
