package session

import (
	"strings"
	"testing"

	"stepbox/session/api"
)

// What a tool is to be given is in the question about it, or the question says that it isn't.
func TestMayUse(t *testing.T) {
	t.Parallel()
	long := "ls " + strings.Repeat("a", 700) + "; rm -rf x"
	for want, c := range map[string]api.Claim{
		"may it use Bash: " + long:    {Tool: "Bash", Command: long, Input: "{}"},
		"may it use Edit: /a, /b":     {Tool: "Edit", Paths: []string{"/a", "/b"}, Input: "{}"},
		"may it use mcp: {":           {Tool: "mcp", Input: "{"},
		"may it use mcp: {… and more": {Tool: "mcp", Input: "{", Cut: true},
		"may it use Bash: " + strings.Repeat("a", maxGiven) + "… and 3 bytes more": {Tool: "Bash", Command: strings.Repeat("a", maxGiven+3)},
	} {
		if got := mayUse(&c); got != want {
			t.Errorf("it is asked %.900q", got)
		}
	}
}
