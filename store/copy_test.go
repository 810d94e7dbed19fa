package store

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"stepbox/session/e2e/must"
)

// A copy that SQLite made of the database can be put in its place, by whoever opens it first.
func TestCopyPutBack(t *testing.T) {
	dir := filled(t)
	must.OK(t, Check(t.Context(), dir))
	copied := filepath.Join(t.TempDir(), "copy.db")
	for _, how := range []string{`VACUUM INTO '` + copied + `'`, `PRAGMA journal_mode = DELETE`} {
		raw(t, dir, how)
		if _, err := os.Stat(copied); err == nil {
			must.OK(t, os.Rename(copied, filepath.Join(dir, database)))
		}
		ro, err := OpenReadOnly(t.Context(), dir)
		must.OK(t, err)
		// Who looks at it keeps it from being changed, which is said.
		if err := wants("Check", Check(t.Context(), dir), ErrInUse, "put there from a copy", "stepbox ls"); err != nil {
			t.Error(err)
		}
		must.OK(t, ro.Close())
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := Check(context.Background(), dir); err != nil {
					t.Errorf("%s: %v", how, err)
				}
			})
		}
		all.Wait()
		s := openAt(t, dir)
		verify(t, s, "aaaaaaaa")
		appendFacts(t, s, "aaaaaaaa", fact(99+int64(len(how)), "held"))
		must.OK(t, s.Close())
	}
}

// A record whose database is gone, empty or without all that was in its log isn't begun
// anew while there are sessions of it: it says how to go on, and that works.
func TestDatabaseMissing(t *testing.T) {
	s := open(t)
	dir := s.dir
	id := session(t, s, "aaaaaaaa")
	must.OK(t, s.Close())
	db := filepath.Join(dir, database)
	must.OK(t, os.Remove(db))
	openAt(t, dir).Close() // the folder has nothing of a session
	for what, bytes := range map[string][]byte{"sealed": []byte("x"), "terminal/file": nil, "mine": nil, "upper/laid out": nil} {
		p := filepath.Join(dir, sessions, id, what)
		must.OK(t, os.MkdirAll(filepath.Dir(p), 0o700))
		write(t, p, bytes)
		for _, left := range []string{"nothing", "an empty file", "a database without its log"} {
			must.OK(t, os.RemoveAll(db))
			switch left {
			case "an empty file":
				write(t, db, nil)
			case "a database without its log":
				raw(t, dir, `PRAGMA journal_mode = WAL`)
			}
			s, err := Open(t.Context(), dir)
			if err == nil {
				err = s.Close()
			}
			if what == "mine" || what == "upper/laid out" {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				continue
			}
			if err := wants("Open", err, ErrMissing, "of sessions that it had (1)", "Put it back"); err != nil {
				t.Errorf("%s, %s: %v", what, left, err)
			}
			if err := wants("Check", Check(t.Context(), dir), ErrMissing); err != nil {
				t.Errorf("%s, %s: %v", what, left, err)
			}
			if _, err := os.Stat(db); left == "nothing" && err == nil {
				t.Error("a database was made all the same")
			}
		}
		must.OK(t, os.RemoveAll(filepath.Join(dir, sessions, id)))
	}
}
