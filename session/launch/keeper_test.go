package launch

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"stepbox/store"
)

// An apply that can't be read doesn't keep its session from being removed.
func TestJournalsOfDamaged(t *testing.T) {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	const id = "aaaaaaaa"
	if _, err := st.CreateSession(t.Context(), id, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	for n, doc := range []string{`{"journal":7}`, `{"journal":"one"}`} {
		if _, err := st.Append(t.Context(), id, store.Fact{Kind: store.KindApply, Key: int64(n), Event: "apply.ended", Doc: json.RawMessage(doc)}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := (keeper{store: st}).journalsOf(t.Context(), id); err != nil || !slices.Equal(got, []string{"one"}) {
		t.Errorf("its journals are %v, %v", got, err)
	}
}
