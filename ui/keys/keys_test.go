package keys

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "github.com/charmbracelet/x/exp/golden" // the flag -update

	"stepbox/ui/intent"
)

type name string

func (n name) String() string { return string(n) }

// all is every scope, in the order of the reference.
var all = []Scope{Home, Searching, Leader, Panes, Actions, Changes, Network, Replay, Decision, Confirm, Plan, Ended, List, File, Reading, Input, Found, Picker}

func TestNoConflicts(t *testing.T) {
	for _, s := range all {
		taken := map[string]string{}
		for _, b := range In(s) {
			for _, key := range b.Keys() {
				if other, twice := taken[key]; twice {
					t.Errorf("%s: %q is bound to %q and to %q", s, key, other, b.Help().Desc)
				}
				taken[key] = b.Help().Desc
			}
		}
	}
}

func TestInnerScopeWins(t *testing.T) {
	b, ok := Find(name("K"), Actions, Panes)
	if _, kill := b.Intent.(intent.KillAction); !ok || !kill {
		t.Errorf("K in Actions is %+v", b)
	}
	b, _ = Find(name("K"), Changes, Panes)
	if _, scroll := b.Intent.(intent.Beside); !scroll {
		t.Errorf("K in Changes is %+v", b)
	}
	if _, ok := Find(name("a"), Panes); ok {
		t.Error("a means something in every pane")
	}
	if b, _ := Find(name("alt+esc"), Actions, Panes); b.Intent != intent.Intent(intent.Back{}) {
		t.Errorf("two esc at once are %+v", b)
	}
	for _, s := range all {
		for _, b := range In(s) {
			switch b.Intent.(type) {
			case intent.Approve, intent.Deny, intent.StepInto, intent.StepOver:
				if s != Actions && s != Decision {
					t.Errorf("%s in %s answers questions", b.Help().Key, s)
				}
			}
		}
	}
}

func TestEveryBindingIsDescribed(t *testing.T) {
	if len(table()) != len(all) {
		t.Errorf("there are %d scopes, and %d are known here", len(table()), len(all))
	}
	for _, s := range all {
		if len(In(s)) == 0 {
			t.Errorf("%s has no keys", s)
		}
		for _, b := range In(s) {
			if b.Help().Desc == "" || b.Intent == nil || !b.Enabled() {
				t.Errorf("%s: %+v isn't whole", s, b)
			}
		}
	}
}

// The page of all keys in the documentation is the table's; -update writes it.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Keys\n\n<!-- Generated from ui/keys; do not edit. -->\n\n")
	fmt.Fprintf(&b, "The leader key is `%s`. While the Terminal has the focus every other key goes to the agent.\n", LeaderKey)
	for _, s := range all {
		fmt.Fprintf(&b, "\n## %s\n\n| key | |\n| --- | --- |\n", s)
		for _, x := range In(s) {
			fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(x.Keys(), "` `"), x.Help().Desc)
		}
	}
	const page = "../../docs/keys.md"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != b.String() {
		t.Errorf("docs/keys.md is old (%v): go test ./ui/keys -update writes it", err)
	}
}
