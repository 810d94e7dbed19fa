package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// TestHookFiles: what an agent reads of its hooks is what it can read, and names no
// program but Stepbox's.
func TestHookFiles(t *testing.T) {
	for _, p := range BuiltinProfiles().All() {
		files, _ := p.Hooks()
		for name, text := range files {
			if strings.HasPrefix(name, "/") || strings.Contains(name, "..") {
				t.Errorf("%s: %q isn't below /etc", p.Name, name)
			}
			if strings.HasSuffix(name, ".json") && !json.Valid([]byte(text)) {
				t.Errorf("%s: %s isn't JSON", p.Name, name)
			}
			if !strings.Contains(text, "/run/stepbox/bin/stepbox") {
				t.Errorf("%s: %s doesn't run Stepbox's program", p.Name, name)
			}
		}
	}
}

// Qwen Code gives up waiting for a hook after 60 seconds, whatever its timeout is, and
// shows its own prompt: a question that was open for longer would take an answer that
// reaches nobody.
func TestQwenWaitsAMinuteAtMost(t *testing.T) {
	files, _ := BuiltinProfiles().Named("qwen").Hooks()
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Timeout int `json:"timeout"`
			} `json:"hooks"`
		} `json:"hooks"`
	}
	must.OK(t, json.Unmarshal([]byte(files["qwen-code/settings.json"]), &settings))
	for name, groups := range settings.Hooks {
		if ms := groups[0].Hooks[0].Timeout; ms <= 0 || ms >= 60_000 {
			t.Errorf("%s may take %d ms", name, ms)
		}
	}
}
