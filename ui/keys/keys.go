// Package keys is where a key becomes an intent: Find. It holds every
// binding as data: which keys, in which place, for which intent, with the words
// that help screens, the palette, the last line and the generated reference
// (docs/keys.md) show. There is no second list.
//
// A place is a list of scopes from the innermost out; the first scope that
// knows a key wins. The terminal has no scope of its own: there, the leader is
// the only key that isn't the agent's.
//
// All of it is read-only and safe to share.
package keys

import (
	"fmt"
	"sync"

	"charm.land/bubbles/v2/key"

	"stepbox/ui/intent"
)

// Scope names a place where keys mean something.
type Scope string

// The places, as headings name them.
const (
	Home      Scope = "Home"
	Searching Scope = "The search for sessions"
	Leader    Scope = "After the leader key" // from anywhere in a session
	Panes     Scope = "Every pane but the Terminal"
	Actions   Scope = "Actions"
	Changes   Scope = "Changes"
	Network   Scope = "Network"
	Replay    Scope = "Replay" // the past of a session, in every pane
	Decision  Scope = "An opened question"
	Confirm   Scope = "A confirmation" // a question that Stepbox itself asks
	Plan      Scope = "A plan: applying, undoing, taking or rolling back"
	Ended     Scope = "The end of a session"
	List      Scope = "The list of applies"
	File      Scope = "A file as it was"
	Reading   Scope = "Details, facts and help"
	Input     Scope = "A line of text"
	Found     Scope = "What broke it"
	Picker    Scope = "The command palette"
)

// Binding is what keys mean in one scope. Its Help has the keys as people read
// them, and a whole phrase.
type Binding struct {
	key.Binding
	Name   string // what the palette and the plain commands call it; "" keeps it out of the palette
	Short  string // for the last line of screens and dialogs; "" keeps it out
	Intent intent.Intent
}

// First is the first of its keys as people read it.
func (b Binding) First() string { return Pretty(b.Keys()[0]) }

// Pretty writes a key as people read it.
func Pretty(k string) string {
	switch k {
	case "up":
		return "↑"
	case "down":
		return "↓"
	case "left":
		return "←"
	case "right":
		return "→"
	case "pgdown":
		return "pgdn"
	}
	return k
}

// LeaderKey is the one key that isn't the agent's in its terminal.
const LeaderKey = "ctrl+]"

// table is made on first use: most processes have no keys.
var table = sync.OnceValue(bindings)

// pressed is a key by its name.
type pressed string

func (k pressed) String() string { return string(k) }

// Find returns what a key means in a place.
func Find(k fmt.Stringer, place ...Scope) (Binding, bool) {
	if k.String() == "alt+esc" { // so two that come at once are read
		k = pressed("esc")
	}
	for _, s := range place {
		for _, b := range table()[s] {
			if key.Matches(k, b.Binding) {
				return b, true
			}
		}
	}
	return Binding{}, false
}

// In lists a scope's bindings in their order.
func In(s Scope) []Binding { return table()[s] }
