package keys

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "github.com/charmbracelet/x/exp/golden" // the flag -update

	"stepbox/session/e2e/must"
	"stepbox/ui/intent"
)

type name string

func (n name) String() string { return string(n) }

func TestNoConflicts(t *testing.T) {
	for _, s := range Scopes {
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
	for _, s := range Scopes {
		for _, b := range In(s) {
			switch b.Intent.(type) {
			case intent.Approve, intent.Always, intent.Deny, intent.StepInto, intent.StepOver:
				if _, deny := b.Intent.(intent.Deny); deny && s == Rules {
					continue // there it takes a rule back
				}
				if s != Actions && s != Network && s != Decision && s != Inbox {
					t.Errorf("%s in %s answers questions", b.Help().Key, s)
				}
			}
		}
	}
}

func TestEveryBindingIsDescribed(t *testing.T) {
	if len(current().table) != len(Scopes) {
		t.Errorf("there are %d scopes, and %d are known here", len(current().table), len(Scopes))
	}
	for _, s := range Scopes {
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
	fmt.Fprintf(&b, "The leader key is `%s`. While the Terminal has the focus every other key goes to the agent. A keyboard where ] needs AltGr has it as ctrl+5, too: most terminals send the same for both.\n\n", LeaderKey())
	b.WriteString("A configuration ([configuration.md](configuration.md)) may give other keys to what has a name here, and to each key in its place; a place goes by the word in brackets.\n")
	for _, s := range Scopes {
		fmt.Fprintf(&b, "\n## %s (%s)\n\n| key | name | |\n| --- | --- | --- |\n", s, s.Short())
		for _, x := range In(s) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.Join(x.Keys(), "` `"), x.Name, x.Help().Desc)
		}
	}
	const page = "../../docs/keys.md"
	if flag.Lookup("update").Value.String() == "true" {
		must.OK(t, os.WriteFile(page, []byte(b.String()), 0o644))
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != b.String() {
		t.Errorf("docs/keys.md is old (%v): go test ./ui/keys -update writes it", err)
	}
}
