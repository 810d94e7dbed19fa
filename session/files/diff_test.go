package files

import (
	"fmt"
	"strings"
	"testing"
)

func TestHunksAreMinimal(t *testing.T) {
	var before, after strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&before, "line %d\n", i)
		if i >= 10000 && i < 10600 && i%10 == 0 {
			fmt.Fprintf(&after, "changed %d\n", i)
			continue
		}
		fmt.Fprintf(&after, "line %d\n", i)
	}
	hs, added, removed, err := hunks(before.String(), after.String())
	if err != nil {
		t.Fatal(err)
	}
	if added != 60 || removed != 60 || len(hs) != 60 {
		t.Errorf("%d hunks, +%d −%d; want 60, +60 −60", len(hs), added, removed)
	}
}

func TestHunksOfHostileText(t *testing.T) {
	hs, _, _, err := hunks("one\n", "one\n\ttwo\x1b[2J\u202e\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hs[0].Lines[1].Text, "\ttwo\\x1b[2J\\u202e"; got != want {
		t.Errorf("line is %q, want %q", got, want)
	}
}

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
		if got := !text([]byte(tt.in)); got != tt.want {
			t.Errorf("%s: binary is %v, want %v", tt.name, got, tt.want)
		}
	}
}
