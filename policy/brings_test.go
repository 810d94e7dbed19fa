package policy

import (
	"strings"
	"testing"
)

func TestBrings(t *testing.T) {
	for in, want := range map[string]string{
		"texts: [a/b, .c/]": "",
		"settings: [{file: .x/a.json, only: [a], own: [b]}]": "",
		"at: {X_HOME: .x}":                              "",
		"texts: [/etc/passwd]":                          "f.yaml:3:11: \"/etc/passwd\" isn't brought",
		"texts: [../x]":                                 "plain path",
		"texts: [a/../../x]":                            "plain path",
		"texts: ['']":                                   "plain path",
		"texts: [./]":                                   "plain path",
		"texts: [.ssh/config]":                          "secrets",
		"texts: [.claude/.ssh/]":                        "secrets",
		"texts: [.docker/config.json]":                  "secrets",
		"texts: [.codex/auth.json]":                     "secrets",
		"settings: [{file: .claude/.credentials.json}]": "secrets",
		"settings: [{file: .claude/settings}]":          "neither JSON",
		"settings: [{file: ../a.json}]":                 "plain path",
		"settings: [{fil: a.json}]":                     "there is no key",
		"at: {X: /x}":                                   "can't be elsewhere",
		"texts: [a/b, a/id_ed25519]":                    "secrets",
	} {
		_, err := ParseProfile("f.yaml", []byte("name: x\nbrings:\n  "+in+"\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	b := BuiltinProfiles().Named("claude").Brings()
	if len(b.Texts) == 0 || b.Settings[1].Only[0] != "mcpServers" || b.At["CLAUDE_CONFIG_DIR"] != ".claude" {
		t.Errorf("%+v", b)
	}
}
