package keys

import (
	"strings"
	"testing"

	"stepbox/ui/intent"
)

// Whatever key is pressed wherever, it means something or is answered with what does.
func TestAstray(t *testing.T) {
	never := func(intent.Intent) string { return "" }
	for _, s := range Scopes {
		place := []Scope{s}
		switch s {
		case Actions, Changes, Network, Replay:
			place = append(place, Panes)
		case Panes:
			place = []Scope{Replay, Panes} // the Terminal of a past session
		}
		for _, other := range Scopes {
			for _, b := range In(other) {
				for _, k := range b.Keys() {
					if _, ok := Find(name(k), place...); ok {
						continue
					}
					words := Astray(name(k), never, nil, place...)
					head, right, ok := strings.Cut(words[len(Pretty(k)):], ": ")
					if !ok || !strings.HasPrefix(words, Pretty(k)+" ") || head == "" || !begins(place, right) {
						t.Errorf("%s in %s is answered with %q", k, s, words)
					}
				}
			}
		}
	}
}

// begins says whether words begin with a key that does something in a place, or with
// the leader.
func begins(place []Scope, words string) bool {
	first, _, _ := strings.Cut(words, " ")
	if first == LeaderKey() {
		return true
	}
	for _, s := range place {
		for _, b := range In(s) {
			for _, k := range b.Keys() {
				if Pretty(k) == first {
					return true
				}
			}
		}
	}
	return false
}

func TestAstraySays(t *testing.T) {
	over := func(i intent.Intent) string {
		if intent.Acts(i) {
			return "the session has ended"
		}
		return ""
	}
	never := func(intent.Intent) string { return "" }
	for _, c := range []struct {
		key   string
		place []Scope
		why   func(intent.Intent) string
		want  string
	}{
		{"d", []Scope{Changes, Panes}, never, "d is for Actions: 4 goes there"},
		{"d", []Scope{Changes, Panes}, over, "d does nothing here: ctrl+] d does that"},
		{"q", []Scope{Changes, Panes}, never, "q does nothing here: ctrl+] h does that"},
		{"t", []Scope{Actions, Panes}, never, "t is for Changes: 2 goes there"},
		{"x", []Scope{Decision}, never, "x does nothing here: a approve once · A always…"},
		{"Z", []Scope{Confirm}, never, "Z does nothing here: y yes · n no"},
		{"$", []Scope{Actions, Panes}, never, "$ does nothing here: ? shows what does"},
		{"$", []Scope{Home}, never, "$ does nothing here: ? shows what does"},
	} {
		if got := Astray(name(c.key), c.why, nil, c.place...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s in %s: %q, not %q", c.key, c.place[0], got, c.want)
		}
	}
}
