package store

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

//go:embed testdata/schema_v*.sql
var schemas embed.FS // other users run the tests where they can't read the folder

// frozen makes a database from testdata/schema_vN.sql, which is what version N
// made and never changes.
func frozen(t *testing.T, v int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if v == 0 { // before the first version there is an empty file at most
		write(t, filepath.Join(dir, database), nil)
		return dir
	}
	raw(t, dir, `PRAGMA journal_mode = WAL`, string(must(schemas.ReadFile(fmt.Sprintf("testdata/schema_v%d.sql", v)))))
	return dir
}

// raw runs statements on a database past the store.
func raw(t testing.TB, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, database)+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%.100s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// shape describes the schema: every table, column, index and trigger.
func shape(t *testing.T, q querier) map[string]string {
	t.Helper()
	out := make(map[string]string)
	rows, err := q.QueryContext(t.Context(), `SELECT s.type || ' ' || s.name || ' ' || coalesce(x.name, ''),
	coalesce(x.type || ' ' || x."notnull" || ' ' || x.pk || ' ' || x.hidden, s.sql, '')
FROM sqlite_schema s LEFT JOIN pragma_table_xinfo(s.name) x ON s.type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var k, v string
		if err := rows.Scan(&k, &v); err != nil {
			t.Fatal(err)
		}
		out[k] = v
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Every older version opens, keeps what it holds, gets the schema that a new
// record has, and can be written.
func TestOpenEveryVersion(t *testing.T) {
	want := shape(t, open(t).reads)
	for v := range schema + 1 {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			s := openAt(t, frozen(t, v))
			got := shape(t, s.reads)
			for _, k := range slices.Sorted(maps.Keys(want)) {
				if got[k] != want[k] {
					t.Errorf("%s is %q, and %q in a new record", k, got[k], want[k])
				}
				delete(got, k)
			}
			if len(got) > 0 {
				t.Errorf("a new record doesn't have %v", got)
			}
			const id = "aaaaaaaa"
			if v == 0 {
				session(t, s, id)
			} else {
				docs, err := s.Docs(t.Context(), id, KindAction, 0, 0)
				if err != nil || len(docs) != 1 || !strings.Contains(string(docs[0]), "go test") {
					t.Errorf("Docs = %s, %v", docs, err)
				}
				if b, _, err := s.OpenBody(t.Context(), HashOf([]byte("body"))); err != nil {
					t.Error(err)
				} else if err := b.Close(); err != nil {
					t.Error(err)
				}
			}
			verify(t, s, id)
			appendFacts(t, s, id, fact(2, "held"))
			verify(t, s, id)
			if got, err := version(t.Context(), s.reads); err != nil || got != schema {
				t.Errorf("version %d, %v", got, err)
			}
		})
	}
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
	if err := s.reads.QueryRow(`SELECT at FROM events WHERE seq = 1`).Scan(&row); err != nil {
		t.Fatal(err)
	}
	ev, err := s.Events(t.Context(), id, 1, 1)
	if err != nil || ev[0].At.Format("2006-01-02T15:04:05.000000000Z") != row {
		t.Errorf("at %q, %v", row, err)
	}
	for _, k := range described() { // every column can be read, of rows that have nothing too
		appendFacts(t, s, id, Fact{Kind: k.name, Event: "x", Doc: json.RawMessage(`{}`)})
		rows, err := s.reads.Query(`SELECT * FROM "` + k.table + `"`)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Errorf("%s: %v", k.table, err)
		}
	}
}

// A record of a newer Stepbox is refused in words and left as it is.
func TestNewerSchema(t *testing.T) {
	dir := filled(t)
	raw(t, dir, fmt.Sprintf(`PRAGMA user_version = %d`, schema+1))
	before := must(os.ReadFile(filepath.Join(dir, database)))
	for name, open := range map[string]func(context.Context, string) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
		_, err := open(t.Context(), dir)
		if err := wants(name, err, ErrNewer, fmt.Sprintf("schema %d", schema+1), "newer Stepbox", "STEPBOX_DATA"); err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(before, must(os.ReadFile(filepath.Join(dir, database)))) {
		t.Error("the database was changed")
	}
}

// Another program's database is refused and left as it is.
func TestForeignDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	raw(t, dir, `CREATE TABLE bookmarks (url TEXT)`)
	before := must(os.ReadFile(filepath.Join(dir, database)))
	_, err := Open(t.Context(), dir)
	if err := wants("Open", err, errForeign, "STEPBOX_DATA"); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(before, must(os.ReadFile(filepath.Join(dir, database)))) {
		t.Error("the database was changed")
	}
}

// While an older Stepbox has the record open, a newer one doesn't migrate it.
func TestNotMigratedUnderLive(t *testing.T) {
	dir := frozen(t, 0)
	live, err := openLock(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer live.close()
	if ok, err := live.try(unix.LOCK_SH); !ok || err != nil {
		t.Fatal(ok, err)
	}
	_, err = Open(t.Context(), dir)
	if err := wants("Open", err, ErrInUse, "live sessions", "stepbox ls"); err != nil {
		t.Error(err)
	}
	if st := must(os.Stat(filepath.Join(dir, database))); st.Size() != 0 {
		t.Errorf("the database has %d bytes now", st.Size())
	}
	if err := live.close(); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, dir)
	// And an open store is such a live one.
	other, err := openLock(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if ok, err := other.try(unix.LOCK_EX); ok || err != nil {
		t.Errorf("the schema could be changed under an open record: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if ok, err := other.try(unix.LOCK_EX); !ok || err != nil {
		t.Errorf("a closed record is still locked: %v", err)
	}
}

// Many that open an old record at once migrate it once.
func TestMigratedOnce(t *testing.T) {
	dir := frozen(t, 0)
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

// A record of an older schema that can't be upgraded just now can be read: it has
// nothing of the kinds that came later, and verifies.
func TestReadOlderSchema(t *testing.T) {
	for v := 1; v < schema; v++ {
		s, err := OpenReadOnly(t.Context(), frozen(t, v))
		if err != nil {
			t.Fatal(err)
		}
		docs, err := s.Docs(t.Context(), "aaaaaaaa", KindApply, 0, 0)
		if err != nil || len(docs) != 0 {
			t.Errorf("schema %d: Docs = %s, %v", v, docs, err)
		}
		if _, err := s.Doc(t.Context(), "aaaaaaaa", KindApply, 1); !errors.Is(err, ErrNotFound) {
			t.Errorf("schema %d: Doc = %v", v, err)
		}
		verify(t, s, "aaaaaaaa")
		es, err := s.Events(t.Context(), "aaaaaaaa", 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		// What is a view by now was a table, which is compared with the events.
		if v >= kindOf(KindExec).view {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		last := es[len(es)-1]
		e := Event{Session: last.Session, Seq: last.Seq + 1, At: last.At.Add(1), Kind: KindExec, Event: "exec.denied", Key: 1, Doc: []byte(`{"id":1,"verdict":"deny"}`), Prev: last.Hash}
		e.Hash = e.digest()
		for _, harm := range []string{"deny", "allow"} {
			raw(t, s.dir, fmt.Sprintf(`INSERT OR IGNORE INTO events (session, seq, time, kind, event, key, doc, prev, hash) VALUES ('%s', %d, %d, '%s', '%s', 1, '%s', x'%s', x'%s')`,
				e.Session, e.Seq, e.At.UnixNano(), e.Kind, e.Event, e.Doc, e.Prev, e.Hash),
				fmt.Sprintf(`INSERT OR REPLACE INTO execs (session, key, seq, doc) VALUES ('aaaaaaaa', 1, %d, replace('%s', 'deny', '%s'))`, e.Seq, e.Doc, harm))
			if err := s.Verify(t.Context(), e.Session); (err == nil) != (harm == "deny") {
				t.Errorf("schema %d: a row that says %s: %v", v, harm, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
