package store

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"stepbox/session/e2e/must"
)

// A row that damage made something else than JSON keeps no others from being listed.
func TestDamagedRow(t *testing.T) {
	s := open(t)
	dir := s.dir
	for _, id := range []string{"aaaaaaaa", "bbbbbbbb"} {
		if _, err := s.CreateSession(t.Context(), id, json.RawMessage(`{"mark":"of `+id+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	must.OK(t, s.Close())
	file := filepath.Join(dir, database)
	whole, err := os.ReadFile(file)
	must.OK(t, err)
	damaged := 0
	for from, mark := 0, []byte(`"mark":"of aaaaaaaa"`); ; from++ {
		i := bytes.Index(whole[from:], mark)
		if i < 0 {
			break
		}
		from += i
		b := bytes.Clone(whole)
		b[from] = 'x'
		must.OK(t, os.WriteFile(file, b, 0o600))
		s, err := Open(t.Context(), dir)
		must.OK(t, err)
		all, err := s.Sessions(t.Context())
		if err != nil || len(all) != 2 || !json.Valid(all[0]) {
			t.Errorf("with the byte %d damaged there are %q, %v", from, all, err)
		} else if !json.Valid(all[1]) {
			damaged++
		}
		must.OK(t, s.Close())
	}
	if damaged == 0 {
		t.Error("no row was damaged")
	}
}
