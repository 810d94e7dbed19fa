package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
)

// Weights say what removing sessions would give back. It isn't safe for concurrent use.
type Weights struct {
	sessions map[string]weight
	users    map[Hash]int // sessions that name a body, less those that were taken
	sizes    map[Hash]int64
	total    int64
}

type weight struct {
	rows   int64 // bytes of its events and rows
	bodies []Hash
}

// Weigh reads what every session names, which takes some 100 bytes of memory for each
// body and session. Each session is asked about with references of its own. Tell hears
// how many of how many were looked at.
func (s *Store) Weigh(ctx context.Context, more func() []References, tell func(n, of int)) (*Weights, error) {
	ids, err := s.Everywhere(ctx)
	if err != nil {
		return nil, err
	}
	w := &Weights{sessions: make(map[string]weight), users: make(map[Hash]int), sizes: make(map[Hash]int64)}
	if err := s.bodySizes(ctx, w.sizes); err != nil {
		return nil, fmt.Errorf("cannot weigh the contents: %w", err)
	}
	for n, id := range ids {
		tell(n, len(ids))
		var x weight
		named := make(map[Hash]bool)
		if err := s.led(ctx, id, nil, more(), func(h Hash) { named[h] = true }); err != nil {
			return nil, fmt.Errorf("cannot weigh session %.80q: %w", id, s.fault(err))
		}
		for h := range named {
			if w.users[h]++; w.users[h] == 1 {
				w.total += w.sizes[h]
			}
			x.bodies = append(x.bodies, h)
		}
		// An event has two hashes, names and numbers beside its document, and an index.
		const beside = 180
		if err := s.reads.QueryRowContext(ctx, `SELECT coalesce(sum(length(doc) + ?), 0) FROM events WHERE session = ?`, beside, id).Scan(&x.rows); err != nil {
			return nil, fmt.Errorf("cannot weigh session %.80q: %w", id, s.fault(err))
		}
		w.total += x.rows
		w.sessions[id] = x
	}
	return w, nil
}

// Total is what all sessions take that weren't taken, in bytes, without their folders.
func (w *Weights) Total() int64 { return w.total }

// Take says what goes with a session when those that were taken before it are gone.
func (w *Weights) Take(session string) (bytes int64) {
	x := w.sessions[session]
	delete(w.sessions, session)
	bytes = x.rows
	for _, h := range x.bodies {
		if w.users[h]--; w.users[h] == 0 {
			bytes += w.sizes[h]
		}
	}
	w.total -= bytes
	return bytes
}

// bodySizes finds out how large each body in the database is, and each that is a file.
func (s *Store) bodySizes(ctx context.Context, into map[Hash]int64) error {
	err := s.each(ctx, `SELECT hash, length(data) FROM bodies`, nil, func(rows *sql.Rows) error {
		var h []byte
		var n int64
		err := rows.Scan(&h, &n)
		if len(h) == len(Hash{}) {
			into[Hash(h)] = n
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.fault(s.eachFile(ctx, func(_ string, h Hash, st os.FileInfo) error {
		into[h] = st.Size()
		return nil
	}))
}
