package rules

import (
	"strings"
	"testing"
)

// A shape is about a command word for word, or about those that begin so.
func TestShapes(t *testing.T) {
	for pattern, cases := range map[string]map[string]bool{
		"rm -f a":   {"rm -f a": true, "rm -f a b": false, "rm -r -f a": false, "/usr/bin/rm -f a": false},
		"git log *": {"git log": true, "git log -1": true, "git log --output=y": true, "git -C /x log": false, "git": false, "timeout 5 git log": false},
		"git *":     {"git": true, "git -c a.b=c log": true, "gitk": false},
		"*":         {"git": false},
		"git lo*":   {"git log": false},
		"":          {"git": false},
	} {
		for line, want := range cases {
			if got := Shapes(pattern, strings.Fields(line)); got != want {
				t.Errorf("%q about %q: %v", pattern, line, got)
			}
		}
	}
}
