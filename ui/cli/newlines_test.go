package cli

import (
	"bytes"
	"strings"
	"testing"
)

// What a program printed arrives as it was, in whatever pieces its terminal's
// output comes.
func TestNewlines(t *testing.T) {
	for _, printed := range []string{"", "a\n", "\n\n", "a\rb\n", "crlf\r\n", "\r\r\n\r", "x\r", "\n\r\n\r\r\r\n\ny"} {
		terminal := strings.ReplaceAll(printed, "\n", "\r\n")
		for size := 1; size <= len(terminal)+1; size++ {
			var got bytes.Buffer
			n := &newlines{w: &got}
			for p := []byte(terminal); len(p) > 0; p = p[min(size, len(p)):] {
				if w, err := n.Write(p[:min(size, len(p))]); err != nil || w != min(size, len(p)) {
					t.Fatalf("Write gave %d, %v", w, err)
				}
			}
			if err := n.flush(); err != nil || got.String() != printed {
				t.Errorf("%q in pieces of %d became %q: %v", terminal, size, got.String(), err)
			}
		}
	}
}
