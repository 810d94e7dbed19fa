package keys

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"stepbox/ui/intent"
)

func TestNoConflicts(t *testing.T) {
	for _, leader := range []string{"", "ctrl+b", "alt+space", "f12"} {
		if _, err := New(leader); err != nil {
			t.Error(err)
		}
	}
}

func TestLeaderMustNotBeText(t *testing.T) {
	for _, k := range []string{"a", "A", "enter", "tab", "f", "ctrl+", "space", "ß"} {
		if _, err := New(k); err == nil {
			t.Errorf("%q was taken as the leader", k)
		}
	}
	if _, err := New("f1"); err != nil {
		t.Error(err)
	}
}

func TestInnerScopeWins(t *testing.T) {
	k, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	b, ok := k.Find("K", Actions, Panes)
	if _, kill := b.Intent.(intent.KillAction); !ok || !kill {
		t.Errorf("K in Actions is %+v", b)
	}
	b, _ = k.Find("K", Changes, Panes)
	if _, page := b.Intent.(intent.Page); !page {
		t.Errorf("K in Changes is %+v", b)
	}
	if _, ok := k.Find("a", Panes); ok {
		t.Error("a means something in every pane")
	}
	for _, s := range []Scope{Leader, Panes, Changes, Network, Home, Lists, Details, Input, Picker, Confirm} {
		for _, b := range k.In(s) {
			switch b.Intent.(type) {
			case intent.Approve, intent.Deny, intent.StepInto, intent.StepOver:
				t.Errorf("%s in %s answers questions", b.Key(), s)
			}
		}
	}
}

func TestEveryBindingIsDescribed(t *testing.T) {
	k, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Scopes() {
		bs := k.In(s)
		if len(bs) == 0 {
			t.Errorf("%s has no keys", s)
		}
		for _, b := range bs {
			if b.Help == "" || b.Intent == nil || len(b.Keys) == 0 {
				t.Errorf("%s: %+v isn't whole", s, b)
			}
		}
		if s.Title() == string(s) {
			t.Errorf("%s has no title", s)
		}
	}
	if got := k.KeyFor(intent.Detach{}, Leader); got != "d" {
		t.Errorf("detach is on %q", got)
	}
}

func TestReference(t *testing.T) {
	k, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	ref := k.Reference()
	golden.RequireEqual(t, ref)
	// When the documentation has the page, it is this one.
	if page, err := os.ReadFile("../../docs/keys.md"); err == nil && strings.TrimSpace(string(page)) != strings.TrimSpace(ref) {
		t.Error("docs/keys.md is old: write what keys.Reference returns")
	}
}
