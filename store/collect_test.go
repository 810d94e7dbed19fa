package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// put stores a body.
func put(t *testing.T, s *Store, b []byte) Hash {
	t.Helper()
	h, _, err := s.PutBody(t.Context(), bytes.NewReader(b))
	must.OK(t, err)
	return h
}

func has(t *testing.T, s *Store, h Hash) bool {
	t.Helper()
	missing, err := s.HasBodies(t.Context(), []Hash{h})
	must.OK(t, err)
	return len(missing) == 0
}

// TestRemoveAndCollect: a removed session is gone with what only it named, and
// nothing else is.
func TestRemoveAndCollect(t *testing.T) {
	s := open(t)
	gone, stays := session(t, s, "aaaaaaaa"), session(t, s, "bbbbbbbb")
	large := bytes.Repeat([]byte("large"), 10<<10)
	onlyGone, both, led, loose, big := put(t, s, []byte("only")), put(t, s, []byte("both")), put(t, s, []byte("led to")), put(t, s, []byte("nobody's")), put(t, s, large)
	root := func(h Hash, key int64) Fact {
		return Fact{Kind: KindCheckpoint, Key: key, Event: "checkpoint", Doc: json.RawMessage(`{"id":1,"root":"` + h.String() + `"}`)}
	}
	appendFacts(t, s, gone, root(onlyGone, 1), root(both, 2), root(big, 3))
	appendFacts(t, s, stays, root(both, 1))
	leads := func(_ context.Context, id string, k Kind, _ json.RawMessage) ([]Hash, error) {
		if id == stays && k == KindCheckpoint {
			return []Hash{led}, nil
		}
		return nil, nil
	}
	c, err := s.Collect(t.Context(), true, nil, leads)
	if err != nil || c.Bodies != 1 || c.Bytes != int64(len("nobody's")) || !has(t, s, loose) {
		t.Fatalf("a dry collection says %+v, %v", c, err)
	}
	must.OK(t, s.Remove(t.Context(), gone))
	if err := s.Remove(t.Context(), gone); !errors.Is(err, ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}
	if _, err := s.Doc(t.Context(), gone, KindSession, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("the removed session is there: %v", err)
	}
	if err := s.Verify(t.Context(), stays, leads); err != nil {
		t.Error(err)
	}
	// Events are kept from everyone else as before.
	err = s.writes.do(t.Context(), 0, func(x *tx) error { return x.exec(`DELETE FROM events`) })
	if err == nil || !strings.Contains(err.Error(), "never removed") {
		t.Errorf("events can be removed: %v", err)
	}

	c, err = s.Collect(t.Context(), false, nil, leads)
	if err != nil || c.Bodies != 3 || len(c.Folders) != 1 || c.Folders[0] != s.SessionDir(gone)+Removed {
		t.Errorf("the collection says %+v, %v", c, err)
	}
	for h, want := range map[Hash]bool{onlyGone: false, loose: false, big: false, both: true, led: true} {
		if has(t, s, h) != want {
			t.Errorf("body %s is there: %v", h, !want)
		}
	}
	if err := s.Verify(t.Context(), stays, leads); err != nil {
		t.Error(err)
	}
	// What was collected can be stored again.
	if r, _, err := s.OpenBody(t.Context(), put(t, s, large)); err != nil {
		t.Error(err)
	} else if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, large) {
		t.Errorf("stored again: %v", err)
	}
}

// TestCollectFailsClosed: nothing is removed while someone else may be about to
// name it, nor when it can't be told what is named.
func TestCollectFailsClosed(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	appendFacts(t, s, id, fact(1, "held"))
	loose := put(t, s, []byte("nobody's"))
	other, err := Open(t.Context(), s.dir)
	must.OK(t, err)
	if _, err := s.Collect(t.Context(), false, nil); !errors.Is(err, ErrBusy) || !has(t, s, loose) {
		t.Errorf("beside another: %v", err)
	}
	// It has the record shared again: an upgrade by another would have to wait.
	if ok, err := other.lock.try(unix.LOCK_EX); ok || err != nil {
		t.Errorf("the shared lock is lost: %v, %v", ok, err)
	}
	must.OK(t, other.Close())
	unknown := func(context.Context, string, Kind, json.RawMessage) ([]Hash, error) { return nil, os.ErrInvalid }
	if _, err := s.Collect(t.Context(), false, nil, unknown); !errors.Is(err, os.ErrInvalid) || !has(t, s, loose) {
		t.Errorf("with what can't be told: %v", err)
	}
	if _, err := s.Collect(t.Context(), false, nil); err != nil || has(t, s, loose) {
		t.Errorf("alone: %v", err)
	}
}

// A removal that is cut short once the rows are gone leaves a folder that the next collection
// takes; one that fails before that leaves the session, whose folder is kept as ever, also
// where an older copy of the record, which doesn't know the session, is put back then.
func TestRemoveCutShort(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	dir := s.SessionDir(id)
	folders := func(unknown, stray int) {
		t.Helper()
		known, err := s.Unknown(t.Context())
		if err != nil || len(known) != unknown {
			t.Errorf("folders that the record doesn't know: %v, %v", known, err)
		}
		if c, err := s.Collect(t.Context(), true, nil); err != nil || len(c.Folders) != stray {
			t.Errorf("a collection takes %v, %v", c.Folders, err)
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "sealed"), []byte("x"), 0o600))
	raw(t, s.dir, `CREATE TRIGGER stop BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'stopped'); END`)
	if err := s.Remove(t.Context(), id); err == nil {
		t.Fatal("nothing stops it")
	}
	raw(t, s.dir, `DROP TRIGGER stop`)
	folders(0, 0)
	raw(t, s.dir, `DELETE FROM sessions; DROP TRIGGER events_remain; DELETE FROM events`) // as in an older copy
	folders(1, 1)

	id = session(t, s, "bbbbbbbb")
	dir = s.SessionDir(id)
	must.OK(t, os.WriteFile(filepath.Join(dir, "sealed"), []byte("x"), 0o600), os.MkdirAll(filepath.Join(dir+Removed, "x"), 0o700))
	if err := s.Remove(t.Context(), id); err == nil {
		t.Fatal("its folder has another name")
	}
	folders(1, 3)
	raw(t, s.dir, `DELETE FROM labels`) // as in a copy older than the session
	folders(2, 3)

	id = session(t, s, "cccccccc")
	must.OK(t, s.Remove(t.Context(), id))
	if labels, err := s.Labels(t.Context()); err != nil || len(labels) > 0 {
		t.Errorf("what is left of it: %v, %v", labels, err)
	}
}

// Nothing is removed by a session's row that isn't what its events say: what it no longer
// names would be missing when the row is made again.
func TestCollectBySoundRows(t *testing.T) {
	s := open(t)
	session(t, s, "aaaaaaaa")
	id := session(t, s, "bbbbbbbb")
	base := put(t, s, []byte("what the project was"))
	appendFacts(t, s, id, Fact{Kind: KindSession, Event: "session.ended", Doc: json.RawMessage(`{"state":"ended","base":{"hash":"` + base.String() + `"}}`)})
	for _, does := range []string{
		`UPDATE sessions SET doc = '{"number":2}' WHERE session = 'bbbbbbbb'`,
		`UPDATE sessions SET doc = '[]', seq = 1 WHERE session = 'bbbbbbbb'`,
		`UPDATE sessions SET doc = e.doc, seq = e.seq FROM (SELECT doc, seq FROM events WHERE session = 'bbbbbbbb' AND seq = 1) e WHERE session = 'bbbbbbbb'`,
		`DELETE FROM sessions WHERE session = 'bbbbbbbb'`,
	} {
		raw(t, s.dir, does)
		if c, err := s.Collect(t.Context(), false, nil); err == nil || !strings.Contains(err.Error(), "table of sessions says of bbbbbbbb") || !strings.Contains(err.Error(), "stepbox rm bbbbbbbb --force") || !has(t, s, base) {
			t.Errorf("%s: %+v, %v", does, c, err)
		}
		must.OK(t, s.Rebuild(t.Context(), id))
		if c, err := s.Collect(t.Context(), false, nil); err != nil || c.Bodies != 0 {
			t.Errorf("made again after %s: %+v, %v", does, c, err)
		}
	}
}

// The look at the table of sessions that goes before a collection, of a record of many.
func BenchmarkSane(b *testing.B) {
	s := manySessions(b, 10_000)
	for b.Loop() {
		must.OK(b, s.Sane(b.Context()))
	}
}
