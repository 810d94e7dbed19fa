package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// head is the end of a session's chain.
type head struct {
	seq    uint64
	time   int64 // UTC nanoseconds
	hash   Hash
	number int64 // of the session; 0: not looked up
}

// Append records facts of a session in one transaction, which other callers
// may share, and returns the events that they became. When it returns nil
// error they survive kill -9. On error none is recorded, except that an error
// of ctx after the commit has begun is never returned: the outcome is. The
// session must have been created.
func (s *Store) Append(ctx context.Context, session string, facts ...Fact) ([]Event, error) {
	return s.AppendForetold(ctx, session, nil, facts...)
}

// AppendForetold is Append that tells which events are about to be committed, and commits
// none if that fails. It may tell of others before, if the transaction has to be made again.
func (s *Store) AppendForetold(ctx context.Context, session string, tell func([]Event) error, facts ...Fact) ([]Event, error) {
	if err := checkID(session); err != nil {
		return nil, fmt.Errorf("cannot record: %w", err)
	}
	if s.readonly {
		return nil, fmt.Errorf("cannot record in session %s: %w", session, ErrReadOnly)
	}
	if len(facts) == 0 {
		return nil, nil
	}
	ready := make([]Fact, len(facts))
	size := 0
	for i, f := range facts {
		var err error
		if ready[i], err = f.prepare(); err != nil {
			return nil, fmt.Errorf("cannot record in session %s: %w", session, err)
		}
		size += 2*len(ready[i].Doc) + 512
	}
	var events []Event
	err := s.writes.do(ctx, size, func(t *tx) (err error) {
		if events, err = t.append(session, ready, events[:0]); err == nil && tell != nil {
			err = tell(events)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot record in session %s: %w", session, err)
	}
	return events, nil
}

// CreateSession begins a session's record: its folder, then its first event,
// "session.created". The store counts sessions and puts the number into the
// document.
func (s *Store) CreateSession(ctx context.Context, id string, doc json.RawMessage) (int64, error) {
	if checkID(id) != nil {
		return 0, fmt.Errorf("cannot create session %.80q: a name has 1 to 64 small letters, digits, - and _", id)
	}
	if s.readonly {
		return 0, fmt.Errorf("cannot create session %s: %w", id, ErrReadOnly)
	}
	first, err := Fact{Kind: KindSession, Event: "session.created", Doc: doc}.prepare()
	if err != nil {
		return 0, fmt.Errorf("cannot create session %s: %w", id, err)
	}
	if err := os.MkdirAll(s.SessionDir(id), 0o700); err != nil {
		return 0, fmt.Errorf("cannot create session %s: %w", id, fileFault(s.dir, err))
	}
	var number int64
	err = s.writes.do(ctx, 2*len(doc)+512, func(t *tx) error {
		switch _, err := t.head(id); {
		case err == nil:
			return ErrExists
		case !errors.Is(err, ErrNotFound):
			return err
		}
		if err := t.row(`SELECT coalesce(max(number), 0) + 1 FROM sessions`, nil, &number); err != nil {
			return err
		}
		t.heads[id] = &head{number: number}
		_, err := t.append(id, []Fact{first}, nil)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot create session %s: %w", id, err)
	}
	return number, nil
}

// head reads the end of a session's chain; ErrNotFound when there is no session.
func (t *tx) head(session string) (*head, error) {
	if h := t.heads[session]; h != nil {
		return h, nil
	}
	h := new(head)
	var hash []byte
	err := t.row(`SELECT seq, time, hash FROM events WHERE session = ? ORDER BY seq DESC LIMIT 1`, []any{session}, &h.seq, &h.time, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, ErrNotFound
	case err != nil:
		return nil, err
	case len(hash) != len(h.hash):
		return nil, fmt.Errorf("event %d has a hash of %d bytes: %w", h.seq, len(hash), ErrTampered)
	}
	copy(h.hash[:], hash)
	t.heads[session] = h
	return h, nil
}

// append writes facts to the chain and to the tables of their kinds.
func (t *tx) append(session string, facts []Fact, events []Event) ([]Event, error) {
	h, err := t.head(session)
	if err != nil {
		return nil, err
	}
	for _, f := range facts {
		if f.Kind == KindSession {
			if f.Doc, err = t.numbered(session, h, f.Doc); err != nil {
				return nil, err
			}
		}
		// The clock may be set back; the chain's time isn't.
		at := max(time.Now().UnixNano(), h.time+1)
		e := Event{
			Session: session, Seq: h.seq + 1, At: time.Unix(0, at).UTC(), Kind: f.Kind, Event: f.Event, Key: f.Key,
			Doc: f.Doc, Prev: h.hash,
		}
		e.Hash = e.digest()
		k, doc := kindOf(f.Kind), string(e.Doc)
		err = t.exec(`INSERT INTO events (session, seq, time, kind, event, key, doc, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			session, int64(e.Seq), at, string(e.Kind), e.Event, e.Key, doc, e.Prev[:], e.Hash[:])
		if err == nil && !k.view {
			err = t.exec(k.upsert(), session, e.Key, int64(e.Seq), doc)
		}
		if err != nil {
			return nil, err
		}
		h.seq, h.time, h.hash = e.Seq, at, e.Hash
		events = append(events, e)
	}
	return events, nil
}

// numbered puts the session's number into its document.
func (t *tx) numbered(session string, h *head, doc json.RawMessage) (json.RawMessage, error) {
	if h.number == 0 {
		err := t.row(`SELECT number FROM sessions WHERE session = ? AND key = 0`, []any{session}, &h.number)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("the session: %w", ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
	}
	return numbered(doc, h.number)
}

// upsert writes a resource as it is now.
func (k *kind) upsert() string {
	return `INSERT INTO "` + k.table + `" (session, key, seq, doc) VALUES (?, ?, ?, ?)
ON CONFLICT (session, key) DO UPDATE SET seq = excluded.seq, doc = excluded.doc`
}

func (s *Store) fault(err error) error {
	if errors.Is(err, sql.ErrConnDone) || err != nil && err.Error() == "sql: database is closed" {
		return ErrClosed
	}
	return fault(s.dir, err)
}
