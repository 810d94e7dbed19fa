package dialog

import (
	"slices"
	"testing"

	"stepbox/ui/keys"
)

// TestPaletteByOtherWords: what people type for a command finds it, but after what is called so.
func TestPaletteByOtherWords(t *testing.T) {
	var all []keys.Binding
	for _, s := range keys.Scopes {
		for _, b := range keys.In(s) {
			if b.Name != "" && !slices.ContainsFunc(all, func(x keys.Binding) bool { return x.Name == b.Name }) {
				all = append(all, b)
			}
		}
	}
	for _, c := range []struct {
		typed, name string
		at          int
	}{
		{"end", "kill sandbox", 1}, {"stop", "kill sandbox", 0}, {"quit session", "kill sandbox", 0},
		{"quit", "quit", 0}, {"diff", "changes", 0}, {"undo", "roll back this", 1}, {"undo", "undo apply", 0},
	} {
		p := NewPalette(all, nil, nil)
		p.Paste(c.typed)
		if at := slices.IndexFunc(p.found(), func(b keys.Binding) bool { return b.Name == c.name }); at != c.at {
			t.Errorf("%q finds %q at %d, want %d", c.typed, c.name, at, c.at)
		}
	}
}
