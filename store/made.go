package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// made is a table, view, index or trigger of a database: what reads the events must be
// what we made, or they say something else than what was recorded.
type made struct{ kind, name, table string }

// other is one that isn't as we make it.
type other struct {
	made
	is, want string // the statements that make it; "" when there is none
	yours    string // what a person is to do, since Remake can't; "": it can
}

func (o other) String() string {
	switch {
	case o.is == "" && o.kind == "table" && (o.name == "bodies" || o.name == "labels"):
		return fmt.Sprintf("the table %q is missing from the database, and what it had is in no event: a copy of the database may have it", o.name)
	case o.is == "":
		return fmt.Sprintf("the %s %q is missing from the database", o.kind, o.name)
	case o.want == "":
		return fmt.Sprintf("the database has the %s %q, which isn't Stepbox's", o.kind, o.name)
	}
	return fmt.Sprintf("the %s %q of the database isn't the one that Stepbox made", o.kind, o.name)
}

// problem is what it is for who verifies.
func (o other) problem() Problem {
	return Problem{Table: o.yours == "", why: errors.New(o.String() + o.yours)}
}

// guard says whether it is a missing guard against slips of the hand.
func (o other) guard() bool { return o.kind == "trigger" && o.is == "" }

// others lists what of the database isn't as we make it.
func (s *Store) others(ctx context.Context, q querier) (out []other, err error) {
	is, err := madeIn(ctx, q)
	if err != nil {
		return nil, err
	}
	db, err := connect(":memory:", 1)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	for _, statement := range statements() {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	want, err := madeIn(ctx, db)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(is)
	maps.Copy(all, want)
	for m := range all {
		of := made{"table", m.table, m.table}
		if is[m] == want[m] || of != m && m.kind != "view" && is[of] != want[of] && (want[of] == "" || is[m]+want[m] == itself) {
			continue // it goes and comes with its table
		}
		out = append(out, other{m, is[m], want[m], yours(m, is, want)})
	}
	// What is in the way goes first, and tables come before what is made of them.
	place := func(o other) int {
		switch {
		case o.want == "":
			return 0
		case o.kind == "table":
			return 1
		}
		return 2
	}
	slices.SortFunc(out, func(a, b other) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
	})
	return out, nil
}

// yours says what a person is to do with what Remake leaves alone: tables hold what may
// be nowhere else, and without events nothing can be made again.
func yours(m made, is, want map[made]string) string {
	const back = ": put a copy of the database back"
	switch {
	case m.kind == "table" && want[m] == "":
		return ": look whose it is, and remove it with sqlite3(1), DROP TABLE"
	case m.kind == "table" && (is[m] != "" || m.name == "events"), is[made{"table", "events", "events"}] == "":
		return back
	}
	for other := range is {
		if other.kind == "table" && want[m] != "" && m.kind != "trigger" && strings.EqualFold(other.name, m.name) {
			return ": a table has its name, and is to be removed first"
		}
	}
	return ""
}

// itself is in place of the statement of an index that SQLite makes with its table.
const itself = "itself"

// madeIn lists how what is in a database was made, but for what ANALYZE keeps there.
func madeIn(ctx context.Context, q querier) (map[made]string, error) {
	out := make(map[made]string)
	err := eachRow(ctx, q, `SELECT type, name, tbl_name, coalesce(sql, '`+itself+`') FROM sqlite_schema WHERE NOT (type = 'table' AND name GLOB 'sqlite_stat[1-4]')`, nil, func(rows *sql.Rows) error {
		var m made
		var how string
		err := rows.Scan(&m.kind, &m.name, &m.table, &how)
		out[m] = how
		return err
	})
	return out, err
}

// Remake makes views, indexes and triggers as they were, and tables that are gone, which
// are empty then. Each is made by itself: what can't be made keeps no other from it.
func (s *Store) Remake(ctx context.Context) error {
	others, err := s.others(ctx, s.reads)
	if err != nil {
		return err
	}
	var failures []error
	for _, o := range others {
		if o.yours != "" {
			continue
		}
		err := s.writes.do(ctx, groupBytes, func(t *tx) error {
			drop := "" // of a table never, which somebody may have made again just now
			if o.kind != "table" {
				// Also one that is missing: SQLite's connection may not know yet.
				drop = fmt.Sprintf(`DROP %s IF EXISTS "%s"; `, o.kind, strings.ReplaceAll(o.name, `"`, `""`))
			}
			_, err := t.conn.ExecContext(context.Background(), drop+o.want)
			return err
		})
		if err != nil {
			failures = append(failures, fmt.Errorf("cannot make the %s %q again: %w", o.kind, o.name, err))
		}
	}
	return errors.Join(failures...)
}
