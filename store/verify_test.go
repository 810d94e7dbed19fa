package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// Whoever can write the database can drop its triggers; what they change after
// that is still found.
func TestTampered(t *testing.T) {
	small, large := []byte("a manifest"), bytes.Repeat([]byte("large"), 10<<10)
	for _, tt := range []struct {
		name   string
		sql    string
		files  func(t *testing.T, s *Store)
		mended bool // Rebuild helps
	}{
		{name: "a denial becomes an approval", sql: `UPDATE events SET doc = replace(doc, 'denied', 'allowed') WHERE seq = 4`},
		{name: "and so in its table", sql: `UPDATE events SET doc = replace(doc, 'denied', 'allowed') WHERE seq = 4; UPDATE actions SET doc = replace(doc, 'denied', 'allowed')`},
		{name: "a time", sql: `UPDATE events SET time = time + 1 WHERE seq = 3`},
		{name: "a name", sql: `UPDATE events SET event = 'action.denied' WHERE seq = 3`},
		{name: "a number", sql: `UPDATE events SET key = 7 WHERE seq = 3`},
		{name: "a kind", sql: `UPDATE events SET kind = 'note' WHERE seq = 3`},
		{name: "an unknown kind", sql: `UPDATE events SET kind = 'secret' WHERE seq = 3`},
		{name: "a hash", sql: `UPDATE events SET hash = zeroblob(32) WHERE seq = 3`},
		{name: "a hash of no length", sql: `UPDATE events SET hash = x'00' WHERE seq = 3`},
		{name: "a link", sql: `UPDATE events SET prev = zeroblob(32) WHERE seq = 3`},
		{name: "the first event removed", sql: `DELETE FROM events WHERE seq = 1 AND session = 'aaaaaaaa'`},
		{name: "one removed", sql: `DELETE FROM events WHERE seq = 3`},
		{name: "one removed and the rest moved up", sql: `DELETE FROM events WHERE seq = 3; UPDATE events SET seq = -seq WHERE seq > 3; UPDATE events SET seq = -seq - 1 WHERE seq < 0`},
		{name: "the last removed", sql: `DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)`},
		{name: "two reordered", sql: `UPDATE events SET seq = -3 WHERE seq = 3; UPDATE events SET seq = 3 WHERE seq = 4; UPDATE events SET seq = 4 WHERE seq = -3`},
		{name: "one added", sql: `INSERT INTO events (session, seq, time, kind, event, key, doc, prev, hash) SELECT session, 99, time, kind, event, key, doc, prev, hash FROM events WHERE seq = 3`},
		{name: "one of another session", sql: `INSERT INTO events (session, seq, time, kind, event, key, doc, prev, hash) SELECT 'aaaaaaaa', 99, time, kind, event, key, doc, prev, hash FROM events WHERE session = 'bbbbbbbb' LIMIT 1`},
		{name: "a row changed", sql: `UPDATE actions SET doc = replace(doc, 'denied', 'allowed')`, mended: true},
		{name: "a row removed", sql: `DELETE FROM actions WHERE key = 2`, mended: true},
		{name: "a row added", sql: `INSERT INTO actions (session, key, seq, doc) VALUES ('aaaaaaaa', 9, 3, '{}')`, mended: true},
		{name: "one before the first", sql: `INSERT INTO events (session, seq, time, kind, event, key, doc, prev, hash) SELECT session, -5, 1, kind, event, 77, doc, prev, hash FROM events WHERE seq = 3`},
		{name: "one before the first, which a view shows", sql: `INSERT INTO events (session, seq, time, kind, event, key, doc, prev, hash) SELECT session, -5, 1, 'checkpoint', event, 77, doc, prev, hash FROM events WHERE seq = 3`},
		{name: "a row with nothing in it", sql: `UPDATE sessions SET doc = '[]' WHERE session = 'aaaaaaaa'`, mended: true},
		{name: "a row of no event", sql: `UPDATE actions SET seq = 'x' WHERE key = 1`, mended: true},
		{name: "a row of no number", sql: `UPDATE actions SET key = 'x' WHERE key = 1`, mended: true},
		{name: "a row of an older event", sql: `UPDATE actions SET seq = 2 WHERE key = 1`, mended: true},
		{name: "the session's row removed", sql: `DELETE FROM sessions WHERE session = 'aaaaaaaa'`, mended: true},
		{name: "a body in the database swapped", sql: `UPDATE bodies SET data = x'00'`},
		{name: "a body in the database removed", sql: `DELETE FROM bodies`},
		{name: "a body's file swapped", files: func(t *testing.T, s *Store) {
			write(t, s.bodyPath(HashOf(large)), bytes.ToUpper(large))
		}},
		{name: "a body's file cut", files: func(t *testing.T, s *Store) {
			must.OK(t, os.Truncate(s.bodyPath(HashOf(large)), 100))
		}},
		{name: "a body's file removed", files: func(t *testing.T, s *Store) {
			must.OK(t, os.Remove(s.bodyPath(HashOf(large))))
		}},
		{name: "a body's file a link", files: func(t *testing.T, s *Store) {
			p := s.bodyPath(HashOf(large))
			must.OK(t, os.Rename(p, p+"x"), os.Symlink(p+"x", p))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			id := session(t, s, "aaaaaaaa")
			session(t, s, "bbbbbbbb")
			var roots []Hash
			for _, b := range [][]byte{small, large} {
				h, _, err := s.PutBody(t.Context(), bytes.NewReader(b))
				must.OK(t, err)
				roots = append(roots, h)
			}
			checkpoint := func(n int) Fact {
				return Fact{Kind: KindCheckpoint, Key: int64(n), Event: "checkpoint", Doc: json.RawMessage(fmt.Sprintf(`{"id":%d,"root":%q}`, n, roots[n]))}
			}
			appendFacts(t, s, id, fact(1, "held"), fact(2, "running"), fact(1, "denied"), checkpoint(0), checkpoint(1), fact(2, "ended"))
			verify(t, s, id)
			if tt.sql != "" {
				raw(t, s.dir, `DROP TRIGGER events_stay; DROP TRIGGER events_remain;`, tt.sql)
			} else {
				tt.files(t, s)
			}
			err := s.Verify(t.Context(), id)
			if !errors.Is(err, ErrTampered) {
				t.Fatalf("Verify = %v", err)
			}
			err = s.Rebuild(t.Context(), id)
			if err == nil {
				err = s.Verify(t.Context(), id)
			}
			if (err == nil) != tt.mended {
				t.Errorf("after Rebuild: %v", err)
			}
			if err := s.Verify(t.Context(), "bbbbbbbb"); err != nil {
				t.Errorf("the other session: %v", err)
			}
		})
	}
}

// A slip of the hand in the sqlite3 program doesn't change an event.
func TestEventsAreGuarded(t *testing.T) {
	s := open(t)
	session(t, s, "aaaaaaaa")
	for _, q := range []string{`UPDATE events SET doc = '{}'`, `DELETE FROM events`} {
		if _, err := s.keep.db.Exec(q); err == nil || !strings.Contains(err.Error(), "events are never") {
			t.Errorf("%s: %v", q, err)
		}
	}
}

// Bodies that only other bodies name are checked when the caller knows them.
func TestVerifyReferences(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	appendFacts(t, s, id, fact(1, "held"))
	h, _, err := s.PutBody(t.Context(), strings.NewReader("leaf"))
	must.OK(t, err)
	refs := func(hs ...Hash) References {
		return func(_ context.Context, _ string, k Kind, doc json.RawMessage) ([]Hash, error) {
			if k != KindAction {
				return nil, nil
			}
			return hs, nil
		}
	}
	if err := s.Verify(t.Context(), id, refs(h)); err != nil {
		t.Error(err)
	}
	if err := s.Verify(t.Context(), id, refs(h, HashOf([]byte("gone")))); !errors.Is(err, ErrTampered) || !strings.Contains(err.Error(), "action 1") {
		t.Errorf("Verify = %v", err)
	}
}

// A swapped body is never handed out as whole.
func TestOpenBodyChecks(t *testing.T) {
	s := open(t)
	large := bytes.Repeat([]byte("large"), 10<<10)
	for _, b := range [][]byte{[]byte("small"), large} {
		h, _, err := s.PutBody(t.Context(), bytes.NewReader(b))
		must.OK(t, err)
		if len(b) > smallBody {
			write(t, s.bodyPath(h), append(b[:len(b)-1:len(b)-1], 'X'))
		} else {
			raw(t, s.dir, `UPDATE bodies SET data = x'00'`)
		}
		r, _, err := s.OpenBody(t.Context(), h)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if !errors.Is(err, ErrBody) {
			t.Errorf("a body of %d bytes: %v", len(b), err)
		}
		if len(b) <= smallBody {
			continue
		}
		// It is missing from then on, and stored anew when its content comes again.
		if gone, err := s.HasBodies(t.Context(), []Hash{h}); err != nil || len(gone) != 1 {
			t.Errorf("missing are %v, %v", gone, err)
		}
		if _, _, err := s.PutBody(t.Context(), bytes.NewReader(large)); err != nil {
			t.Fatal(err)
		}
		r, _, err = s.OpenBody(t.Context(), h)
		must.OK(t, err)
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, large) {
			t.Errorf("stored anew it has %d bytes, %v", len(got), err)
		}
		r.Close()
		if c, err := s.Collect(t.Context(), false, nil); err != nil || c.Bodies != 3 {
			t.Errorf("collected %+v, %v", c, err)
		}
		if left, _ := filepath.Glob(s.bodyPath(h) + "*"); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	}
}

// A record is verified while it is written.
func TestVerifyLive(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := int64(0); ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := s.Append(context.Background(), id, fact(i%50, "running")); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 20 {
		verify(t, s, id)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A session names what its project was in a member of a member.
func TestVerifyFindsABase(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	h, _, err := s.PutBody(t.Context(), strings.NewReader("base"))
	must.OK(t, err)
	for _, tt := range []struct{ base, problem string }{
		{`{"hash":"` + h.String() + `"}`, ""}, {`{}`, ""}, {`{"hash":""}`, ""},
		{`{"hash":"` + HashOf([]byte("gone")).String() + `"}`, "the session names the content"}, {`{"hash":7}`, "base.hash"}, {`"x"`, "base.hash"},
	} {
		appendFacts(t, s, id, Fact{Kind: KindSession, Event: "session.based", Doc: json.RawMessage(`{"base":` + tt.base + `}`)})
		err := s.Verify(t.Context(), id)
		if tt.problem == "" && err != nil || tt.problem != "" && (!errors.Is(err, ErrTampered) || !strings.Contains(err.Error(), tt.problem)) {
			t.Errorf("%s: Verify = %v", tt.base, err)
		}
	}
}
