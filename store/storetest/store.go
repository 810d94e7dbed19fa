// Package storetest has records for the tests of others. What fails ends the test.
package storetest

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"stepbox/store"
)

// New is an empty record. It is closed when the test ends.
func New(t testing.TB) *store.Store {
	t.Helper()
	return Open(t, filepath.Join(t.TempDir(), "data"))
}

// Open opens the record in a folder. It is closed when the test ends.
func Open(t testing.TB, dir string) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("cannot close the record: %v", err)
		}
	})
	return st
}

// Begin begins a session's record with a row: its JSON, or what has a form in JSON.
func Begin(t testing.TB, st *store.Store, id string, row any) {
	t.Helper()
	doc, err := json.Marshal(row)
	if err == nil {
		_, err = st.CreateSession(t.Context(), id, doc)
	}
	if err != nil {
		t.Fatal(err)
	}
}
