package api

import (
	"testing"
	"time"
)

func TestMoments(t *testing.T) {
	hour := time.Hour + 2*time.Second
	for text, want := range map[Moment]Parts{
		"": {}, "end": {}, "start": {Start: true}, "12": {Action: 12}, "#12": {Action: 12}, "12^": {Action: 12, Before: true},
		"=345": {Event: 345}, "+1h2s": {After: &hour},
	} {
		got, err := text.Parse()
		if got.After != nil && want.After != nil && *got.After == *want.After {
			got.After, want.After = nil, nil
		}
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, bad := range []Moment{"0", "-1", "^", "1^^", "x", "+", "+-1s", "=0", "=", "99999999999", "1 ", "+999999h9999999999h"} {
		if got, err := bad.Parse(); err == nil {
			t.Errorf("%q is taken as %+v", bad, got)
		}
	}
	for text, want := range map[string][2]Moment{"7": {"", "7"}, "3..7": {"3", "7"}, "..7": {"start", "7"}, "3^..": {"3^", ""}} {
		if a, b := CutRange(text); a != want[0] || b != want[1] {
			t.Errorf("%q is %q to %q", text, a, b)
		}
	}
}
