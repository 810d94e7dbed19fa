package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func backups(t *testing.T, dir string) []string {
	t.Helper()
	return must(filepath.Glob(filepath.Join(dir, backupsDir, "*")))
}

// Before a record is upgraded it is kept as it was, readable by the Stepbox that made it.
func TestBackedUpBeforeUpgrade(t *testing.T) {
	for v := 1; v < schema; v++ {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			dir := frozen(t, v)
			openAt(t, dir)
			made := backups(t, dir)
			if len(made) != 1 || !strings.Contains(made[0], fmt.Sprintf("schema%d-", v)) {
				t.Fatalf("there is %q", made)
			}
			if st := must(os.Stat(made[0])); st.Mode().Perm() != 0o600 {
				t.Errorf("it has mode %v", st.Mode())
			}
			old := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(old, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(old, database), must(os.ReadFile(made[0])))
			s, err := OpenReadOnly(t.Context(), old)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.schema != v {
				t.Errorf("it has schema %d", s.schema)
			}
			verify(t, s, "aaaaaaaa")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			verify(t, openAt(t, old), "aaaaaaaa") // and goes on
		})
	}
	dir := frozen(t, 0)
	if openAt(t, dir); len(backups(t, dir)) > 0 {
		t.Error("an empty database was backed up")
	}
}

// A copy that SQLite made of the database can be put in its place, by whoever opens it first.
func TestCopyPutBack(t *testing.T) {
	dir := frozen(t, schema)
	if err := Check(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	for _, how := range []string{`VACUUM INTO '` + copied + `'`, `PRAGMA journal_mode = DELETE`} {
		raw(t, dir, how)
		if _, err := os.Stat(copied); err == nil {
			if err := os.Rename(copied, filepath.Join(dir, database)); err != nil {
				t.Fatal(err)
			}
		}
		ro, err := OpenReadOnly(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		// Who looks at it keeps it from being changed, which is said.
		if err := wants("Check", Check(t.Context(), dir), ErrInUse, "put there from a copy", "stepbox ls"); err != nil {
			t.Error(err)
		}
		if err := ro.Close(); err != nil {
			t.Fatal(err)
		}
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
		appendFacts(t, s, "aaaaaaaa", fact(99, "held"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if made := backups(t, dir); len(made) > 0 {
			t.Errorf("there is %q", made)
		}
	}
}

// Only the newest backups stay, and what an interrupted one left goes.
func TestBackupsArePruned(t *testing.T) {
	dir := frozen(t, 1)
	folder := filepath.Join(dir, backupsDir)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stepbox-schema1-20200101T000000.000.db", "stepbox-schema9-20190101T000000.000.db", "stepbox-schema1-20210101T000000.000.db", "unfinished", "mine.db"} {
		write(t, filepath.Join(folder, name), []byte("old"))
	}
	openAt(t, dir)
	var names []string
	for _, p := range backups(t, dir) {
		names = append(names, filepath.Base(p))
	}
	if len(names) != 3 || names[0] != "mine.db" || names[1] != "stepbox-schema1-20210101T000000.000.db" {
		t.Errorf("there is %q", names)
	}
}

// An upgrade that fails again and again leaves one copy, of before it changed anything.
func TestFailedUpgradeKeepsOneBackup(t *testing.T) {
	for v, want := range map[int]int{schema - 1: 0, schema - 2: 1} {
		dir := frozen(t, v)
		raw(t, dir, `CREATE TABLE claims (x)`) // which the last step makes as a view
		for range 3 {
			if s, err := Open(t.Context(), dir); err == nil {
				s.Close()
				t.Fatal("it was upgraded")
			}
		}
		made := backups(t, dir)
		if len(made) != want || want > 0 && !strings.Contains(made[0], fmt.Sprintf("schema%d-", v)) {
			t.Errorf("from schema %d there is %q", v, made)
		}
	}
}

// A disk with no room for a copy leaves the record as it is, and it can be read.
func TestNoRoomForBackup(t *testing.T) { inNamespace(t, "no room for a backup", t.TempDir()) }

func init() { children["no room for a backup"] = noRoomForBackup }

func noRoomForBackup(args []string) error {
	dir, ctx := args[0], context.Background()
	if err := unix.Mount("none", dir, "tmpfs", 0, "mode=700,size=2m"); err != nil {
		return err
	}
	old, err := schemas.ReadFile("testdata/schema_v1.sql")
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, database))
	if err != nil {
		return err
	}
	_, err = db.Exec("PRAGMA journal_mode = WAL;" + string(old))
	var st unix.Statfs_t
	if err := errors.Join(err, db.Close(), unix.Statfs(dir, &st)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, int64(st.Bavail)*st.Bsize-128<<10), 0o600); err != nil {
		return err
	}
	_, err = Open(ctx, dir)
	if err := wants("Open", err, ErrFull, "copy of the record", "STEPBOX_DATA"); err != nil {
		return err
	}
	r, err := OpenReadOnly(ctx, dir)
	if err != nil {
		return fmt.Errorf("and it can't be read: %w", err)
	}
	if r.schema != 1 {
		err = fmt.Errorf("it has schema %d", r.schema)
	}
	return errors.Join(err, r.Close())
}

// A record whose database is gone, empty or without all that was in its log isn't begun
// anew while there are sessions of it: it says how to go on, and that works.
func TestDatabaseMissing(t *testing.T) {
	s := open(t)
	dir := s.dir
	id := session(t, s, "aaaaaaaa")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, database)
	if err := os.Remove(db); err != nil {
		t.Fatal(err)
	}
	openAt(t, dir).Close() // the folder has nothing of a session
	for what, bytes := range map[string][]byte{"sealed": []byte("x"), "terminal/file": nil, "mine": nil, "upper/laid out": nil} {
		p := filepath.Join(dir, sessions, id, what)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, p, bytes)
		for _, left := range []string{"nothing", "an empty file", "a database without its log"} {
			if err := os.RemoveAll(db); err != nil {
				t.Fatal(err)
			}
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
		if err := os.RemoveAll(filepath.Join(dir, sessions, id)); err != nil {
			t.Fatal(err)
		}
	}
}
