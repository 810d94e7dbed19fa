package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// schema is the version of the one form that a record has. Another version is refused.
const schema = 6

// applicationID tells file(1) and us that a database is a Stepbox record: "Stbx".
const applicationID = 0x53746278

// Guards keep events from being changed, and from being removed one by one.
const (
	eventsStay   = `CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END`
	eventsRemain = `CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never removed'); END`
)

// statements make the database's tables, views, indexes and triggers.
func statements() []string {
	out := []string{
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
		`CREATE INDEX events_of ON events (session, kind, key, seq)`,
		`CREATE TABLE bodies (
	hash BLOB NOT NULL PRIMARY KEY,
	data BLOB NOT NULL
) STRICT`,
		`CREATE TABLE labels (
	session TEXT NOT NULL PRIMARY KEY,
	doc TEXT NOT NULL
) STRICT`,
	}
	for _, k := range described() {
		out = append(out, k.statement())
	}
	return append(out, `CREATE UNIQUE INDEX sessions_number ON sessions (number)`,
		`CREATE INDEX sessions_unended ON sessions (number) WHERE state IN ('starting', 'running', 'paused')`)
}

// statement makes a kind's table, or the view of what the events last said.
func (k *kind) statement() string {
	var cols []string
	if k.view {
		for _, c := range k.columns {
			cols = append(cols, fmt.Sprintf(`json_extract(doc, '%s') AS "%s"`, c.path, c.name))
		}
		return fmt.Sprintf(`CREATE VIEW "%s" AS SELECT session, key, seq, doc, %s FROM events e
WHERE kind = '%s' AND NOT EXISTS (SELECT 1 FROM events WHERE session = e.session AND kind = e.kind AND key = e.key AND seq > e.seq)`,
			k.table, strings.Join(cols, ", "), k.name)
	}
	for _, c := range k.columns {
		cols = append(cols, fmt.Sprintf(`"%s" %s GENERATED ALWAYS AS (json_extract(doc, '%s')) VIRTUAL`, c.name, c.typ, c.path))
	}
	return fmt.Sprintf("CREATE TABLE \"%s\" (\n\tsession TEXT NOT NULL,\n\tkey INTEGER NOT NULL,\n\tseq INTEGER NOT NULL,\n\tdoc TEXT NOT NULL,\n\t%s,\n\tPRIMARY KEY (session, key)\n)",
		k.table, strings.Join(cols, ",\n\t"))
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

// checkVersion refuses what has another form.
func checkVersion(dir string, v int) error {
	if v == schema {
		return nil
	}
	return fmt.Errorf("%w: the one in %s has form %d, and this Stepbox reads and writes form %d alone; use the Stepbox that wrote it, or set STEPBOX_DATA to another folder",
		ErrOther, quote(dir), v, schema)
}

// prepare returns when the database is made and has a write-ahead log, which a copy that
// was put back may lack, and the lock is held shared. Exactly one of several processes that
// open it at once makes it; none does while another has it open.
func prepare(ctx context.Context, dir string, lock *schemaLock, db *sql.DB) error {
	end := time.Now().Add(patience)
	for {
		ok, err := lock.wait(ctx, unix.LOCK_SH, time.Until(end))
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: another process is making the record in %s and hasn't finished; try again", ErrBusy, quote(dir))
		}
		if ready, err := isReady(ctx, dir, db); ready || err != nil {
			return err
		}
		// Changing a shared lock into an exclusive one isn't atomic, so
		// the version is read again once it is held.
		if ok, err = lock.try(unix.LOCK_EX); err != nil {
			return err
		}
		if ok {
			if err := create(ctx, dir, db); err != nil {
				return err
			}
			continue // take the lock shared and look again
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: the database in %s was put there from a copy meanwhile; end what uses it (stepbox ls shows live sessions), and try again", ErrInUse, quote(dir))
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isReady says whether the database needs nothing more to be used.
func isReady(ctx context.Context, dir string, db querier) (bool, error) {
	v, err := version(ctx, db)
	if err != nil || v == 0 {
		return false, err
	}
	if err := checkVersion(dir, v); err != nil {
		return false, err
	}
	var mode string
	err = db.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode)
	return mode == logged, err
}

// create makes what the database lacks. The caller holds the schema lock exclusively.
func create(ctx context.Context, dir string, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	v, err := version(ctx, c)
	if err != nil {
		return err
	}
	if v == 0 { // what there is may be in a log that isn't beside it
		err = lost(dir)
	} else {
		err = checkVersion(dir, v)
	}
	if err != nil {
		return err
	}
	var mode string // it persists in the file, but not in a copy that SQLite makes
	if err := c.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != logged {
		return fmt.Errorf("cannot use write-ahead logging in %q: SQLite stays at %q", dir, mode)
	}
	if v > 0 {
		return nil
	}
	if err := makeAll(ctx, c); err != nil {
		return fmt.Errorf("cannot make a new record in %s: %w", quote(dir), err)
	}
	return nil
}

// logged is the journal mode of a database with a write-ahead log.
const logged = "wal"

// makeAll makes all that a new record has in one transaction.
func makeAll(ctx context.Context, c *sql.Conn) error {
	if _, err := c.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	for _, s := range append(statements(), fmt.Sprintf(`PRAGMA application_id = %d`, applicationID), fmt.Sprintf(`PRAGMA user_version = %d`, schema), `COMMIT`) {
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
