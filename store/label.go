package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// Label changes what a person says of a session. Change gets the document as it is,
// nil when there was none, and gives the new one. It may be called more than once and
// must not do IO. A label isn't part of the chain of events.
func (s *Store) Label(ctx context.Context, session string, change func(old json.RawMessage) (json.RawMessage, error)) error {
	if s.readonly {
		return fmt.Errorf("cannot label session %.80q: %w", session, ErrReadOnly)
	}
	err := s.writes.do(ctx, groupBytes/64, func(t *tx) error {
		if _, err := t.head(session); err != nil {
			return err
		}
		var old []byte
		err := t.row(`SELECT doc FROM labels WHERE session = ?`, []any{session}, &old)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		doc, err := change(old)
		if err != nil {
			return err
		}
		return t.exec(`INSERT INTO labels (session, doc) VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET doc = excluded.doc`, session, string(doc))
	})
	if err != nil {
		return fmt.Errorf("cannot label session %.80q: %w", session, err)
	}
	return nil
}

// LabelOf is a session's label, nil when there is none.
func (s *Store) LabelOf(ctx context.Context, session string) (json.RawMessage, error) {
	var doc []byte
	err := s.reads.QueryRowContext(ctx, `SELECT doc FROM labels WHERE session = ?`, session).Scan(&doc)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("cannot read the label of session %.80q: %w", session, s.fault(err))
	}
	return doc, nil
}

// Labels are all labels, by session.
func (s *Store) Labels(ctx context.Context) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage)
	err := s.each(ctx, `SELECT session, doc FROM labels`, nil, func(rows *sql.Rows) error {
		var id string
		var doc []byte
		err := rows.Scan(&id, &doc)
		out[id] = doc
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the labels: %w", err)
	}
	return out, nil
}

// columnOf is what a query gives that asks for one.
func columnOf[T ~string | ~[]byte](ctx context.Context, s *Store, query string, args ...any) (out []T, err error) {
	err = s.each(ctx, query, args, func(rows *sql.Rows) error {
		var b []byte
		err := rows.Scan(&b)
		out = append(out, T(b))
		return err
	})
	return out, err
}

// each calls f for the rows of a query.
func (s *Store) each(ctx context.Context, query string, args []any, f func(*sql.Rows) error) error {
	return s.fault(eachRow(ctx, s.reads, query, args, f))
}

// eachRow is each of any database.
func eachRow(ctx context.Context, q querier, query string, args []any, f func(*sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
