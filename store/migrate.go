package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// schema is the version that this code writes.
const schema = 5

// applicationID tells file(1) and us that a database is a Stepbox record: "Stbx".
const applicationID = 0x53746278

// migrations[v] brings a database from version v to v+1. What one does never
// changes once it was released.
var migrations = [schema]func() []string{
	0: firstSchema,
	1: func() []string { return kindStatements(2) },
	2: thirdSchema,
	3: func() []string { return kindStatements(4) },
	4: func() []string { return kindStatements(5) },
}

// Guards keep events from being changed, and from being removed one by one.
const (
	eventsStay   = `CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END`
	eventsRemain = `CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never removed'); END`
)

// firstSchema makes the tables of version 1.
func firstSchema() []string {
	return append([]string{
		`CREATE TABLE events (
	session TEXT NOT NULL,
	seq INTEGER NOT NULL,
	time INTEGER NOT NULL,
	at TEXT GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%S', time / 1000000000, 'unixepoch') || printf('.%09dZ', time % 1000000000)) VIRTUAL,
	kind TEXT NOT NULL,
	event TEXT NOT NULL,
	key INTEGER NOT NULL,
	doc TEXT NOT NULL,
	prev BLOB NOT NULL,
	hash BLOB NOT NULL,
	PRIMARY KEY (session, seq)
) STRICT`,
		eventsStay,
		eventsRemain,
		`CREATE TABLE bodies (
	hash BLOB NOT NULL PRIMARY KEY,
	data BLOB NOT NULL
) STRICT`,
	}, append(kindStatements(1), `CREATE UNIQUE INDEX sessions_number ON sessions (number)`)...)
}

// thirdSchema adds what reads the past: the index that finds a resource as it was,
// and what a person says of sessions.
func thirdSchema() []string {
	return append(kindStatements(3),
		`CREATE INDEX events_of ON events (session, kind, key, seq)`,
		`CREATE INDEX sessions_unended ON sessions (number) WHERE state IN ('starting', 'running', 'paused')`,
		`CREATE TABLE labels (
	session TEXT NOT NULL PRIMARY KEY,
	doc TEXT NOT NULL
) STRICT`)
}

// kindStatements are what a version adds for the kinds: tables, and columns of
// tables that were there.
func kindStatements(version int) []string {
	var out []string
	for _, k := range described() {
		var cols []string
		for _, c := range k.columns {
			def := fmt.Sprintf(`"%s" %s GENERATED ALWAYS AS (json_extract(doc, '%s')) VIRTUAL`, c.name, c.typ, c.path)
			switch {
			case k.since == version && c.since <= version:
				cols = append(cols, def)
			case k.since < version && c.since == version:
				out = append(out, fmt.Sprintf(`ALTER TABLE "%s" ADD COLUMN %s`, k.table, def))
			}
		}
		switch {
		case k.view == version:
			if k.since < version {
				out = append(out, fmt.Sprintf(`DROP TABLE "%s"`, k.table))
			}
			out = append(out, k.asView())
		case k.since == version:
			out = append(out, fmt.Sprintf("CREATE TABLE \"%s\" (\n\tsession TEXT NOT NULL,\n\tkey INTEGER NOT NULL,\n\tseq INTEGER NOT NULL,\n\tdoc TEXT NOT NULL,\n\t%s,\n\tPRIMARY KEY (session, key)\n)",
				k.table, strings.Join(cols, ",\n\t")))
		}
	}
	return out
}

// version reads a database's schema version and refuses what isn't a record.
// A file without any table is version 0.
func version(ctx context.Context, db querier) (int, error) {
	var v, app, tables int
	err := db.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).
		Scan(&v, &app, &tables)
	if err != nil {
		return 0, err
	}
	if v == 0 && tables == 0 {
		return 0, nil
	}
	if app != applicationID || v <= 0 {
		return 0, errForeign
	}
	return v, nil
}

var errForeign = errors.New("it is another program's database")

// checkVersion refuses schemas that this code doesn't know.
func checkVersion(dir string, v int) error {
	if v <= schema {
		return nil
	}
	return fmt.Errorf("%w: %s has schema %d and this Stepbox knows those up to %d; use the newer Stepbox, or set STEPBOX_DATA to another folder",
		ErrNewer, quote(dir), v, schema)
}

// upgrade returns when the database has the current schema and a write-ahead log, which
// a copy that was put back may lack, and the lock is held shared. Exactly one of several processes that open an older database at once
// migrates it; none does while an older Stepbox has it open.
func upgrade(ctx context.Context, dir string, lock *schemaLock, db *sql.DB) error {
	end := time.Now().Add(patience)
	for {
		ok, err := lock.wait(ctx, unix.LOCK_SH, time.Until(end))
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: another process is upgrading %s and hasn't finished; try again", ErrBusy, quote(dir))
		}
		v, err := version(ctx, db)
		if err != nil {
			return err
		}
		if err := checkVersion(dir, v); err != nil {
			return err
		}
		var mode string
		if err := db.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil || v == schema && mode == logged {
			return err
		}
		// Changing a shared lock into an exclusive one isn't atomic, so
		// the version is read again once it is held.
		if ok, err = lock.try(unix.LOCK_EX); err != nil {
			return err
		}
		if ok {
			if err := migrate(ctx, dir, db); err != nil {
				return err
			}
			continue // take the lock shared and look again
		}
		if time.Now().After(end) {
			if v == schema {
				return fmt.Errorf("%w: the database in %s was put there from a copy while the record was in use; end what uses it (stepbox ls shows live sessions), and try again", ErrInUse, quote(dir))
			}
			return fmt.Errorf("%w: %s has schema %d and must be upgraded to %d, which live sessions prevent; end them (stepbox ls shows them), or go on with the Stepbox that started them",
				ErrInUse, quote(dir), v, schema)
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// migrate brings the database to the current schema, each step in a
// transaction of its own. The caller holds the schema lock exclusively.
func migrate(ctx context.Context, dir string, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	v, err := version(ctx, c)
	if err != nil {
		return err
	}
	if err := checkVersion(dir, v); err != nil {
		return err
	}
	if v == 0 { // what there is may be in a log that isn't beside it
		if err := lost(dir); err != nil {
			return err
		}
	}
	var mode string // it persists in the file, but not in a copy that SQLite makes
	if err := c.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != logged {
		return fmt.Errorf("cannot use write-ahead logging in %q: SQLite stays at %q", dir, mode)
	}
	kept := ""
	if v > 0 && v < schema {
		if kept, err = backup(ctx, dir, c, v); err != nil {
			return err
		}
	}
	for began := v; v < schema; v++ {
		if err := step(ctx, c, v); err != nil && began == 0 { // there was nothing to upgrade
			return fmt.Errorf("cannot make a new record in %s: %w", quote(dir), err)
		} else if err != nil && v == began { // nothing was changed that a copy is of
			return fmt.Errorf("cannot upgrade the record from schema %d to %d, so it is as it was: %w", v, v+1, errors.Join(err, os.RemoveAll(kept)))
		} else if err != nil {
			return fmt.Errorf("cannot upgrade the record from schema %d to %d; as it was it is in %q: %w", v, v+1, kept, err)
		}
	}
	_ = prune(filepath.Join(dir, backupsDir)) // else the next upgrade does
	return nil
}

// logged is the journal mode of a database with a write-ahead log.
const logged = "wal"

func step(ctx context.Context, c *sql.Conn, v int) error {
	if _, err := c.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	statements := append(migrations[v](),
		fmt.Sprintf(`PRAGMA application_id = %d`, applicationID), fmt.Sprintf(`PRAGMA user_version = %d`, v+1), `COMMIT`)
	for _, s := range statements {
		if _, err := c.ExecContext(ctx, s); err != nil {
			if _, rerr := c.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`); rerr != nil && !isNoTransaction(rerr) {
				err = errors.Join(err, rerr)
			}
			return err
		}
	}
	return nil
}

// querier is what sql.DB, sql.Conn and sql.Tx have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
