package find

import (
	"context"
	"errors"
	"testing"

	"stepbox/session/api"
)

// Only what was written under a path counts, and what is known is told although not all can be.
func TestWriters(t *testing.T) {
	broken := errors.New("the index can't be read")
	read := func(_ context.Context, q api.Query) (api.FoundPage, error) {
		if q.Text == "lost.go" {
			return api.FoundPage{}, broken
		}
		return api.FoundPage{Found: []api.Found{{Hits: []api.Hit{
			{Kind: api.HitPath, Action: 9, Text: "src/Lex.go"}, {Kind: api.HitAction, Action: 4, Text: "cat src/lex.go"},
			{Kind: api.HitPath, Action: 2, Text: "…/lex"}, {Kind: api.HitPath, Action: 5, Text: "src/go.lex"},
		}}}}, nil
	}
	w, err := Writers(t.Context(), read, "s", []string{"lex.go", "lost.go"})
	if !errors.Is(err, broken) {
		t.Errorf("it failed with %v", err)
	}
	for n, want := range map[int]bool{2: true, 4: false, 5: false, 9: true} {
		if w.By(n)("lex.go") != want {
			t.Errorf("action %d wrote it: %v", n, !want)
		}
	}
	if _, asked := w["lost.go"]; !asked || w.By(9)("lost.go") || w.By(9)("other.go") {
		t.Error("of what wasn't read something is known")
	}
}
