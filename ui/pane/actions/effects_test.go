package actions

import (
	"strings"
	"testing"

	"stepbox/session/api"
)

// What an edit did isn't said again when its title says it.
func TestEditSaysOnce(t *testing.T) {
	for words, want := range map[string]string{"changes a.go": "", "empties a.go": "empties a.go", "changes b.go": "changes b.go"} {
		got := ""
		for _, w := range did(api.Action{Kind: api.KindEdit, Title: "edit a.go", Effects: &api.Effects{Words: []string{words}}}) {
			got += strings.TrimSpace(w.text)
		}
		if got != want {
			t.Errorf("%q is %q", words, got)
		}
	}
	if len(did(api.Action{Kind: api.KindCommand, Title: "edit a.go", Effects: &api.Effects{Words: []string{"changes a.go"}}})) == 0 {
		t.Error("a command's isn't said")
	}
}
