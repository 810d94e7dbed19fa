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
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// everything is a closed record of a session with a resource of every kind, bodies in
// the database and in files, packed output and output that isn't packed.
func everything(t *testing.T) (dir string, large Hash) {
	t.Helper()
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	small, _, err := s.PutBody(t.Context(), strings.NewReader("a small one"))
	must.OK(t, err)
	if large, _, err = s.PutBody(t.Context(), bytes.NewReader(bytes.Repeat([]byte("large"), 10<<10))); err != nil {
		t.Fatal(err)
	}
	for i, k := range described() {
		if k.name == KindSession || k.name == KindChunk {
			continue
		}
		doc := fmt.Sprintf(`{"id":1,"title":"what it was","root":%q,"by":"going"}`, []Hash{small, large}[i%2])
		appendFacts(t, s, id, Fact{Kind: k.name, Key: 1, Event: "was", Doc: json.RawMessage(doc)}, Fact{Kind: k.name, Key: 1, Event: "is", Doc: json.RawMessage(doc)})
	}
	for i, root := range []Hash{small, large} {
		appendFacts(t, s, id, Fact{Kind: KindCheckpoint, Key: int64(i + 2), Event: "is", Doc: json.RawMessage(fmt.Sprintf(`{"root":%q}`, root))})
	}
	j, err := s.Journal(id)
	if err == nil {
		err = errors.Join(j.Output([]byte("first line\n")), j.Close())
	}
	if err == nil {
		j, err = s.Journal(id)
	}
	must.OK(t, err)
	// A supervisor that is killed leaves its last output as it is.
	raw := filepath.Join(s.SessionDir(id), terminal, "000002.raw")
	err = j.Output([]byte("second line\n"))
	left := must.Get(os.ReadFile(raw))
	must.OK(t, err, j.Close(), s.Close())
	write(t, filepath.Join(s.SessionDir(id), terminal, "000003.raw"), renumbered(left))
	return s.dir, large
}

// renumbered is the file after the one that it was.
func renumbered(raw []byte) []byte {
	began := must.Get(parseHeader(raw, 2))
	p := parser{b: raw[headerSize:], number: 2}
	f := must.Get(p.next())
	return appendFrame(appendHeader(nil, began, 3), f.Kind, uint64(f.At.Milliseconds()), f.Data, 3)
}

// wrong is what examining all sessions finds.
func wrong(ctx context.Context, s *Store) error {
	ids, err := s.Everywhere(ctx)
	for _, id := range ids {
		err = errors.Join(err, s.Verify(ctx, id))
	}
	return err
}

// A bit flipped in any column of any row is found.
func TestFlippedFields(t *testing.T) {
	dir, _ := everything(t)
	s := openAt(t, dir)
	if err := wrong(t.Context(), s); err != nil {
		t.Fatalf("before anything was changed: %v", err)
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, database)+"?_busy_timeout=5000")
	must.OK(t, err)
	defer db.Close()
	if _, err := db.Exec(`DROP TRIGGER events_stay`); err != nil {
		t.Fatal(err)
	}
	tables := []string{"events", "bodies"}
	for _, k := range tabled() {
		tables = append(tables, k.table)
	}
	for _, table := range tables {
		flipped := 0
		for _, f := range fields(t, db, table) {
			flipped++
			if !f.flip(t, db) {
				t.Errorf("%s: nothing in it could be flipped", f)
				continue
			}
			if err := wrong(t.Context(), s); !errors.Is(err, ErrTampered) && !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: a flipped bit isn't found: %v", f, err)
			}
			f.set(t, db, f.was)
		}
		if flipped == 0 {
			t.Errorf("there is no row of %s", table)
		}
	}
	if err := wrong(t.Context(), s); err != nil {
		t.Errorf("when all is as it was: %v", err)
	}
	// And in any column of what the database is made of, by whoever asks SQLite for it.
	if _, err := db.Exec(eventsStay + `; PRAGMA writable_schema = ON`); err != nil {
		t.Fatal(err)
	}
	flipped := 0
	for _, f := range fields(t, db, "sqlite_schema") {
		if f.was == nil || f.column == "rootpage" || !f.flip(t, db) {
			continue // an index that SQLite makes by itself has no statement; pages are TestSound's
		}
		flipped++
		if err := wrong(t.Context(), s); err == nil { // or it can't be read as a database at all
			t.Errorf("%s (%v): a flipped bit isn't found: %v", f, f.was, err)
		}
		if c, err := s.Collect(t.Context(), true, nil); err == nil {
			t.Errorf("%s (%v): all the same it collects %+v", f, f.was, c)
		}
		f.set(t, db, f.was)
	}
	if flipped < 60 {
		t.Errorf("only %d could be flipped", flipped)
	}
	if err := wrong(t.Context(), s); err != nil {
		t.Errorf("when all is as it was again: %v", err)
	}
}

// A view that says something else than the events is found, keeps contents from being
// collected, and is made again.
func TestForgedViews(t *testing.T) {
	dir, _ := everything(t)
	s := openAt(t, dir)
	for _, k := range described() {
		if !k.view {
			continue
		}
		var is string
		must.OK(t, s.reads.QueryRow(`SELECT sql FROM sqlite_schema WHERE name = ?`, k.table).Scan(&is))
		raw(t, dir, `DROP VIEW "`+k.table+`"`, strings.Replace(is, `seq, doc,`, `seq, json_set(doc, '$.root', '') AS doc,`, 1))
		found, err := s.Examine(t.Context(), "aaaaaaaa", Examination{})
		if err != nil || len(found.Problems) < 2 {
			t.Errorf("%s: it finds %v, %v", k.table, found.Problems, err)
		}
		if c, err := s.Collect(t.Context(), false, nil); err == nil {
			t.Errorf("%s: it collects %+v", k.table, c)
		}
		if err := errors.Join(s.Rebuild(t.Context(), "aaaaaaaa"), wrong(t.Context(), s)); err != nil {
			t.Errorf("%s: after Rebuild: %v", k.table, err)
		}
	}
}

// field is one column of one row.
type field struct {
	table, column string
	row           int64
	was           any
}

func (f field) String() string { return fmt.Sprintf("%s of row %d of %s", f.column, f.row, f.table) }

// fields lists the stored columns of all rows of a table.
func fields(t *testing.T, db *sql.DB, table string) (out []field) {
	t.Helper()
	var columns string
	must.OK(t, db.QueryRow(`SELECT group_concat(name) FROM pragma_table_xinfo(?) WHERE hidden = 0`, table).Scan(&columns))
	for _, c := range strings.Split(columns, ",") {
		rows, err := db.Query(fmt.Sprintf(`SELECT rowid, "%s" FROM "%s"`, c, table))
		must.OK(t, err)
		for rows.Next() {
			f := field{table: table, column: c}
			must.OK(t, rows.Scan(&f.row, &f.was))
			out = append(out, f)
		}
		must.OK(t, rows.Err(), rows.Close())
	}
	return out
}

// flip flips the first bit that the table's own rules let be flipped.
func (f field) flip(t *testing.T, db *sql.DB) bool {
	t.Helper()
	if n, ok := f.was.(int64); ok {
		return f.try(db, n^1) == nil || f.try(db, n^(1<<40)) == nil
	}
	b, isBlob := f.was.([]byte)
	if s, ok := f.was.(string); ok {
		b = []byte(s)
	}
	for i := range b {
		b := bytes.Clone(b)
		b[i] ^= 1
		var to any = string(b)
		if isBlob {
			to = b
		}
		if f.try(db, to) == nil {
			return true
		}
	}
	return false
}

func (f field) try(db *sql.DB, to any) error {
	_, err := db.Exec(fmt.Sprintf(`UPDATE "%s" SET "%s" = ? WHERE rowid = ?`, f.table, f.column), to, f.row)
	return err
}

func (f field) set(t *testing.T, db *sql.DB, to any) {
	t.Helper()
	if err := f.try(db, to); err != nil {
		t.Fatalf("%s: %v", f, err)
	}
}

// A bit flipped in any byte of any file that belongs to a session is found.
func TestFlippedFiles(t *testing.T) {
	dir, large := everything(t)
	s := openAt(t, dir)
	folder := filepath.Join(s.SessionDir("aaaaaaaa"), terminal)
	for _, p := range []string{filepath.Join(folder, "000001.zst"), filepath.Join(folder, "000002.zst"), filepath.Join(folder, "000003.raw"), s.bodyPath(large)} {
		was := must.Get(os.ReadFile(p))
		for i := 0; i < len(was); i += max(1, len(was)/200) {
			b := bytes.Clone(was)
			b[i] ^= 0x10
			write(t, p, b)
			found, err := s.Examine(t.Context(), "aaaaaaaa", Examination{})
			if err != nil || len(found.Problems) == 0 && !found.Torn {
				t.Errorf("%s: a flipped bit of byte %d isn't found: %v", p, i, err)
			}
			_ = os.Remove(p + damaged) // where a body that was found so is put
		}
		write(t, p, was)
		if err := wrong(t.Context(), s); err != nil {
			t.Errorf("%s as it was: %v", p, err)
		}
	}
}

// Damage of the database's own structure, and guards that are gone, are told of.
func TestSound(t *testing.T) {
	s := open(t)
	session(t, s, "aaaaaaaa")
	session(t, s, "bbbbbbbb")
	if wrong, err := s.Sound(t.Context()); err != nil || len(wrong) > 0 {
		t.Fatalf("of a new record it is said %q, %v", wrong, err)
	}
	raw(t, s.dir, `DROP TRIGGER events_remain`, `DROP TRIGGER events_stay`, `CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT 1; END`, `PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '(number)', '(seq)') WHERE name = 'sessions_number'`)
	wrong, err := openAt(t, s.dir).Sound(t.Context())
	if text := fmt.Sprint(wrong); err != nil || !strings.Contains(text, "events_remain") || !strings.Contains(text, "events_stay") || !strings.Contains(text, "sessions_number") {
		t.Errorf("it is said %q, %v", wrong, err)
	}
}
