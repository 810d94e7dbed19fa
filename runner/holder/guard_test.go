package holder

import (
	"os"
	"path/filepath"
	"testing"

	"stepbox/session/e2e/must"
)

// The cgroups that the session made below a sandbox's go with it.
func TestGuardRemovesGroups(t *testing.T) {
	dir := t.TempDir()
	agent := filepath.Join(dir, "box", "agent")
	for _, group := range []string{"1-1", "2-1"} {
		must.OK(t, os.MkdirAll(filepath.Join(agent, group), 0o755))
	}
	guard := Guard{Cgroups: []string{agent, filepath.Dir(agent)}}
	must.OK(t, guard.Clean(t.Context(), -1))
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}
