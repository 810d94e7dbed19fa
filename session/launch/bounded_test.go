package launch

import (
	"os"
	"path/filepath"
	"testing"

	"stepbox/runner"
	"stepbox/session"
	"stepbox/session/e2e/must"
	"stepbox/session/rules"
)

// What a program may reserve is more than the usual memory, unless a person or a policy
// chose how much memory that is.
func TestReserveOfUsualMemory(t *testing.T) {
	for name, c := range map[string]struct {
		usual, policy   string
		memory, reserve int64
	}{
		"usual":      {"memory", "", 4 << 30, 16 << 30},
		"chosen":     {"pids", "", 4 << 30, 0},
		"a policy's": {"memory", "limits: {memory: 1G}\n", 1 << 30, 0},
	} {
		t.Run(name, func(t *testing.T) {
			project := t.TempDir()
			if c.policy != "" {
				must.OK(t, os.WriteFile(filepath.Join(project, rules.Name), []byte(c.policy), 0o600))
			}
			cfg := session.Config{Workspace: project, Home: t.TempDir(), DataDir: t.TempDir(), Limits: runner.Limits{Memory: 4 << 30}}
			Request{Usual: []string{c.usual}}.bounded(&cfg)
			if got := cfg.Limits; got.Memory != c.memory || got.Reserve != c.reserve {
				t.Errorf("%+v, want %d and %d", got, c.memory, c.reserve)
			}
		})
	}
}
