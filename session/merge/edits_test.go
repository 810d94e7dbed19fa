package merge

import (
	"strings"
	"testing"
)

func TestBinary(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		want bool
	}{
		{"empty", "", false},
		{"text", "hello\n", false},
		{"latin-1", "caf\xe9 and a lot more plain text around it\n", false},
		{"nul", "a\x00b", true},
		{"a line nobody reads", strings.Repeat("x", 10<<10+1), true},
		{"noise", "\xff\xfe\xfd\xfc", true},
	} {
		if got := Binary([]byte(tt.in)); got != tt.want {
			t.Errorf("%s: binary is %v, want %v", tt.name, got, tt.want)
		}
	}
}
