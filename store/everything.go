package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Everywhere lists every session that any table tells of: also those whose own row or
// events are gone.
func (s *Store) Everywhere(ctx context.Context) ([]string, error) {
	parts := []string{`SELECT session FROM events`}
	for _, k := range tabled() {
		parts = append(parts, `SELECT session FROM "`+k.table+`"`)
	}
	out, err := columnOf[string](ctx, s, strings.Join(parts, " UNION "))
	if err != nil {
		return nil, fmt.Errorf("cannot list the sessions: %w", err)
	}
	return out, nil
}

// Sound looks at the database as such: its pages, its indexes, and what keeps events
// from being changed by a slip of the hand. It lists what is wrong; Remake mends some.
func (s *Store) Sound(ctx context.Context) (wrong []Problem, err error) {
	lines, err := columnOf[string](ctx, s, `SELECT integrity_check FROM pragma_integrity_check`)
	if err != nil {
		return nil, fmt.Errorf("cannot check the database: %w", err)
	}
	others, err := s.others(ctx, s.reads)
	if err != nil {
		return nil, fmt.Errorf("cannot check the database: %w", s.fault(err))
	}
	for _, line := range lines {
		if line != "ok" {
			wrong = append(wrong, Problem{why: errors.New(line)})
		}
	}
	for _, o := range others {
		wrong = append(wrong, o.problem())
	}
	return wrong, nil
}
