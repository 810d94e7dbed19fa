package policy

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

func TestExpectations(t *testing.T) {
	p := asking().With(layer(t, "project", "commands:\n  - deny: make deploy\n    in: services\nnetwork:\n  - allow: example.org:443\n  - deny: 192.0.2.0/24\nfiles: {hide: ['*.pem'], read-only: [migrations], review: [go.mod]}\n"))
	all, err := ParseExpectations("t.yaml", []byte(`
- run: git push origin main
  want: ask
  rule: sends commits
- run: make deploy
  in: services/api
  want: deny
- run: make deploy
  want: allow
- connect: example.org:443
  want: allow
- connect: example.org:443/udp
  want: ask
- connect: 192.0.2.7:22
  program: ssh
  want: deny
- {file: keys/a.pem, want: hidden, rule: pem}
- {file: migrations/1.sql, want: read-only}
- {file: ./go.mod, want: review}
- {file: main.go, want: shown}
`))
	must.OK(t, err)
	for _, e := range all {
		if got, ok := p.Met(e, "/p", "/h"); !ok {
			t.Errorf("line %d: %s", e.Line, got)
		}
	}
	if all[1].Line != 5 {
		t.Errorf("the second is in line %d, want 5", all[1].Line)
	}
	// What isn't so isn't met.
	for _, e := range []Expectation{
		{Run: "git push", Want: Allow}, {Run: "git push", Want: Ask, Rule: "publishes"}, {Connect: "example.org:443", Want: Ask},
		{Path: "a.pem", Treated: Shown}, {Path: "a.pem", Treated: Hidden, Rule: "key"}, {Connect: "*.example.org:443", Want: Ask},
	} {
		if got, ok := p.Met(e, "/p", "/h"); ok {
			t.Errorf("%+v is met: %s", e, got)
		}
	}
}

func TestExpectationErrors(t *testing.T) {
	for in, want := range map[string]string{
		"- want: ask":                               "1:3: an expectation is of one thing",
		"- {run: a, file: b, want: ask}":            "1:3: an expectation is of one thing",
		"- run: a":                                  "1:3: an expectation says what it wants",
		"- {run: a, want: yes}":                     `1:18: want is allow, ask or deny, not "yes"`,
		"- {run: a, want: hidden}":                  "1:18: want is allow",
		"- {file: a, want: ask}":                    "1:19: of a file want is shown",
		"- {run: '', want: ask}":                    "1:10: it is empty",
		"- {run: a, want: ask, program: curl}":      "1:3: program goes with connect",
		"- {file: a, in: b, want: shown}":           "1:3: program goes with connect, and in with run",
		"- {connect: example.org, want: ask}":       `1:13: "example.org" isn't one place`,
		"- {connect: '*:443', want: ask}":           "isn't one place",
		"- {connect: 'a:1-2', want: ask}":           "isn't one place",
		"- {connect: '192.0.2.0/24:80', want: ask}": "isn't one place",
		"- {connect: 'a:1/any', want: ask}":         "isn't one place",
		"- {runs: a}":                               `there is no key "runs"; did you mean "run"?`,
		"run: a":                                    "a list is expected",
	} {
		if _, err := ParseExpectations("t.yaml", []byte(in)); err == nil || !strings.HasPrefix(err.Error(), "t.yaml:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

// What a starter shows as examples is right once it isn't remarks.
func TestStarters(t *testing.T) {
	for _, project := range []bool{false, true} {
		empty, err := ParseLayer("x", "starter.yaml", Starter(project))
		if err != nil || empty.Loosens() || len(empty.Rules)+len(empty.Network)+len(empty.Hide)+len(empty.Limits) > 0 {
			t.Errorf("as it is: %+v, %v", empty, err)
		}
		var b strings.Builder
		for l := range strings.Lines(string(Starter(project))) {
			if !strings.HasPrefix(l, "##") {
				b.WriteString(strings.TrimPrefix(l, "# "))
			}
		}
		l, err := ParseLayer("x", "starter.yaml", []byte(b.String()))
		if err != nil || len(l.Rules) < 2 || len(l.Network) < 3 || len(l.Hide)+len(l.ReadOnly)+len(l.Review) < 3 {
			t.Errorf("with its examples: %+v, %v\n%s", l, err, b.String())
		}
	}
}

// The schema knows exactly the keys that are read, each with words on it.
func TestSchema(t *testing.T) {
	file := filepath.Join("..", "docs", "policy.schema.json")
	if flag.Lookup("update").Value.String() == "true" {
		must.OK(t, os.WriteFile(file, Schema(), 0o644))
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, Schema()) {
		t.Errorf("%s isn't what the structs say; run: go test ./policy -run TestSchema -update (%v)", file, err)
	}
	var s struct {
		Properties map[string]struct {
			Description string
			Items       struct {
				Properties map[string]struct{ Description string }
			}
			Properties map[string]struct{ Description string }
		}
	}
	must.OK(t, json.Unmarshal(Schema(), &s))
	for _, key := range []string{"version", "include", "commands", "network", "files", "limits", "environment", "mounts", "ask", "checks"} {
		if s.Properties[key].Description == "" {
			t.Errorf("the schema says nothing of %s", key)
		}
	}
	for _, k := range []string{"ask", "allow", "deny", "why", "spelled", "children", "in"} {
		if s.Properties["commands"].Items.Properties[k].Description == "" {
			t.Errorf("the schema says nothing of %s in commands", k)
		}
	}
	if len(s.Properties["limits"].Properties) < 6 || len(s.Properties["files"].Properties) != 3 {
		t.Errorf("limits %v, files %v", s.Properties["limits"], s.Properties["files"])
	}
}

// What docs/policy.md shows is read as it stands there.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "policy.md"))
	must.OK(t, err)
	var blocks []string
	for i, part := range strings.Split(string(text), "```") {
		if s, ok := strings.CutPrefix(part, "yaml\n"); ok && i%2 == 1 {
			blocks = append(blocks, s)
		}
	}
	if len(blocks) != 2 {
		t.Fatalf("%d examples, want the format and a test", len(blocks))
	}
	l, err := ParseLayer("user", "policy.md", []byte(blocks[0]))
	if err != nil || len(l.Rules) != 4 || len(l.Network) != 5 || len(l.Limits) != 5 {
		t.Errorf("the format: %v", err)
	}
	all, err := ParseExpectations("policy.md", []byte(blocks[1]))
	must.OK(t, err)
	for _, e := range all {
		if got, ok := asking().With(l).Met(e, "/p", "/h"); !ok {
			t.Errorf("%s: %s", e.Run+e.Connect+e.Path, got)
		}
	}
}
