// Package keys is where a key becomes an intent: Find. It holds every
// binding as data: which keys, in which place, for which intent, with the words
// that help screens, the palette, the last line and the generated reference
// (docs/keys.md) show. There is no second list.
//
// A place is a list of scopes from the innermost out; the first scope that
// knows a key wins. The terminal has no scope of its own: there, the leader is
// the only key that isn't the agent's.
//
// A person may have an arrangement of their own (Arrange, Use). What is in force is replaced
// as a whole and never changed, and so safe to share.
package keys

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"stepbox/ui/intent"
)

// Scope names a place where keys mean something.
type Scope string

// The places, as headings name them.
const (
	Home      Scope = "Home"
	Inbox     Scope = "Home's inbox" // what is held in all sessions
	Searching Scope = "The search for sessions"
	Leader    Scope = "After the leader key" // from anywhere in a session
	Panes     Scope = "Every pane but the Terminal"
	Lists     Scope = "Actions, Changes and Network"
	Filtered  Scope = "A list, while filtered"
	Filtering Scope = "A filter as it is typed"
	Actions   Scope = "Actions"
	Changes   Scope = "Changes"
	Network   Scope = "Network"
	CopyMode  Scope = "Copy mode: reading the Terminal"
	Replay    Scope = "Replay" // the past of a session, in every pane
	Decision  Scope = "An opened question"
	Between   Scope = "Between two questions" // while the next is awaited
	Rule      Scope = "A rule from an answer"
	Rules     Scope = "The rules of a session"
	Denial    Scope = "Why something is denied"
	Form      Scope = "A new session"
	Confirm   Scope = "A confirmation" // a question that Stepbox itself asks
	Plan      Scope = "A plan: applying, undoing or rolling back"
	Ended     Scope = "The end of a session"
	List      Scope = "The list of applies"
	File      Scope = "A file as it was"
	Reading   Scope = "Details and facts"
	Helping   Scope = "Help"
	Input     Scope = "A line of text"
	Found     Scope = "What broke it"
	Picker    Scope = "The command palette"
)

// places are all of them, in the order of the reference.
var places = []struct {
	scope Scope
	short string // by which a configuration names it
	typed bool   // text is written there: printing keys are its letters
}{
	{Home, "home", false},
	{Inbox, "inbox", false},
	{Searching, "searching", true},
	{Leader, "leader", false},
	{Panes, "panes", false},
	{Lists, "lists", false},
	{Filtered, "filtered", false},
	{Filtering, "filtering", true},
	{Actions, "actions", false},
	{Changes, "changes", false},
	{Network, "network", false},
	{CopyMode, "copy", false},
	{Replay, "replay", false},
	{Decision, "question", false},
	{Between, "between", false},
	{Rule, "rule", false},
	{Rules, "rules", false},
	{Denial, "denial", true},
	{Form, "new-session", true},
	{Confirm, "confirm", false},
	{Plan, "plan", false},
	{Ended, "ended", false},
	{List, "applies", false},
	{File, "file", false},
	{Reading, "reading", false},
	{Helping, "help", false},
	{Input, "input", true},
	{Found, "found", false},
	{Picker, "palette", true},
}

// Scopes lists the places, in the order of the reference.
var Scopes = func() (all []Scope) {
	for _, p := range places {
		all = append(all, p.scope)
	}
	return all
}()

// Short is the place in one word, by which a configuration names it.
func (s Scope) Short() string { return places[slices.Index(Scopes, s)].short }

// Typed says whether text is written in a place.
func Typed(s Scope) bool { return places[slices.Index(Scopes, s)].typed }

// Named is the place of a word.
func Named(short string) (Scope, bool) {
	i := slices.Index(Shorts(), short)
	if i < 0 {
		return "", false
	}
	return Scopes[i], true
}

// Shorts lists those words.
func Shorts() (all []string) {
	for _, p := range places {
		all = append(all, p.short)
	}
	return all
}

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

// UsualLeader is the leader unless a person has another.
const UsualLeader = "ctrl+]"

// inForce is the arrangement of this process, made on first use: most processes have no keys.
var inForce atomic.Pointer[Arrangement]

// Use puts an arrangement in force. Screens that are shown have it with their next frame.
func Use(a *Arrangement) { inForce.Store(a) }

func current() *Arrangement {
	if a := inForce.Load(); a != nil {
		return a
	}
	inForce.CompareAndSwap(nil, Usual())
	return inForce.Load()
}

// LeaderKey is the one key that isn't the agent's in its terminal.
func LeaderKey() string { return current().leader }

// LeaderWords name it, and what most terminals send as the same.
func LeaderWords() string {
	for _, l := range same {
		if leader := LeaderKey(); l[0] == leader {
			return fmt.Sprintf("%s (or %s)", leader, strings.Join(l[1:], ", "))
		}
	}
	return LeaderKey()
}

// IsLeader says whether a key is it.
func IsLeader(k fmt.Stringer) bool { return current().Leads(k) }

// ByLetter is a key by what the person's keyboard has on it. Terminals also tell which key
// of a US keyboard is in its place, by which the library would name it: an a of a French
// keyboard isn't to be a q. Where there is no Latin letter on it that is its name.
func ByLetter(k tea.KeyPressMsg) tea.KeyPressMsg {
	if k.Code <= unicode.MaxASCII {
		k.BaseCode = 0
	}
	return k
}

// pressed is a key by its name.
type pressed string

func (k pressed) String() string { return string(k) }

// Find returns what a key means in a place.
func Find(k fmt.Stringer, place ...Scope) (Binding, bool) {
	if k.String() == "alt+esc" { // so two that come at once are read
		k = pressed("esc")
	}
	table := current().table
	for _, s := range place {
		for _, b := range table[s] {
			if key.Matches(k, b.Binding) {
				return b, true
			}
		}
	}
	return Binding{}, false
}

// In lists a scope's bindings in their order.
func In(s Scope) []Binding { return current().table[s] }

// First is the first key of an intent in a place, as people read it; "" where it has none.
func First(i intent.Intent, place Scope) string {
	for _, b := range In(place) {
		if b.Intent == i {
			return b.First()
		}
	}
	return ""
}

// Short is what the last line calls an intent in a place.
func Short(i intent.Intent, place Scope) string {
	for _, b := range In(place) {
		if b.Intent == i {
			return b.Short
		}
	}
	return ""
}

// OfPanes are the keys of the panes in a place, as people read them.
func OfPanes(place Scope) string {
	var all []string
	for _, p := range []intent.Pane{intent.Terminal, intent.Changes, intent.Network, intent.Actions} {
		all = append(all, First(intent.Focus{Pane: p}, place))
	}
	if words := strings.Join(all, " "); words != "1 2 3 4" {
		return words
	}
	return "1-4"
}

// plain are the commands of a shell that do what is called so.
var plain = map[string]string{
	"approve": "approve", "allow always": "approve --always", "step into": "approve --into", "step over": "approve --over", "approve and keep": "approve --keep", "deny": "deny", "keep": "keep",
	"roll back this": "rollback --action", "roll back to before": "rollback --to-before", "redo": "rollback --redo", "roll back home": "rollback --home",
	"apply": "apply", "apply without": "apply --without", "undo apply": "apply --undo", "export": "export", "resume": "resume", "fork": "fork",
	"pause": "pause", "continue, mode policy": "mode policy", "kill action": "kill --action", "kill sandbox": "kill",
	"mode step": "mode step", "mode watch": "mode watch",
	"replay": "replay", "now": "attach", "search": "grep", "find what broke this": "bisect", "view file": "cat", "blame": "blame",
	"changes": "diff", "network": "net", "actions": "show", "facts": "show", "home": "ls", "detach": "attach", "rules": "policy show", "forget rule": "allow --forget",
	"help": "help", "new": "run", "open": "attach", "rename": "label --name", "tag": "label --tag", "note": "label --note", "pin": "label --pin", "trash": "rm",
}

// Plain is the command of a shell, after stepbox, that does what a binding does; "" where
// there is none.
func (b Binding) Plain() string { return plain[b.Name] }

// also are other words by which people look for what is called so. They are shown nowhere.
var also = map[string][]string{
	"kill sandbox": {"end", "stop", "quit session"}, "changes": {"diff"}, "roll back this": {"undo"},
}

// Also are other words for what a binding does.
func (b Binding) Also() []string { return also[b.Name] }
