// Package keys holds every key binding as data: which key, in which place, for
// which intent, with the words that help screens, the palette and the generated
// reference show. There is no second list.
//
// A place is a list of scopes from the innermost out; the first scope that
// knows a key wins. The terminal has no scope of its own: there, the leader is
// the only key that isn't the agent's.
//
// A Table is read-only once made and safe to share.
package keys

import (
	"fmt"
	"strings"

	"stepbox/ui/intent"
)

// Scope names a place where keys mean something.
type Scope string

// The places.
const (
	Home     Scope = "home"
	Leader   Scope = "leader"   // after the leader key, from anywhere in a session
	Panes    Scope = "panes"    // any pane but the terminal
	Actions  Scope = "actions"  // the Actions pane
	Changes  Scope = "changes"  // the Changes pane
	Network  Scope = "network"  // the Network pane
	Decision Scope = "decision" // an opened question
	Details  Scope = "details"  // an opened action or attempt
	Confirm  Scope = "confirm"  // a question that Stepbox itself asks
	Input    Scope = "input"    // a line of text
	Lists    Scope = "help"     // help and facts
	Picker   Scope = "palette"  // the command palette
)

// Scopes lists all places, in the order of the reference.
func Scopes() []Scope {
	return []Scope{Home, Leader, Panes, Actions, Changes, Network, Decision, Details, Confirm, Input, Lists, Picker}
}

// Title says what a scope is, for headings.
func (s Scope) Title() string {
	switch s {
	case Home:
		return "Home"
	case Leader:
		return "After the leader key"
	case Panes:
		return "Every pane but the Terminal"
	case Actions:
		return "Actions"
	case Changes:
		return "Changes"
	case Network:
		return "Network"
	case Decision:
		return "An opened question"
	case Details:
		return "Details"
	case Confirm:
		return "A confirmation"
	case Input:
		return "A line of text"
	case Lists:
		return "Help and facts"
	case Picker:
		return "The command palette"
	}
	return string(s)
}

// Binding is one key's meaning in one scope.
type Binding struct {
	Scope  Scope
	Keys   []string // as tea.KeyPressMsg.String has them
	Name   string   // what the palette and the plain commands call it; "" keeps it out of the palette
	Short  string   // for the held line and dialogs' last row; "" keeps it out
	Help   string   // a whole phrase
	Intent intent.Intent
}

// Key is the key as people read it.
func (b Binding) Key() string {
	var out []string
	for _, k := range b.Keys {
		out = append(out, Pretty(k))
	}
	return strings.Join(out, " ")
}

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
	case "esc", "enter", "tab", "space", "home", "end", "pgup", "backspace":
		return k
	}
	return k
}

// Table is a set of bindings with a leader key.
type Table struct {
	Leader   string
	bindings []Binding
	byKey    map[Scope]map[string]int
}

// New makes the table with that leader key; "" is ctrl+].
func New(leader string) (*Table, error) {
	if leader == "" {
		leader = DefaultLeader
	}
	t := &Table{Leader: leader, bindings: defaults(leader), byKey: map[Scope]map[string]int{}}
	if !usableLeader(leader) {
		return nil, fmt.Errorf("cannot use %q as the leader key: it must be ctrl, alt or a function key, since every other key is the agent's", leader)
	}
	for i, b := range t.bindings {
		m := t.byKey[b.Scope]
		if m == nil {
			m = map[string]int{}
			t.byKey[b.Scope] = m
		}
		for _, k := range b.Keys {
			if other, taken := m[k]; taken {
				return nil, fmt.Errorf("cannot bind %q twice in %s: to %q and to %q", k, b.Scope, t.bindings[other].Help, b.Help)
			}
			m[k] = i
		}
	}
	return t, nil
}

// DefaultLeader is the leader key unless another one was chosen.
const DefaultLeader = "ctrl+]"

func usableLeader(k string) bool {
	for _, p := range []string{"ctrl+", "alt+"} {
		if rest, ok := strings.CutPrefix(k, p); ok && rest != "" {
			return true
		}
	}
	return len(k) >= 2 && k[0] == 'f' && k[1] >= '1' && k[1] <= '9'
}

// Find returns what a key means in a place.
func (t *Table) Find(key string, place ...Scope) (Binding, bool) {
	for _, s := range place {
		if i, ok := t.byKey[s][key]; ok {
			return t.bindings[i], true
		}
	}
	return Binding{}, false
}

// In lists a scope's bindings in their order.
func (t *Table) In(s Scope) []Binding {
	var out []Binding
	for _, b := range t.bindings {
		if b.Scope == s {
			out = append(out, b)
		}
	}
	return out
}

// KeyFor is the first key for an intent in a place, or "".
func (t *Table) KeyFor(want intent.Intent, place ...Scope) string {
	for _, s := range place {
		for _, b := range t.bindings {
			if b.Scope == s && b.Intent == want {
				return Pretty(b.Keys[0])
			}
		}
	}
	return ""
}

// Reference writes all bindings as a page of Markdown.
func (t *Table) Reference() string {
	var b strings.Builder
	b.WriteString("# Keys\n\n<!-- Generated from ui/keys; do not edit. -->\n\n")
	fmt.Fprintf(&b, "The leader key is `%s` unless another one was chosen. While the Terminal has the focus every other key goes to the agent.\n", t.Leader)
	for _, s := range Scopes() {
		fmt.Fprintf(&b, "\n## %s\n\n| key | |\n| --- | --- |\n", s.Title())
		for _, k := range t.In(s) {
			var shown []string
			for _, key := range k.Keys {
				if key == "|" {
					key = `\|`
				}
				shown = append(shown, "`"+key+"`")
			}
			fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(shown, " "), k.Help)
		}
	}
	return b.String()
}
