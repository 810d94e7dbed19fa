package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Collected is what a Collect removed, or would.
type Collected struct {
	Bodies  int      // that nobody names
	Bytes   int64    // of those
	Folders []string // of sessions that the record doesn't have: the caller's to remove
}

// Sane says why nothing should be removed by what the database lists: a view or a table
// of it isn't the one that Stepbox made, or a session's row says something else than its
// events, and may hide what is named. Of the kinds that name any only sessions have rows.
func (s *Store) Sane(ctx context.Context) error {
	others, err := s.others(ctx, s.reads)
	for _, o := range others {
		if !o.guard() {
			return fmt.Errorf("%s, so nothing is removed: see stepbox verify --all", o)
		}
	}
	if err != nil {
		return err
	}
	wrong, err := columnOf[string](ctx, s, misread)
	if err != nil {
		return fmt.Errorf("cannot compare the sessions with their events: %w", err)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("what the table of sessions says of %s isn't what its events say, so nothing is removed (sessions like that: %d): stepbox verify --all --repair makes it again, or, where the events are wrong too, stepbox rm %s --force removes it", wrong[0], len(wrong), wrong[0])
	}
	return nil
}

// misread lists the sessions whose row isn't what the newest event of it says. The first
// part goes from one session's events to the next's, without reading those between.
const misread = `WITH RECURSIVE known(id) AS (
	SELECT min(session) FROM events UNION ALL SELECT (SELECT min(session) FROM events WHERE session > id) FROM known WHERE id IS NOT NULL)
SELECT id FROM known WHERE id IS NOT NULL AND NOT EXISTS (
	SELECT 1 FROM sessions s JOIN events e ON e.session = s.session AND e.doc = s.doc
	WHERE s.session = id AND s.key = 0 AND e.seq = (SELECT max(seq) FROM events WHERE session = id AND kind = 'session' AND key = 0))`

// Collect removes the bodies that no session names. With dry it only counts
// them, as if the sessions without were removed, and what live sessions have stored but not yet named is among them.
// More finds the bodies that the documents lead to; an error of theirs ends it
// before anything is removed.
//
// Nobody else may have the record open meanwhile, in this process or another, since
// a body that is stored already isn't stored again: ErrBusy says that someone has.
func (s *Store) Collect(ctx context.Context, dry bool, without []string, more ...References) (c Collected, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot collect what nobody names: %w", s.fault(err))
		}
	}()
	if !dry {
		if s.readonly {
			return c, ErrReadOnly
		}
		// Those that are just ending are waited for. A conversion that fails may have
		// lost the shared lock; see flock(2).
		alone, err := s.lock.wait(ctx, unix.LOCK_EX, patience)
		defer s.lock.try(unix.LOCK_SH) // nobody else can have it exclusively for long
		if err != nil {
			return c, err
		}
		if !alone {
			return c, fmt.Errorf("%w open: this takes that no session runs and no other Stepbox looks at the record", ErrBusy)
		}
	}
	if err := s.Sane(ctx); err != nil {
		return c, err
	}
	named, err := s.named(ctx, without, more)
	if err != nil {
		return c, err
	}
	if err := s.collectRows(ctx, dry, named, &c); err != nil {
		return c, err
	}
	if err := s.collectFiles(ctx, dry, named, &c); err != nil {
		return c, err
	}
	if !dry {
		if err := s.forgetWords(ctx); err != nil {
			return c, err
		}
	}
	c.Folders, err = s.strayFolders(ctx)
	return c, err
}

// Unknown lists the folders that hold something of sessions that the record doesn't have:
// it isn't the one that they were recorded in, or they were cut short as they started.
func (s *Store) Unknown(ctx context.Context) ([]string, error) {
	all, err := s.strayFolders(ctx)
	if err != nil {
		return nil, err
	}
	removed, err := columnOf[string](ctx, s, `SELECT session FROM `+labels+` WHERE doc = ?`, removed)
	if err != nil {
		return nil, fmt.Errorf("cannot look for removed sessions: %w", err)
	}
	return slices.DeleteFunc(all, func(dir string) bool {
		return strings.HasSuffix(dir, Removed) || slices.Contains(removed, filepath.Base(dir)) || !holdsSession(dir)
	}), nil
}

// Removed is what the name of a folder ends with whose session was removed.
const Removed = ".removed"

// removed is the label of a session whose rows are gone and whose folder may still have its
// name. It goes with that name, and no older copy of the database has it.
const removed = `"removed"`

// holdsSession says whether a folder has what a session had: what was printed, or the note
// of its seal. Files alone are what a start laid out that was cut short. What can't be
// looked into has.
func holdsSession(dir string) bool {
	for _, name := range []string{terminal, "sealed"} {
		in, err := os.ReadDir(filepath.Join(dir, name)) // fails for a file that is there
		if len(in) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// named lists every body that a document names or leads to, about 50 bytes each.
func (s *Store) named(ctx context.Context, without []string, more []References) (map[Hash]bool, error) {
	all := make(map[Hash]bool)
	return all, s.led(ctx, "", without, more, func(h Hash) { all[h] = true })
}

// led gives every body that a document of a session, or of all others (""), names or leads
// to: only kinds whose documents name some lead to any.
func (s *Store) led(ctx context.Context, session string, without []string, more []References, f func(Hash)) error {
	for _, k := range described() {
		if len(k.bodies) == 0 {
			continue
		}
		if err := s.ledBy(ctx, k, session, without, more, f); err != nil {
			return err
		}
	}
	return nil
}

// ofSession asks for the documents of a session, or of all others (""). One session is a
// condition of its own, since only then SQLite looks into the index of a view's events.
func (k *kind) ofSession(session string, without []string) (query string, args []any) {
	query, args = `SELECT session, key, doc FROM "`+k.table+`" WHERE session NOT IN (SELECT value FROM json_each(?))`, []any{list(without)}
	if session != "" {
		query, args = query+` AND session = ?`, append(args, session)
	}
	return query, args
}

func (s *Store) ledBy(ctx context.Context, k *kind, session string, without []string, more []References, f func(Hash)) error {
	query, args := k.ofSession(session, without)
	return s.each(ctx, query, args, func(rows *sql.Rows) error {
		var id string
		var key int64
		var doc []byte
		if err := rows.Scan(&id, &key, &doc); err != nil {
			return err
		}
		hashes, err := k.names(doc)
		for i := 0; i < len(more) && err == nil; i++ {
			var led []Hash
			led, err = more[i](ctx, id, k.name, json.RawMessage(doc))
			hashes = append(hashes, led...)
		}
		if err != nil {
			return fmt.Errorf("what %s %d of session %s names can't be told, so nothing was removed: %w", k.name, key, id, err)
		}
		for _, h := range hashes {
			f(h)
		}
		return nil
	})
}

// collectRows removes bodies from the database, and gives their room back.
func (s *Store) collectRows(ctx context.Context, dry bool, named map[Hash]bool, c *Collected) error {
	var gone [][]byte
	err := s.each(ctx, `SELECT hash, length(data) FROM bodies`, nil, func(rows *sql.Rows) error {
		var h []byte
		var n int64
		err := rows.Scan(&h, &n)
		if err == nil && (len(h) != len(Hash{}) || !named[Hash(h)]) {
			gone = append(gone, h)
			c.Bodies++
			c.Bytes += n
		}
		return err
	})
	if err != nil || dry || len(gone) == 0 {
		return err
	}
	for some := range slices.Chunk(gone, 500) {
		if err := s.writes.do(ctx, groupBytes, func(t *tx) error {
			for _, h := range some {
				if err := t.exec(`DELETE FROM bodies WHERE hash = ?`, h); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	db, err := connect(s.dsn("rw"), 1)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM`)
	return errors.Join(err, db.Close())
}

// collectFiles removes bodies that are files.
func (s *Store) collectFiles(ctx context.Context, dry bool, named map[Hash]bool, c *Collected) error {
	return s.eachFile(ctx, func(path string, h Hash, st fs.FileInfo) error {
		if named[h] {
			return nil
		}
		c.Bodies++
		c.Bytes += st.Size()
		if dry {
			return nil
		}
		return os.Remove(path)
	})
}

// eachFile gives the bodies that are files, damaged ones too. What isn't a body isn't ours.
func (s *Store) eachFile(ctx context.Context, f func(path string, h Hash, st fs.FileInfo) error) error {
	return filepath.WalkDir(filepath.Join(s.dir, bodiesDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		h, err := ParseHash(filepath.Base(filepath.Dir(path)) + strings.TrimSuffix(d.Name(), damaged))
		if err != nil {
			return nil
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		return f(path, h, st)
	})
}

// strayFolders lists folders of sessions that aren't in the record: those that were
// removed, and those that never came to be.
func (s *Store) strayFolders(ctx context.Context) (out []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(s.SessionDir("x")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		id, removed := strings.CutSuffix(e.Name(), Removed)
		if _, err := s.Doc(ctx, id, KindSession, 0); (removed || errors.Is(err, ErrNotFound)) && checkID(id) == nil {
			out = append(out, filepath.Join(s.dir, sessions, e.Name()))
		}
	}
	return out, err
}

// Remove takes a session out of the record: its events, and all that they told. It
// can't be had back. The bodies that it named stay until Collect, since others
// may name them too, and its folder, which has Removed behind its name then, is the
// caller's to remove, as it is to see to it that nobody has the session any more.
func (s *Store) Remove(ctx context.Context, session string) error {
	if s.readonly {
		return fmt.Errorf("cannot remove session %.80q: %w", session, ErrReadOnly)
	}
	err := s.writes.do(ctx, groupBytes, func(t *tx) error {
		if _, err := t.head(session); err != nil {
			return err
		}
		// For everyone else there is a trigger that keeps events.
		if _, err := t.conn.ExecContext(context.Background(), `DROP TRIGGER IF EXISTS events_remain`); err != nil {
			return err
		}
		for _, k := range tabled() {
			if err := t.exec(`DELETE FROM "`+k.table+`" WHERE session = ?`, session); err != nil {
				return err
			}
		}
		if err := t.exec(`DELETE FROM events WHERE session = ?`, session); err != nil {
			return err
		}
		if err := t.exec(`INSERT OR REPLACE INTO labels (session, doc) VALUES (?, ?)`, session, removed); err != nil {
			return err
		}
		delete(t.heads, session)
		_, err := t.conn.ExecContext(context.Background(), eventsRemain)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot remove session %.80q: %w", session, err)
	}
	dir := s.SessionDir(session)
	if err := os.Rename(dir, dir+Removed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the folder of session %.80q: %w", session, err)
	}
	_ = s.writes.do(ctx, groupBytes/64, func(t *tx) error { // else some bytes stay
		return t.exec(`DELETE FROM labels WHERE session = ?`, session)
	})
	return nil
}
