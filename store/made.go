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
}

func (o other) String() string {
	switch {
	case o.is == "":
		return fmt.Sprintf("the %s %q is missing from the database", o.kind, o.name)
	case o.want == "":
		return fmt.Sprintf("the database has the %s %q, which isn't Stepbox's", o.kind, o.name)
	}
	return fmt.Sprintf("the %s %q of the database isn't the one that Stepbox made", o.kind, o.name)
}

// problem is what it is for who verifies.
func (o other) problem() Problem {
	return Problem{Table: o.kind != "table", why: errors.New(o.String())}
}

// guard says whether it is a missing guard against slips of the hand.
func (o other) guard() bool { return o.kind == "trigger" && o.is == "" }

// others lists what of the database isn't as the migrations up to its schema make it.
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
	for v := range s.schema {
		for _, statement := range migrations[v]() {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return nil, err
			}
		}
	}
	want, err := madeIn(ctx, db)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(is)
	maps.Copy(all, want)
	for m := range all {
		if is[m] != want[m] {
			out = append(out, other{m, is[m], want[m]})
		}
	}
	slices.SortFunc(out, func(a, b other) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.want, b.want)) })
	return out, nil
}

// madeIn lists how what is in a database was made, but for what ANALYZE keeps there.
func madeIn(ctx context.Context, q querier) (map[made]string, error) {
	out := make(map[made]string)
	err := eachRow(ctx, q, `SELECT type, name, tbl_name, coalesce(sql, 'itself') FROM sqlite_schema WHERE NOT (type = 'table' AND name GLOB 'sqlite_stat[1-4]')`, nil, func(rows *sql.Rows) error {
		var m made
		var how string
		err := rows.Scan(&m.kind, &m.name, &m.table, &how)
		out[m] = how
		return err
	})
	return out, err
}

// Remake makes views, indexes and triggers as they were. A table can't be.
func (s *Store) Remake(ctx context.Context) error {
	others, err := s.others(ctx, s.reads)
	if err != nil || len(others) == 0 {
		return err
	}
	return s.writes.do(ctx, groupBytes, func(t *tx) error {
		for _, o := range others {
			if o.kind == "table" {
				continue
			}
			// Also one that is missing: SQLite's connection may not know yet.
			drop := fmt.Sprintf(`DROP %s IF EXISTS "%s"; `, o.kind, strings.ReplaceAll(o.name, `"`, `""`))
			if _, err := t.conn.ExecContext(context.Background(), drop+o.want); err != nil {
				return err
			}
		}
		return nil
	})
}
