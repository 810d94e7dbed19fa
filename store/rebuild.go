package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Rebuild makes a session's rows again from its events. It refuses a broken
// chain, and rows of events that aren't there any more, since it would remove
// what shows that. Each kind takes one transaction, as long as the session is
// large.
func (s *Store) Rebuild(ctx context.Context, session string) error {
	fail := func(err error) error { return fmt.Errorf("cannot rebuild session %.80q: %w", session, err) }
	if s.readonly {
		return fail(ErrReadOnly)
	}
	v := &verifier{store: s, session: session, latest: make(map[resource]state)}
	if err := v.chain(ctx, s.reads); err != nil {
		return fail(s.fault(err))
	}
	var remade error // what can't be made keeps no rows from being made
	if len(v.found.Problems) == 0 {
		remade = s.Remake(ctx) // before the tables are looked at, which may be missing
	}
	for _, k := range tabled() {
		if err := v.beyond(ctx, k); err != nil {
			return fail(s.fault(err))
		}
	}
	if len(v.found.Problems) > 0 {
		return fail(v.found.Problems[0])
	}
	for _, k := range tabled() {
		err := s.writes.do(ctx, groupBytes, func(t *tx) error {
			if err := t.exec(`DELETE FROM "`+k.table+`" WHERE session = ?`, session); err != nil {
				return err
			}
			// Beside max(), the other columns are of the row that has the
			// maximum (sqlite.org/lang_select.html, "bare columns").
			return t.exec(`INSERT INTO "`+k.table+`" (session, key, seq, doc)
SELECT session, key, max(seq), doc FROM events WHERE session = ? AND kind = ? GROUP BY key`, session, string(k.name))
		})
		if err != nil {
			return fail(err)
		}
	}
	if err := os.MkdirAll(s.SessionDir(session), 0o700); err != nil {
		return fail(fileFault(s.dir, err))
	}
	return errors.Join(s.rebuilt(ctx, session), s.fault(remade))
}

// rebuilt says what tables say otherwise than the events all the same.
func (s *Store) rebuilt(ctx context.Context, session string) error {
	tx, err := s.reads.BeginTx(ctx, nil)
	if err == nil {
		defer tx.Rollback() // it only read
		v := &verifier{store: s, session: session, latest: make(map[resource]state), bodies: make(map[Hash]string)}
		if _, err = v.rows(ctx, tx); err == nil {
			if i := slices.IndexFunc(v.found.Problems, func(p Problem) bool { return p.Table }); i >= 0 {
				err = v.found.Problems[i]
			}
		}
	}
	if err != nil {
		return fmt.Errorf("cannot rebuild session %.80q: %w", session, s.fault(err))
	}
	return nil
}

// beyond looks for rows of events after the chain's last. A live session may
// have added some since, which are there then.
func (v *verifier) beyond(ctx context.Context, k *kind) error {
	var last int64
	err := v.store.reads.QueryRowContext(ctx, `SELECT coalesce(max(CAST(seq AS INTEGER)), 0) FROM "`+k.table+`" AS k
WHERE session = ?1 AND CAST(seq AS INTEGER) > ?2 AND NOT EXISTS (SELECT 1 FROM events WHERE session = ?1 AND seq = k.seq)`, v.session, int64(v.last)).Scan(&last)
	if err == nil && last > 0 {
		v.problem("the table %s has rows of events up to %d, and the last event is %d: events were removed", k.table, last, v.last)
	}
	return err
}
