package cli

import (
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"stepbox/session/e2e/must"
)

// Whoever lingers isn't told that logging out ends what runs on.
func TestLingers(t *testing.T) {
	folder := t.TempDir()
	if lingers(folder) || lingers(filepath.Join(folder, "none")) {
		t.Error("nobody lingers")
	}
	me, err := user.Current()
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(folder, me.Username), nil, 0o644))
	if !lingers(folder) {
		t.Error("not found")
	}
}
