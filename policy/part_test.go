package policy

import (
	"strings"
	"testing"
)

// What a push by HTTP has git pack is part of it; what connects by itself isn't, however
// that is said.
func TestPacks(t *testing.T) {
	for line, want := range map[string]bool{
		"git send-pack --stateless-rpc --helper-status --thin --no-progress https://example.org/a.git/ --stdin": true,
		"git send-pack --stateless-rpc --force-with-lease=main:0a1b --push-option=ci.skip x":                    true,
		"git send-pack --stateless-rpc --no-stateless-rpc --force origin main":                                  false,
		"git send-pack --stateless-rpc --no-state origin main":                                                  false,
		"git send-pack --stateless-rpc origin main --no-st":                                                     false,
		"git send-pack --stateless-rpc --receive-pack=sh origin":                                                false,
		"git send-pack --stateless-rpc -f origin":                                                               false,
		"git send-pack origin --stateless-rpc":                                                                  false,
		"git send-pack":                                                                                         false,
	} {
		argv := strings.Fields(line)
		j := Builtin().Command(Command{Argv: argv, Program: "/usr/bin/git"})
		if got := j.Packs(argv, "/usr/bin/git"); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
