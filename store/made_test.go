package store

import (
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// unsound is what is wrong with the database, a line each.
func unsound(t *testing.T, s *Store) string {
	t.Helper()
	found, err := s.Sound(t.Context())
	must.OK(t, err)
	var lines []string
	for _, p := range found {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

// What isn't Stepbox's is told whatever it is called; what ANALYZE keeps is SQLite's.
func TestNamedLikeStatistics(t *testing.T) {
	s := open(t)
	raw(t, s.dir, `ANALYZE`)
	if found := unsound(t, s); found != "" {
		t.Errorf("analysed: %s", found)
	}
	for _, what := range []string{
		`TRIGGER sqliteXstat1 AFTER INSERT ON events BEGIN DELETE FROM bodies; END`,
		`VIEW sqliteXstat2 AS SELECT * FROM events`,
		`TABLE sqliteXstat3 (x)`,
		`TRIGGER SQLITEXSTAT4 AFTER INSERT ON labels BEGIN DELETE FROM bodies; END`,
	} {
		raw(t, s.dir, "CREATE "+what)
		name := strings.Fields(what)[1]
		if found := unsound(t, s); !strings.Contains(found, name) {
			t.Errorf("%s isn't told: %s", name, found)
		}
		if err := s.Sane(t.Context()); err == nil {
			t.Errorf("beside %s contents would be removed", name)
		}
		raw(t, s.dir, "DROP "+strings.Join(strings.Fields(what)[:2], " "))
	}
}

// What can't be made again keeps nothing else from being made: each is told, with what
// a person is to do, and a repair makes the rest.
func TestRemakeWhatCanBe(t *testing.T) {
	const lost = `DROP INDEX events_of; DROP TRIGGER events_stay; `
	for does, want := range map[string][]string{
		lost: nil,
		lost + `CREATE TABLE theirs (x PRIMARY KEY, y UNIQUE); CREATE INDEX more ON theirs (y)`: {`"theirs", which isn't Stepbox's: look whose it is, and remove it`},
		lost + `CREATE TABLE theirs (x INTEGER PRIMARY KEY AUTOINCREMENT)`:                      {`"sqlite_sequence", which isn't`, `"theirs", which isn't`},
		lost + `DROP VIEW execs; CREATE TABLE Execs (session, key, seq, doc)`:                   {`"Execs", which isn't`, `the view "execs" is missing from the database: a table has its name`},
		lost + `DROP TABLE labels`:                                                        nil,
		lost + `DROP TABLE notes; DROP TABLE sessions`:                                    nil,
		lost + `ALTER TABLE labels ADD COLUMN x TEXT`:                                     {`"labels" of the database isn't the one that Stepbox made: put a copy`},
		lost + `CREATE TABLE events_of (x); DROP VIEW ends; CREATE VIEW Ends AS SELECT 1`: {`"events_of", which isn't`, `the index "events_of" is missing from the database: a table has its name`},
		lost + `DROP INDEX sessions_number; INSERT INTO sessions (session, key, seq, doc) SELECT 'x', 0, 1, doc FROM sessions`: {`the index "sessions_number" is missing`},
	} {
		s := open(t)
		appendFacts(t, s, session(t, s, "aaaaaaaa"), fact(1, "held"))
		raw(t, s.dir, does)
		before := unsound(t, s)
		if err := s.Remake(t.Context()); err != nil && !strings.Contains(err.Error(), `cannot make the index "sessions_number" again`) {
			t.Errorf("%s: %v", does, err)
		}
		left := unsound(t, s)
		if !strings.Contains(before, "events_of") || !strings.Contains(before, "events_stay") || strings.Contains(left, "events_stay") || len(strings.Split(left, "\n")) != max(1, len(want)) {
			t.Errorf("%s\nbefore:\n%s\nleft:\n%s", does, before, left)
		}
		for _, w := range want {
			if !strings.Contains(left, w) {
				t.Errorf("%s\nleft, without %q:\n%s", does, w, left)
			}
		}
		if err := s.Rebuild(t.Context(), "aaaaaaaa"); err != nil && len(want) == 0 {
			t.Errorf("%s: %v", does, err)
		}
		if len(want) == 0 {
			verify(t, s, "aaaaaaaa")
		}
	}
}

// Without events nothing is made again: what goes by the tables would take an empty
// record for the whole one.
func TestNothingRemadeWithoutEvents(t *testing.T) {
	s := open(t)
	session(t, s, "aaaaaaaa")
	raw(t, s.dir, `DROP TABLE events; DROP VIEW execs`)
	if err := s.Remake(t.Context()); err != nil {
		t.Error(err)
	}
	if left := unsound(t, s); !strings.Contains(left, `"events" is missing from the database: put a copy`) || !strings.Contains(left, `"execs"`) {
		t.Error(left)
	}
}
