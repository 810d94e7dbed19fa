package ledger

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"stepbox/session/api"
	"stepbox/store"
)

// A label that can't be read any more may have been a pin: the next one keeps the session
// pinned, unless it says otherwise.
func TestDamagedLabelStaysPinned(t *testing.T) {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	const id = "aaaaaaaa"
	if _, err := st.CreateSession(t.Context(), id, json.RawMessage(`{"id":"aaaaaaaa","state":"ended"}`)); err != nil {
		t.Fatal(err)
	}
	h := &History{Store: st, Live: func(string) bool { return false }}
	for _, c := range []struct {
		label  api.Label
		pinned bool
	}{{api.Label{Note: new("x")}, true}, {api.Label{Pinned: new(false)}, false}} {
		if err := st.Label(t.Context(), id, func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"tags":7}`), nil }); err != nil {
			t.Fatal(err)
		}
		if s, err := h.Label(t.Context(), id, c.label); err != nil || s.Pinned != c.pinned {
			t.Errorf("after %+v it is pinned: %v, %v", c.label, s.Pinned, err)
		}
	}
}
