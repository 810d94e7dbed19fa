package store

import (
	"strings"
	"testing"
)

// statements changes the database as who has no Stepbox can.
func statements(t *testing.T, s *Store, sql string) {
	t.Helper()
	db, err := connect(s.dsn("rw"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// unsound is what is wrong with the database, a line each.
func unsound(t *testing.T, s *Store) string {
	t.Helper()
	found, err := s.Sound(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range found {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

// What isn't Stepbox's is told whatever it is called; what ANALYZE keeps is SQLite's.
func TestNamedLikeStatistics(t *testing.T) {
	s := open(t)
	statements(t, s, `ANALYZE`)
	if found := unsound(t, s); found != "" {
		t.Errorf("analysed: %s", found)
	}
	for _, what := range []string{
		`TRIGGER sqliteXstat1 AFTER INSERT ON events BEGIN DELETE FROM bodies; END`,
		`VIEW sqliteXstat2 AS SELECT * FROM events`,
		`TABLE sqliteXstat3 (x)`,
		`TRIGGER SQLITEXSTAT4 AFTER INSERT ON labels BEGIN DELETE FROM bodies; END`,
	} {
		statements(t, s, "CREATE "+what)
		name := strings.Fields(what)[1]
		if found := unsound(t, s); !strings.Contains(found, name) {
			t.Errorf("%s isn't told: %s", name, found)
		}
		if err := s.Sane(t.Context()); err == nil {
			t.Errorf("beside %s contents would be removed", name)
		}
		statements(t, s, "DROP "+strings.Join(strings.Fields(what)[:2], " "))
	}
}
