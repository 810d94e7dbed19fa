package store

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"stepbox/session/e2e/must"
)

func TestNewest(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "data"))
	must.OK(t, err)
	defer s.Close()
	for _, id := range []string{"one", "two"} {
		if _, err := s.CreateSession(t.Context(), id, json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Newest(t.Context(), "one", KindCheckpoint, 5); err != nil || len(got) > 0 {
		t.Errorf("of none they are %s, %v", got, err)
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
	for limit, want := range map[int]string{1: `[{"id":10}]`, 2: `[{"id":9} {"id":10}]`, 9: `[{"id":2} {"id":9} {"id":10}]`} {
		if got, err := s.Newest(t.Context(), "one", KindCheckpoint, limit); err != nil || fmt.Sprintf("%s", got) != want {
			t.Errorf("the newest %d are %s, %v", limit, got, err)
		}
	}
}
