package store

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
)

func TestLastDocIsTheHighest(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, id := range []string{"one", "two"} {
		if _, err := s.CreateSession(t.Context(), id, json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.LastDoc(t.Context(), "one", KindCheckpoint); !errors.Is(err, ErrNotFound) {
		t.Errorf("of none it is %v", err)
	}
	for _, f := range []struct {
		session string
		key     int64
		doc     string
	}{{"one", 9, `{"id":9}`}, {"one", 10, `{"id":10}`}, {"one", 2, `{"id":2}`}, {"two", 99, `{"id":99}`}} {
		if _, err := s.Append(t.Context(), f.session, Fact{Kind: KindCheckpoint, Key: f.key, Event: "checkpoint", Doc: json.RawMessage(f.doc)}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.LastDoc(t.Context(), "one", KindCheckpoint); err != nil || string(got) != `{"id":10}` {
		t.Errorf("the last is %s (%v)", got, err)
	}
}
