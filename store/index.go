package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Index finds places of sessions by their words (SQLite's FTS4, unicode61). It is a
// database of its own beside the record, so that filling it holds nobody up who records.
// It has no text, only which words are where, and can be made again from the record at
// any time. It is safe for concurrent use, in several processes too.
type Index struct {
	dir      string
	readonly bool
	db       *sql.DB
}

// Indexed is up to where a session is in the index.
type Indexed struct {
	Told  uint64 // the event that wrote the session's row then
	Seq   uint64 // the last event
	File  int64  // the last file of its terminal's record
	Bytes int64  // of text that it printed
	Paths int64  // that it changed
	Open  bool   // it hadn't ended
}

// Place is a part of a session's record.
type Place struct {
	Session     string
	Kind        string
	First, Last int64 // numbers of the resources, or of the terminal's file
	Text        string
}

const (
	indexName    = "words.db"
	indexVersion = 3
)

// opener opens a store's index when it is first asked for.
type opener struct {
	mu  sync.Mutex
	was *Index // guarded by mu
}

// Index opens the index. In a record that can't be written it is only read;
// ErrNotFound says that there is none.
func (s *Store) Index(ctx context.Context) (_ *Index, err error) {
	s.index.mu.Lock() // across the opening on purpose: it is done once
	defer s.index.mu.Unlock()
	if s.index.was != nil {
		return s.index.was, nil
	}
	x := &Index{dir: s.dir, readonly: s.readonly}
	if err := x.open(ctx, s); err != nil {
		if x.db != nil {
			err = errors.Join(err, x.db.Close())
		}
		return nil, fmt.Errorf("cannot open the index of words: %w", err)
	}
	s.index.was = x
	return x, nil
}

func (x *Index) open(ctx context.Context, s *Store) (err error) {
	dsn := ""
	if x.readonly {
		if _, err := os.Stat(filepath.Join(x.dir, indexName)); errors.Is(err, fs.ErrNotExist) {
			return ErrNotFound
		}
		dsn, err = s.readOnlyDSN(indexName)
	} else {
		if err := createNamed(x.dir, indexName); err != nil {
			return err
		}
		dsn = s.dsnOf(indexName, "rw")
	}
	if err != nil {
		return err
	}
	if x.db, err = connect(dsn+"&_txlock=immediate", readers); err != nil {
		return err
	}
	v := 0
	if err := x.db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&v); err != nil || v == indexVersion {
		return x.fault(err)
	}
	if x.readonly {
		return ErrNotFound
	}
	if _, err := x.db.ExecContext(ctx, `PRAGMA journal_mode = WAL`); err != nil {
		return x.fault(err)
	}
	return x.write(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRow(`PRAGMA user_version`).Scan(&v); err != nil || v == indexVersion {
			return err // another process was first
		}
		_, err := tx.Exec(fmt.Sprintf(`DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS places; DROP TABLE IF EXISTS indexed;
CREATE VIRTUAL TABLE words USING fts4(content="", matchinfo="fts3", tokenize=unicode61, text);
CREATE TABLE places (id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, kind TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT;
CREATE INDEX places_of ON places (session);
CREATE TABLE indexed (session TEXT NOT NULL PRIMARY KEY, told INTEGER NOT NULL, seq INTEGER NOT NULL, file INTEGER NOT NULL, bytes INTEGER NOT NULL, paths INTEGER NOT NULL, open INTEGER NOT NULL) STRICT;
PRAGMA user_version = %d`, indexVersion))
		return err
	})
}

func (x *Index) write(ctx context.Context, f func(*sql.Tx) error) error {
	if x.readonly {
		return ErrReadOnly
	}
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return x.fault(err)
	}
	if err := f(tx); err != nil {
		return x.fault(errors.Join(err, tx.Rollback()))
	}
	return x.fault(tx.Commit())
}

// fault is fault for a database that nothing is lost with.
func (x *Index) fault(err error) error {
	if err = fault(x.dir, err); errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("the index of words is damaged; stepbox gc makes it anew from the record")
	}
	return err
}

// ReadOnly says whether the index can't be filled through this process.
func (x *Index) ReadOnly() bool { return x.readonly }

// Indexed says up to where each session is in the index.
func (x *Index) Indexed(ctx context.Context) (map[string]Indexed, error) {
	out := make(map[string]Indexed)
	return out, x.fault(eachRow(ctx, x.db, `SELECT session, told, seq, file, bytes, paths, open FROM indexed`, nil, func(rows *sql.Rows) error {
		var id string
		var n Indexed
		err := rows.Scan(&id, &n.Told, &n.Seq, &n.File, &n.Bytes, &n.Paths, &n.Open)
		out[id] = n
		return err
	}))
}

// Add adds places of a session, with which it is indexed up to now. It does nothing if
// another process has come further than was meanwhile, and says so.
func (x *Index) Add(ctx context.Context, session string, was, now Indexed, places []Place) (mine bool, err error) {
	err = x.write(ctx, func(tx *sql.Tx) error {
		var is Indexed
		err := tx.QueryRow(`SELECT told, seq, file, bytes, paths, open FROM indexed WHERE session = ?`, session).
			Scan(&is.Told, &is.Seq, &is.File, &is.Bytes, &is.Paths, &is.Open)
		if err != nil && !errors.Is(err, sql.ErrNoRows) || is != was {
			return err
		}
		mine = true
		for _, p := range places {
			r, err := tx.Exec(`INSERT INTO places (session, kind, first, last) VALUES (?, ?, ?, ?)`, session, p.Kind, p.First, p.Last)
			if err != nil {
				return err
			}
			id, err := r.LastInsertId()
			if err == nil {
				_, err = tx.Exec(`INSERT INTO words (docid, text) VALUES (?, ?)`, id, p.Text)
			}
			if err != nil {
				return err
			}
		}
		_, err = tx.Exec(`INSERT OR REPLACE INTO indexed (session, told, seq, file, bytes, paths, open) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			session, now.Told, now.Seq, now.File, now.Bytes, now.Paths, now.Open)
		return err
	})
	return mine, err
}

// Match finds the places that have words which follow each other. When begun, the last
// one may be the beginning of one.
func (x *Index) Match(ctx context.Context, text string, begun bool) (out []Place, err error) {
	// In quotes only * means something.
	query := `"` + strings.NewReplacer(`"`, " ", "*", " ", "\x00", " ").Replace(text)
	if query = strings.TrimRight(query, " "); begun {
		query += "*"
	}
	err = eachRow(ctx, x.db, `SELECT p.session, p.kind, p.first, p.last FROM words w JOIN places p ON p.id = w.docid WHERE w.words MATCH ?`, []any{query + `"`}, func(rows *sql.Rows) error {
		var p Place
		err := rows.Scan(&p.Session, &p.Kind, &p.First, &p.Last)
		out = append(out, p)
		return err
	})
	return out, x.fault(err)
}

// forgetWords removes the index when it knows sessions that the record doesn't have: of
// them their words are in it. Nobody else may have the record open.
func (s *Store) forgetWords(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.dir, indexName)); err != nil {
		return nil
	}
	x, err := s.Index(ctx)
	if err == nil {
		var known map[string]Indexed
		if known, err = x.Indexed(ctx); err == nil {
			for id := range known {
				if _, err = s.Doc(ctx, id, KindSession, 0); err != nil {
					break
				}
			}
		}
	}
	if err == nil {
		return nil
	}
	if err := s.closeIndex(); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(filepath.Join(s.dir, indexName+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *Store) closeIndex() error {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	x := s.index.was
	if s.index.was = nil; x == nil {
		return nil
	}
	return x.db.Close()
}
