package session

import (
	"strings"
	"testing"

	"stepbox/session/api"
)

// The last line is words of the agent's: bounded, and unable to draw.
func TestLastWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rows, want string }{
		{"", ""},
		{"one|two|", "two"},
		{"ok|╭────╮|│ >_ │|╰────╯|", "ok"},
		{"│ done │|   |", "done"},
		{"a\x1b]52;c;x\a\u202eb", `a\x1b]52;c;x\x07\u202eb`},
	} {
		if got := lastWords(strings.Split(c.rows, "|")); got != c.want {
			t.Errorf("%q: %q, want %q", c.rows, got, c.want)
		}
	}
	if got := lastWords([]string{strings.Repeat("漢", 1000)}); len(got) > api.LastMost || got == "" {
		t.Errorf("%d bytes", len(got))
	}
}
