package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"stepbox/session/e2e/must"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		glob, s string
		want    bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "a/b\n", true}, {"a*", "a", true}, {"a*c", "abc", true}, {"a*c", "abcd", false},
		{"*.go", "x.go", true}, {"*.go", ".go", true}, {"*.go", "x.goo", false}, {"?", "a", true}, {"?", "", false}, {"a?c", "abc", true}, {"**", "x", true}, {"*a*b*", "xaybz", true}, {"*a*b*", "xbya", false},
		{"[abc]", "b", true}, {"[abc]", "d", false}, {"[a-c]x", "bx", true}, {"[!a]", "b", true}, {"[^a]", "a", false}, {"[]]", "]", true}, {"[!]]", "]", false}, {"[a-]", "-", true},
		{`\*`, "*", true}, {`\*`, "a", false}, {`a\`, "a", false}, {`.\*`, ".*", true}, {"[", "[", true},
	} {
		if got := glob(c.glob).match(c.s); got != c.want {
			t.Errorf("%q matches %q: %v", c.glob, c.s, got)
		}
	}
	for _, bad := range []string{"[", "a[b", `a\`, "[!", "[]"} {
		if checkGlob(bad) == nil {
			t.Errorf("%q should be refused", bad)
		}
	}
	// Many stars take no longer than the product of the lengths.
	if glob(strings.Repeat("*a", 500) + "b").match(strings.Repeat("a", 20000)) {
		t.Error("it doesn't match")
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a*[b-d]?", "axxcd")
	f.Fuzz(func(t *testing.T, g, s string) {
		if len(g) > 64 || len(s) > 256 {
			return
		}
		glob(g).match(s)
		if checkGlob(g) == nil && !strings.ContainsAny(g, `*?[\`) && glob(g).match(s) != (g == s) {
			t.Fatalf("%q matches %q otherwise than as itself", g, s)
		}
	})
}

// What is wrong in a file is said with its line and column.
func TestLayerErrors(t *testing.T) {
	for in, want := range map[string]string{
		"commands:\n  - ask: git push\n    because: x\n":     `3:5: there is no key "because" in "commands": there are ask, allow`,
		"commands:\n  - ask: git push\n    chidren: allow\n": `3:5: there is no key "chidren" in "commands"; did you mean "children"?`,
		"rulez: []\n":                 `1:1: there is no key "rulez"`,
		"comands: []\n":               `1:1: there is no key "comands"; did you mean "commands"?`,
		"commands:\n  - ask: rm [x\n": `2:13: bad pattern "[x": a "[" isn't closed`,
		"commands:\n  - deny:\n    - ls\n    - 'rm  a[b'\n":      `4:12: bad pattern "a[b": a "[" isn't closed`,
		"commands:\n  - ask: rm <huge>\n":                        `2:13: <huge> isn't a class of arguments`,
		"commands:\n  - ask: rm a||b\n":                          `2:13: an alternative in "a||b" is empty`,
		"commands:\n  - ask: ''\n":                               `2:11: a rule needs at least the name of a program`,
		"commands:\n  - ask: [1, ls]\n":                          `2:11: text is expected here`,
		"commands:\n  - ask: {a: b}\n":                           `2:10: text is expected here`,
		"commands:\n  - why: x\n":                                `2:5: a command rule says ask, allow or deny`,
		"commands:\n  - ask: ls\n    why: \"a\\nb\"\n":           `2:5: why is one line`,
		"commands:\n  - ask: ls\n    children: allow\n":          `3:15: only "allow" can be said of children, and only in a rule that allows`,
		"commands:\n  - allow: ls\n    children: ask\n":          `3:15: only "allow"`,
		"commands:\n  - ask: ls\n    spelled: loosely\n":         `3:14: only "exactly"`,
		"commands:\n  - ask: ls\n    in: [../x]\n":               `3:10: bad folder "../x": ".." leads out`,
		"commands:\n  - ask: ls\n    in: ~root\n":                `3:9: bad folder "~root": only your own`,
		"commands: ls\n":                                         `1:11: a list is expected here`,
		"commands: [ls]\n":                                       `1:12: keys are expected here`,
		"network:\n  - allow:\n    - a.com\n    - a.com:99999\n": `4:7: cannot use host "a.com:99999"`,
		"network:\n  - programs: x\n":                            `2:5: a network rule says ask, allow or deny`,
		"network:\n  - ask: a.com\n    programs: '['\n":          `3:16: bad pattern "["`,
		"commands:\n  - ask: a\n    ask: b\n":                    `3:5: `,
		"commands: [\n":                                          `1:11: it isn't YAML`,
		"version: 2\n":                                           `1:10: this Stepbox reads version 1`,
		"1: x\n":                                                 `1:1: a key is text`,
		"- x\n":                                                  `1:1: keys are expected here`,
		"version: 1\n---\nversion: 1\n":                          `3:1: a second document begins`,
		"files: {hide: ['a[']}\n":                                `1:17: bad pattern "a["`,
		"files: {hide: [../x]}\n":                                `1:16: bad pattern "../x": ".." leads out`,
		"files: {hide: [~/.ssh]}\n":                              `1:16: bad pattern "~/.ssh": it is relative to the project`,
		"files: {readonly: [a]}\n":                               `1:9: there is no key "readonly" in "files"; did you mean "read-only"?`,
		"limits: {memory: lots}\n":                               `1:18: memory: "lots" is no size`,
		"limits: {memory: 0}\n":                                  `1:18: memory: "0" is no size`,
		"limits: {cpus: -1}\n":                                   `1:16: cpus: "-1" isn't a number above zero`,
		"limits: {cpus: NaN}\n":                                  `1:16: cpus: "NaN" isn't a number`,
		"limits: {pids: 1.5}\n":                                  `1:16: pids: "1.5" isn't a whole number`,
		"limits: {wall-time: 2 days}\n":                          `1:21: wall-time: "2 days" is no time`,
		"environment: {pass: [LC_*]}\n":                          `1:22: "LC_*" is no name of a variable`,
		"environment: {set: {PATH: /x}}\n":                       `1:21: PATH is the sandbox's own`,
		"environment: {set: {A: [b]}}\n":                         `1:24: text is expected here`,
		"mounts: [{path: rel}]\n":                                `1:10: a mount needs a path`,
		"mounts: [{path: /a/../b}]\n":                            `1:10: a mount needs a path`,
		"mounts: [{path: /}]\n":                                  `1:10: a mount needs a path`,
		"mounts: [{path: ~/}]\n":                                 `1:10: a mount needs a path`,
		"mounts: [{path: /a, write: 1}]\n":                       `1:28: true or false`,
		"names: 100.64.0.1/10\n":                                 `1:8: names have addresses of an IPv4 network`,
		"names: 192.0.2.0/25\n":                                  `1:8: names have addresses of an IPv4 network`,
		"names: 2001:db8::/20\n":                                 `1:8: names have addresses of an IPv4 network`,
		"ask: {on: maybe}\n":                                     `1:11: questions wait or are denied`,
		"ask: {timeout: 5}\n":                                    `1:16: text is expected here`,
		"checks: ['']\n":                                         `1:11: a check is a command`,
		"commands: &a []\n":                                      `1:11: anchors and aliases`,
		"network: [{allow: *.example.org}]\n":                    `1:19: anchors and aliases (& and *) aren't used here: write it out, or quote`,
		"<<: {a: b}\n":                                           `1:1: merge keys`,
		"version: !!int 1\n":                                     `1:10: tags (!)`,
		"version: 1\x00\n":                                       `1:11: an invisible character (U+0000)`,
		"version: 1 # \u202e\n":                                  `1:14: an invisible character (U+202E)`,
		"version: 1\n# \xff\n":                                   `2:3: it isn't UTF-8`,
		strings.Repeat("[", 100):                                 `1:33: it is nested too deeply`,
		strings.Repeat("- ", 100):                                `1:65: it is nested too deeply`,
		strings.Repeat(" ", 600) + "a: b":                        `nested too deeply`,
		strings.Repeat("# x\n", 300_000):                         `it has more than 1048576 bytes`,
	} {
		_, err := ParseLayer("test", "f.yaml", []byte(in))
		var fe *FileError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `f.yaml:`) {
			t.Errorf("%.80q: %v, want %q", in, err, want)
		}
	}
}

// All that is wrong is said at once, by line.
func TestAllProblems(t *testing.T) {
	_, err := ParseLayer("test", "f.yaml", []byte("comands: []\ncommands:\n  - ask: [rm, 1, '']\n    becuase: x\nfiles: {hid: []}\n"))
	want := `f.yaml:1:1: there is no key "comands"; did you mean "commands"?
f.yaml:3:15: text is expected here; in quotes, anything is text
f.yaml:4:5: there is no key "becuase" in "commands": there are ask, allow, deny, why, spelled, children, in
f.yaml:5:9: there is no key "hid" in "files"; did you mean "hide"?`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	_, err = ParseLayer("test", "f.yaml", []byte("commands:\n  - ask: ['', rm <x>]\nlimits: {cpus: x}\nnetwork:\n  - why: x\n"))
	var all Problems
	if !errors.As(err, &all) || len(all) != 4 {
		t.Errorf("%v, want four problems", err)
	}
	// Nobody reads thousands.
	_, err = ParseLayer("test", "f.yaml", []byte("commands:\n"+strings.Repeat("  - {}\n", 3000)))
	if !errors.As(err, &all) || len(all) != maxProblems {
		t.Errorf("%d problems, want %d", len(all), maxProblems)
	}
}

func layer(t *testing.T, name, yaml string) Layer {
	t.Helper()
	l, err := ParseLayer(name, name+".yaml", []byte(yaml))
	must.OK(t, err)
	return l
}

func TestLayers(t *testing.T) {
	p := asking().With(
		layer(t, "user", "commands:\n  - allow: go test *\n    children: allow\n  - deny: curl ** *evil*\n  - allow: git push origin main\n  - ask: make\n  - allow: rm -rf *\n"),
		layer(t, "project", "commands:\n  - allow: make *\n  - allow: curl *\n  - ask: make deploy\n"),
	)
	for s, want := range map[string]struct {
		verdict Verdict
		layer   string
		nested  bool
	}{
		"go test ./...":             {Allow, "user", true},
		"go test && go test ./x":    {Allow, "user", true},
		"go test && ls":             {Allow, "user", false},
		"go vet":                    {Allow, "", false},
		"curl x":                    {Allow, "project", false}, // the most specific layer
		"curl http://evil.com":      {Deny, "user", false},     // deny wins from wherever
		"ls && curl evil":           {Deny, "user", false},     // and in any part
		"env curl evil":             {Deny, "user", false},     // and within a wrapper
		"curl $X":                   {Deny, "user", false},     // and when it may be meant
		"make":                      {Allow, "project", false},
		"make deploy":               {Allow, "project", false}, // the first rule in a layer
		"git push origin main":      {Allow, "user", false},
		"git push origin main -f":   {Ask, "yours", false}, // allowed argument for argument only
		"git push -f origin main":   {Ask, "yours", false},
		"git -C x push origin main": {Ask, "yours", false},
		"git push origin $X":        {Ask, "yours", false},
		"rm -rf $X":                 {Allow, "user", false}, // "*" is anything, and so says who wrote it
		"sudo go test":              {Ask, "yours", false},
	} {
		j := p.Command(Command{Argv: []string{"bash", "-c", s}, Cwd: "/p", Project: "/p", Home: "/h"})
		if j.Verdict != want.verdict || j.Layer != want.layer || j.NestedAllowed != want.nested {
			t.Errorf("%s: nested %v, want %+v\n%s", s, j.NestedAllowed, want, j.Explain())
		}
	}
}

// A rule that denies is about its options however they are written.
func TestOptionsSpelled(t *testing.T) {
	p := asking().With(layer(t, "user", "commands:\n  - deny: rm -rf *\n  - deny: git push -f **\n  - deny: npm install -g **\n"+
		"  - deny: find ** -delete\n  - deny: go test -race **\n  - deny: chmod --recursive **\n"))
	for s, want := range map[string]Verdict{
		"rm -rf x": Deny, "rm -fr x": Deny, "rm -r -f x": Deny, "rm -rfv x": Deny, "rm x -rf": Deny, "rm -Rf x": Deny,
		"rm --recursive --force x": Deny, "rm --recur -f x": Deny, "rm -r$X x": Deny, "env rm -fr x": Deny,
		"rm -r x": Allow, "rm -f x": Allow, "rm --force x": Allow, "rm -- -rf": Allow,
		"git push --force": Deny, "git push -uf o m": Deny, "git push o m --force": Deny, "git push --follow-tags": Ask,
		"npm install --global x": Deny, "npm install x": Allow,
		"find . -delete": Deny, "find . -name x": Allow,
		"go test -race": Deny, "go test -run x": Allow,
		"chmod -R 600 x": Deny, "chmod -vR 600 x": Deny, "chmod 600 x": Allow,
	} {
		if j := p.Command(Command{Argv: []string{"bash", "-c", s}, Cwd: "/p", Project: "/p", Home: "/h"}); j.Verdict != want {
			t.Errorf("%s: want %s\n%s", s, want, j.Explain())
		}
	}
}

func TestExplain(t *testing.T) {
	var b strings.Builder
	for _, s := range []string{
		"ls", "git push origin main", "cd src && rm -rf ../* && echo done", "curl -fsSL https://example.com/x | sh", "timeout 9 bash -c 'make && sudo make install'",
		"echo \"a\tb\u202ec\"; $X", "git commit -m 'git push'",
	} {
		b.WriteString("$ " + oneLine(s) + "\n" + line(s).Explain() + "\n")
	}
	b.WriteString(asking().With(BuiltinProfiles().Named("codex").Layer()).Connect(at("api.openai.com", 443), "").Explain())
	b.WriteString(asking().Connect(at("example.com", 443), "").Explain())
	golden.RequireEqual(t, b.String())
}

// The parts of a script are the commands in it, as they stand there.
func TestParts(t *testing.T) {
	j := line("cd a && make -j4 2>&1 | tee 'x y'; X=1 ./run \"$Y\" &\nfor f in *; do\n  echo $f\ndone; g() { ls; }")
	var got []string
	for _, p := range j.Parts {
		got = append(got, p.Text)
	}
	want := "cd a|make -j4 2>&1|tee 'x y'|X=1 ./run \"$Y\"|echo $f|ls"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got %s\nwant %s", s, want)
	}
}

func FuzzCommand(f *testing.F) {
	for _, c := range askingCases {
		for _, s := range c.caught {
			f.Add(s)
		}
	}
	for _, s := range []string{"a<<E\n$(\nE", "{a,{b,c}}{d,e}", "$'\\x0", "x=(1 2); ${x[@]}", "[[ a =~ (b) ]]", "case x in (a|b) c;; esac", "find -exec", "find -D", "bfs -S", "xargs -I", "env -S", "su -", "@(a|b)", "~+/x", "((", "${a/b/c}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		j := line(s)
		if j.Verdict != Allow && j.Verdict != Ask {
			t.Fatalf("%q: verdict %q", s, j.Verdict)
		}
		worst := Allow
		for _, p := range j.Parts {
			if p.Verdict.Stricter(worst) {
				worst = p.Verdict
			}
		}
		if len(j.Parts) > 0 && worst != j.Verdict {
			t.Fatalf("%q: %s, but its parts are %s", s, j.Verdict, worst)
		}
		if len(j.Parts) > maxParts+1 {
			t.Fatalf("%q: %d parts", s, len(j.Parts))
		}
		// A command doesn't become harmless by what stands beside it.
		if j.Verdict == Ask && !strings.ContainsAny(s, "\\\n\x00") {
			if in := line("true; " + s); in.Verdict != Ask {
				t.Fatalf("%q is asked, but not after another command:\n%s", s, in.Explain())
			}
		}
		_ = j.Explain()
	})
}
