package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// empty is a folder with an empty file as its database, as it is before the first tables.
func empty(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	must.OK(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, database), nil)
	return dir
}

// raw runs statements on a database past the store.
func raw(t testing.TB, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, database)+"?_busy_timeout=5000")
	must.OK(t, err)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%.100s: %v", s, err)
		}
	}
	must.OK(t, db.Close())
}

// The columns that a person finds are those of the documents.
func TestColumns(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	appendFacts(t, s, id,
		Fact{Kind: KindAction, Key: 3, Event: "action.ended", Doc: json.RawMessage(`{"n":3,"kind":"edit","state":"ended","title":"x","exit":{"code":2},"by":"tui","shared":true}`)},
		Fact{Kind: KindAttempt, Key: 1, Event: "attempt.closed", Doc: json.RawMessage(`{"id":1,"name":"example.com","port":443,"duration":5000000000,"open":false}`)})
	var row string
	err := s.reads.QueryRow(`SELECT action_kind || ' ' || state || ' ' || exit_code || ' ' || "by" || ' ' || shared || ' ' || (SELECT name || port || "open" FROM attempts) FROM actions WHERE key = 3`).Scan(&row)
	if want := "edit ended 2 tui 1 example.com4430"; err != nil || row != want {
		t.Errorf("%q, %v; want %q", row, err, want)
	}
	must.OK(t, s.reads.QueryRow(`SELECT at FROM events WHERE seq = 1`).Scan(&row))
	ev, err := s.Events(t.Context(), id, 1, 1)
	if err != nil || ev[0].At.Format("2006-01-02T15:04:05.000000000Z") != row {
		t.Errorf("at %q, %v", row, err)
	}
	for _, k := range described() { // every column can be read, of rows that have nothing too
		appendFacts(t, s, id, Fact{Kind: k.name, Event: "x", Doc: json.RawMessage(`{}`)})
		rows, err := s.reads.Query(`SELECT * FROM "` + k.table + `"`)
		must.OK(t, err)
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Errorf("%s: %v", k.table, err)
		}
	}
}

// A record of another version is refused in words and left as it is.
func TestOtherSchema(t *testing.T) {
	dir := filled(t)
	for _, v := range []int{schema - 1, schema + 1} {
		raw(t, dir, fmt.Sprintf(`PRAGMA user_version = %d`, v))
		before := must.Get(os.ReadFile(filepath.Join(dir, database)))
		for name, open := range map[string]func(context.Context, string) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
			_, err := open(t.Context(), dir)
			if err := wants(name, err, ErrOther, fmt.Sprintf("form %d,", v), "the Stepbox that wrote it", "STEPBOX_DATA"); err != nil {
				t.Error(err)
			}
		}
		if !bytes.Equal(before, must.Get(os.ReadFile(filepath.Join(dir, database)))) {
			t.Error("the database was changed")
		}
	}
}

// Another program's database is refused and left as it is.
func TestForeignDatabase(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Chmod(dir, 0o700))
	raw(t, dir, `CREATE TABLE bookmarks (url TEXT)`)
	before := must.Get(os.ReadFile(filepath.Join(dir, database)))
	_, err := Open(t.Context(), dir)
	if err := wants("Open", err, errForeign, "STEPBOX_DATA"); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(before, must.Get(os.ReadFile(filepath.Join(dir, database)))) {
		t.Error("the database was changed")
	}
}

// While somebody has the record open, nobody makes it.
func TestNotMadeUnderLive(t *testing.T) {
	dir := empty(t)
	live, err := openLock(dir, true)
	must.OK(t, err)
	defer live.close()
	if ok, err := live.try(unix.LOCK_SH); !ok || err != nil {
		t.Fatal(ok, err)
	}
	_, err = Open(t.Context(), dir)
	if err := wants("Open", err, ErrInUse, "live sessions", "stepbox ls"); err != nil {
		t.Error(err)
	}
	if st := must.Get(os.Stat(filepath.Join(dir, database))); st.Size() != 0 {
		t.Errorf("the database has %d bytes now", st.Size())
	}
	must.OK(t, live.close())
	s := openAt(t, dir)
	// And an open store is such a live one.
	other, err := openLock(dir, true)
	must.OK(t, err)
	defer other.close()
	if ok, err := other.try(unix.LOCK_EX); ok || err != nil {
		t.Errorf("the schema could be changed under an open record: %v", err)
	}
	must.OK(t, s.Close())
	if ok, err := other.try(unix.LOCK_EX); !ok || err != nil {
		t.Errorf("a closed record is still locked: %v", err)
	}
}

// Many that open a new record at once make it once.
func TestMadeOnce(t *testing.T) {
	dir := empty(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := Open(context.Background(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			_, err = s.CreateSession(context.Background(), fmt.Sprintf("session%d", i), json.RawMessage(`{}`))
			if err := errors.Join(err, s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if docs, err := openAt(t, dir).Sessions(t.Context()); err != nil || len(docs) != 8 {
		t.Errorf("%d sessions, %v", len(docs), err)
	}
}
