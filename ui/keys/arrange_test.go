package keys

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"stepbox/ui/intent"
)

func TestArrange(t *testing.T) {
	for _, c := range []struct {
		name   string
		leader string
		change []Change
		bad    string // what is said of the first that doesn't hold; "": all do
		key    string
		place  Scope
		means  intent.Intent // nil: nothing
	}{
		{"another leader", "ctrl+g", nil, "", "ctrl+g", Leader, intent.Leader{}},
		{"a function key leads", "f12", nil, "", "f12", Leader, intent.Leader{}},
		{"a letter can't lead", "a", nil, "needed for typing", "ctrl+]", Leader, intent.Leader{}},
		{"enter can't lead", "ctrl+m", nil, "arrives as enter", "ctrl+]", Leader, intent.Leader{}},
		{"a leader that is taken", "ctrl+r", nil, `taken in "panes"`, "ctrl+r", Panes, intent.Redo{}},
		{"a leader that is taken as it arrives", "ctrl+p", nil, `taken in "home"`, "ctrl+p", Panes, intent.Palette{}},
		{"given up for the leader", "ctrl+r", []Change{{"", "redo", []string{"ctrl+y"}}}, "", "ctrl+y", Panes, intent.Redo{}},
		{"by name, wherever it is", "", []Change{{"", "approve", []string{"v", "f5"}}}, `taken in "question"`, "a", Decision, intent.Approve{}},
		{"by name, in two places", "", []Change{{"", "approve", []string{"f5"}}}, "", "f5", Decision, intent.Approve{}},
		{"the old key is free", "", []Change{{"", "approve", []string{"f5"}}}, "", "a", Actions, nil},
		{"in one place", "", []Change{{Actions, "approve", []string{"f5"}}}, "", "a", Decision, intent.Approve{}},
		{"by its key", "", []Change{{Changes, "]", []string{"Q"}}}, "", "Q", Changes, intent.Hunk{By: 1}},
		{"swapped", "", []Change{{"", "approve", []string{"d"}}, {"", "deny", []string{"a"}}}, "", "a", Decision, intent.Deny{}},
		{"taken", "", []Change{{"", "approve", []string{"d"}}}, `d is taken in "inbox"`, "d", Actions, intent.Deny{}},
		{"unknown", "", []Change{{"", "aprove", []string{"x"}}}, `is it "approve"?`, "a", Actions, intent.Approve{}},
		{"unknown in a place", "", []Change{{Home, "approve", []string{"x"}}}, `in "home" nothing`, "x", Home, intent.Export{}},
		{"text is typed there", "", []Change{{Input, "enter", []string{"y"}}}, "typed as text", "enter", Input, intent.Yes{}},
		{"esc stays", "", []Change{{Confirm, "n", []string{"x"}}}, "", "esc", Confirm, intent.Back{}},
		{"the leader for something else", "", []Change{{"", "approve", []string{"ctrl+5"}}}, "is the leader key", "a", Actions, intent.Approve{}},
		{"the leader's own row", "", []Change{{Leader, "ctrl+]", []string{"x"}}}, "nothing", "ctrl+]", Leader, intent.Leader{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, of, ofLeader := Arrange(c.leader, c.change)
			words := ""
			for _, err := range slices.Insert(of, 0, ofLeader) {
				if err != nil {
					words += err.Error()
				}
			}
			if (words == "") != (c.bad == "") || !strings.Contains(words, c.bad) {
				t.Errorf("it says %q, not %q", words, c.bad)
			}
			var got intent.Intent
			for _, b := range a.table[c.place] {
				if slices.Contains(b.Keys(), c.key) {
					got = b.Intent
				}
			}
			if got != c.means {
				t.Errorf("%s in %s is %#v", c.key, c.place.Short(), got)
			}
		})
	}
}

func TestClean(t *testing.T) {
	for k, want := range map[string]string{
		"a": "a", "A": "A", "shift+a": "A", "ctrl+G": "ctrl+g", "Ctrl+g": "ctrl+g", "alt+ctrl+x": "ctrl+alt+x", "+": "+", "ctrl++": "ctrl++", "F5": "f5",
		"shift+tab": "shift+tab", "ü": "ü", "space": "space", "control+g": "ctrl+g",
		"": "", "ctrl+": "", "esc": "", "Esc": "", "foo": "", "ctrl+foo": "", " ": "", "\x1b": "", "super+a": "",
	} {
		if got, err := Clean(k); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q (%v), not %q", k, got, err, want)
		}
	}
}

// What terminals send where ] needs AltGr is the leader; an a of a French keyboard is no q.
func TestLeaderOnOtherKeyboards(t *testing.T) {
	a := Usual()
	for k, want := range map[tea.KeyPressMsg]bool{
		{Code: ']', Mod: tea.ModCtrl}:                true,
		{Code: '5', Mod: tea.ModCtrl}:                true,
		{Code: 'ъ', BaseCode: ']', Mod: tea.ModCtrl}: true,  // Russian
		{Code: '¨', BaseCode: ']', Mod: tea.ModCtrl}: true,  // Swedish
		{Code: '+', BaseCode: ']', Mod: tea.ModCtrl}: false, // German: a key of its own
		{Code: '5', Text: "5"}:                       false,
		{Code: '5', Mod: tea.ModCtrl | tea.ModAlt}:   false,
	} {
		if got := a.Leads(ByLetter(k)); got != want {
			t.Errorf("%s leads: %v", ByLetter(k), got)
		}
	}
	if k := ByLetter(tea.KeyPressMsg{Code: 'a', BaseCode: 'q', Mod: tea.ModCtrl}); k.String() != "ctrl+a" {
		t.Errorf("a French ctrl+a is %s", k)
	}
}

func TestFirst(t *testing.T) {
	a, of, _ := Arrange("ctrl+g", []Change{{Panes, "terminal", []string{"f1"}}})
	if of[0] != nil {
		t.Fatal(of[0])
	}
	Use(a)
	defer Use(Usual())
	if got := OfPanes(Panes) + " " + OfPanes(Leader) + " " + First(intent.Help{}, Panes) + " " + LeaderKey(); got != "f1 2 3 4 1-4 ? ctrl+g" {
		t.Error(got)
	}
}
