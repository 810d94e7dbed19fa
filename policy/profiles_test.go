package policy

import (
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// A person's own profile is for one kind of agent, and says so.
func TestOwnProfile(t *testing.T) {
	for text, want := range map[string]string{
		"name: mine\nmatch: {programs: [my-agent.py]}":                         "",
		"name: mine\nmatch: {paths: ['*/agent/run.js'], interpreters: [node]}": "",
		"name: claude\nmatch: {programs: [claude]}":                            "", // in place of the built-in
		"name: mine\nwants: [MY_KEY]\nsecret: [ODD]\nmatch: {programs: [a]}":   "",
		"":                                      `mine.yaml: a profile needs a name`,
		"name: ../x\nmatch: {programs: [a]}":    `and not "../x"`,
		"name: Mine\nmatch: {programs: [a]}":    `and not "Mine"`,
		"name: generic\nmatch: {programs: [a]}": "generic is of programs that no profile is for",
		"name: mine":                            "it has to say in match: which programs",
		"name: mine\nmatch: {programs: ['*']}":  `not "*": patterns are for paths`,
		"name: mine\nmatch: {programs: ['']}":   `not ""`,
		"name: mine\nmatch: {programs: [/a/b]}": `not "/a/b"`,
		"name: mine\nmatch: {programs: [bash]}": "bash runs all sorts of scripts",
		"name: mine\nmatch: {programs: [python3.12], interpreters: [python3.12]}": "python3.12 runs all sorts of scripts",
		"name: mine\nmatch: {programs: [x], interpreters: [x]}":                   "x runs all sorts of scripts",
		"name: mine\nmatch:\n  paths: ['*']":                                      `mine.yaml:3:12: "*" matches every program`,
		"name: mine\nmatch: {paths: ['/usr/**']}":                                 `"/usr/**" matches every program`,
		"name: mine\nmatch: {paths: ['']}":                                        `"" matches every program`,
		"name: mine\nmatch: {paths: ['/usr/bin/node']}":                           "runs all sorts of scripts",
		"name: mine\nmatch: {programs: [a]}\npass: [HOME]":                        "HOME is the sandbox's own",
		"name: mine\nmatch: {programs: [a]}\nenv: {LD_PRELOAD: x}":                "LD_PRELOAD has every program load",
		"name: mine\nmatch: {programs: [a]}\nhoust: [x]\nargs: 3":                 "mine.yaml:3:1: there is no key \"houst\"",
	} {
		p, err := OwnProfile("mine.yaml", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if p == nil {
			t.Errorf("%q: not even what could be read is known", text)
		}
	}
}

// A person's own go first, and none of them over another of theirs.
func TestProfiles(t *testing.T) {
	own := func(name, match string) *Profile {
		p, err := OwnProfile("/c/"+name+".yaml", []byte("name: "+name+"\nagent: true\nmatch: "+match))
		must.OK(t, err)
		return p
	}
	claude, mine, other := own("claude", "{programs: [claude]}"), own("mine", "{programs: [codex, both]}"), own("other", "{programs: [both], interpreters: [sh]}")
	ps := BuiltinProfiles().With(claude, mine, other)
	for _, c := range []struct {
		argv, file string
		want       *Profile
		clash      string
	}{
		{"claude", "/usr/bin/claude", claude, ""},
		{"codex", "/usr/bin/codex", mine, ""},
		{"aider", "/usr/bin/aider", BuiltinProfiles().Named("aider"), ""},
		{"ls", "/usr/bin/ls", BuiltinProfiles().Named(""), ""},
		{"both", "/usr/bin/both", mine, "/c/mine.yaml and /c/other.yaml are both for this program"},
		{"sh /x/both", "/usr/bin/sh", other, ""},
	} {
		argv := strings.Fields(c.argv)
		if got := ps.For(argv, c.file); got != c.want {
			t.Errorf("%s is %s, want %s", c.argv, got.Name, c.want.Name)
		}
		if err := ps.Clash(argv, c.file); (err == nil) != (c.clash == "") || err != nil && !strings.Contains(err.Error(), c.clash) {
			t.Errorf("%s: %v, want %q", c.argv, err, c.clash)
		}
	}
	if ps.Named("claude") != claude || ps.Named("nobody") != nil || len(ps.All()) != len(BuiltinProfiles().All())+2 {
		t.Errorf("%s", ps.Names())
	}
	var none *Profiles
	if none.For([]string{"claude"}, "") != BuiltinProfiles().Named("claude") {
		t.Error("no set isn't the built-in one")
	}
}

// A profile that can't be used may be an agent's if it matches it, or if that isn't known.
func TestMayBe(t *testing.T) {
	for text, want := range map[string][2]bool{ // of my-agent, of ls
		"name: mine\nmatch: {programs: [my-agent]}\nnonsense: 1": {true, false},
		"name: mine\nmatch: {programs: ['*']}":                   {true, true},
		"name: mine\nmatch: [}":                                  {true, true},
		"match: {programs: [my-agent]}":                          {true, false},
	} {
		p, err := OwnProfile("mine.yaml", []byte(text))
		got := [2]bool{p.MayBe([]string{"my-agent"}, "/x/my-agent"), p.MayBe([]string{"ls"}, "/bin/ls")}
		if err == nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}
