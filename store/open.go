package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Store is an open record. It is safe for concurrent use.
type Store struct {
	dir      string
	readonly bool
	lock     *schemaLock // held shared; nil when a read-only folder has none
	reads    *sql.DB
	writes   *writer // nil when readonly
	keep     *keeper // nil when readonly
	index    opener

	closing sync.Once
	closed  error // what Close returned
}

// readers bounds the connections that read at the same time.
const readers = 4

// Open opens the record in dir and creates what is missing. It refuses folders
// that others can enter, network filesystems, databases that are damaged, of another
// version or not ours, and what can't be written (ErrReadOnly); each
// error says what to do.
func Open(ctx context.Context, dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the record in %q: %w", dir, err)
	}
	// Nothing is written before the folder is known to be right.
	if err := first(dir, check, makeDirs, checkFilesystem, checkPrivate, checkWritable, createDatabase); err != nil {
		return nil, fmt.Errorf("cannot open the record: %w", err)
	}
	s := &Store{dir: dir}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("cannot open the record: %w", errors.Join(err, s.Close()))
	}
	sweepTemps(dir)
	return s, nil
}

// Check says why the record can't be kept in a folder; nil when nothing is known
// against it, or it isn't there yet, and then it makes none. One that is there it opens.
func Check(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, database)); err != nil {
		return check(dir)
	}
	s, err := Open(ctx, dir)
	if err == nil {
		err = s.Close()
	}
	return err
}

// check looks at a record's folder, if there is one. It writes nothing.
func check(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	return first(dir, checkFilesystem, checkPrivate, checkWritable, checkThere)
}

// checkThere refuses a folder that has sessions and no database: a new one would know
// nothing of them.
func checkThere(dir string) error {
	missing := func() bool {
		st, err := os.Stat(filepath.Join(dir, database))
		return errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() == 0
	}
	if !missing() {
		return nil
	}
	if err := lost(dir); err != nil && missing() { // else it was made just now
		return err
	}
	return nil
}

// lost is the error of a database that is missing or empty, if there are sessions.
func lost(dir string) error {
	entries, _ := os.ReadDir(filepath.Join(dir, sessions)) // what can't be read is refused by others
	n := 0
	for _, e := range entries {
		if checkID(e.Name()) == nil && holdsSession(filepath.Join(dir, sessions, e.Name())) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	moved := []string{quote(filepath.Join(dir, bodiesDir)), quote(filepath.Join(dir, sessions))}
	beside, _ := filepath.Glob(filepath.Join(dir, database+"*")) // the pattern is fine
	for _, p := range beside {
		moved = append(moved, quote(p))
	}
	d := quote(filepath.Join(dir, "lost"))
	return fmt.Errorf("%w: %s isn't there, or is empty, and %s has folders of sessions that it had (%d). Put it back, or a copy of it. "+
		"To start a new record and keep what is there: mkdir -m 700 %s && mv %s %s/", ErrMissing, quote(filepath.Join(dir, database)), quote(filepath.Join(dir, sessions)), n, d, strings.Join(moved, " "), d)
}

// first does steps with a folder until one fails.
func first(dir string, steps ...func(dir string) error) error {
	for _, f := range steps {
		if err := f(dir); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if s.lock, err = openLock(s.dir, true); err != nil {
		return fileFault(s.dir, err)
	}
	db, err := connect(s.dsn("rw"), 1)
	if err != nil {
		return err
	}
	suspicious := s.suspicious()
	if err := prepare(ctx, s.dir, s.lock, db); err != nil {
		return s.refuse(errors.Join(err, db.Close()))
	}
	if s.writes, err = newWriter(ctx, s.dir, db); err != nil {
		return s.refuse(errors.Join(err, db.Close()))
	}
	if s.keep, err = newKeeper(s.dir, s.dsn("rw"), func() { s.writes.gone.Store(true) }); err != nil {
		return err
	}
	s.writes.wrote = s.keep.wrote
	if s.reads, err = connect(s.dsn("ro"), readers); err != nil {
		return err
	}
	if suspicious {
		return s.quickCheck(ctx)
	}
	return nil
}

// OpenReadOnly opens a record without changing anything in it; what writes
// fails with ErrReadOnly.
func OpenReadOnly(ctx context.Context, dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the record in %q: %w", dir, err)
	}
	s := &Store{dir: dir, readonly: true}
	if err := s.openReadOnly(ctx); err != nil {
		return nil, fmt.Errorf("cannot read the record: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

func (s *Store) openReadOnly(ctx context.Context) (err error) {
	if _, err := os.Stat(filepath.Join(s.dir, database)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is none in %q: %w", s.dir, ErrNotFound)
	}
	if err := first(s.dir, checkFilesystem, checkPrivate); err != nil {
		return err
	}
	if s.lock, err = openLock(s.dir, false); err == nil {
		ok, err := s.lock.wait(ctx, unix.LOCK_SH, patience)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: another process is making the record in %s and hasn't finished; try again", ErrBusy, quote(s.dir))
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dsn, err := s.readOnlyDSN(database)
	if err != nil {
		return err
	}
	if s.reads, err = connect(dsn, readers); err != nil {
		return err
	}
	v, err := version(ctx, s.reads)
	if err != nil {
		return s.refuse(err)
	}
	if v == 0 {
		return fmt.Errorf("there is none in %q: %w", s.dir, ErrNotFound)
	}
	return checkVersion(s.dir, v)
}

// readOnlyDSN reads a record in a folder that can't be written: SQLite needs
// its shared memory file unless it is told that nobody writes, which is so when
// there is no log (sqlite.org/wal.html, "Read-Only Databases").
func (s *Store) readOnlyDSN(name string) (string, error) {
	if checkWritable(s.dir) == nil {
		return s.dsnOf(name, "ro"), nil
	}
	exists := func(suffix string) bool {
		_, err := os.Stat(filepath.Join(s.dir, name+suffix))
		return err == nil
	}
	switch {
	case !exists("-wal"):
		return s.dsnOf(name, "ro") + "&immutable=1", nil
	case exists("-shm"):
		return s.dsnOf(name, "ro"), nil
	}
	return "", fmt.Errorf("%w: it wasn't closed and can't be recovered in place; copy %s to a folder that you can write and set STEPBOX_DATA to it",
		ErrReadOnly, quote(s.dir))
}

// connect opens a database with at most so many connections, which stay open.
func connect(dsn string, most int) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

// dsn names the database for the driver. Other tools may lock the database for
// a while, for which SQLite waits busyFor.
func (s *Store) dsn(mode string) string { return s.dsnOf(database, mode) }

func (s *Store) dsnOf(name, mode string) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.Join(s.dir, name)}
	return fmt.Sprintf("%s?mode=%s&_busy_timeout=%d&_synchronous=NORMAL&_stmt_cache_size=32", u.String(), mode, busyFor.Milliseconds())
}

const busyFor = 5 * time.Second

// refuse gives an error from opening its words.
func (s *Store) refuse(err error) error {
	if errors.Is(err, errForeign) {
		return fmt.Errorf("cannot use %q: %w; set STEPBOX_DATA to another folder", filepath.Join(s.dir, database), err)
	}
	return fault(s.dir, err)
}

// suspicious says whether the database should be checked before it is trusted:
// an earlier run met damage, or the machine went down while it was open.
func (s *Store) suspicious() bool {
	if _, err := os.Stat(filepath.Join(s.dir, suspicion)); err == nil {
		return true
	}
	wal, err := os.Stat(filepath.Join(s.dir, database+"-wal"))
	return err == nil && wal.Size() > 0 && wal.ModTime().Before(bootTime())
}

// quickCheck looks at every page of the database.
func (s *Store) quickCheck(ctx context.Context) error {
	var said string
	if err := s.reads.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&said); err != nil {
		return fault(s.dir, err)
	}
	if said != "ok" {
		suspect(s.dir)
		return corrupt(s.dir, errors.New(said))
	}
	if err := os.Remove(filepath.Join(s.dir, suspicion)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileFault(s.dir, err)
	}
	return nil
}

// Close commits what was accepted, makes it durable and closes the record. What
// is called afterwards fails with ErrClosed. Journals must be closed before.
func (s *Store) Close() error {
	s.closing.Do(func() {
		errs := []error{s.closeIndex()}
		if s.keep != nil {
			errs = append(errs, s.keep.close())
		}
		if s.reads != nil {
			errs = append(errs, s.reads.Close())
		}
		if s.writes != nil { // last: SQLite empties its log when nobody else has it open
			errs = append(errs, s.writes.close())
		}
		s.closed = fault(s.dir, errors.Join(append(errs, s.lock.close())...))
	})
	return s.closed
}
