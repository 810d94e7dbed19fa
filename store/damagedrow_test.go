package store

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
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
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, database)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for from, mark := 0, []byte(`"mark":"of aaaaaaaa"`); ; from++ {
		i := bytes.Index(whole[from:], mark)
		if i < 0 {
			break
		}
		from += i
		b := bytes.Clone(whole)
		b[from] = 'x'
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Sessions(t.Context())
		if err != nil || len(all) != 2 || !json.Valid(all[0]) {
			t.Errorf("with the byte %d damaged there are %q, %v", from, all, err)
		} else if !json.Valid(all[1]) {
			damaged++
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if damaged == 0 {
		t.Error("no row was damaged")
	}
}
