package session

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A sourced file is the agent's own housekeeping's when that was told to make
// it, not when any other housekeeping happened to run meanwhile.
func TestSuspect(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "snapshot.sh"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Session{cfg: Config{Workspace: "/project"}, places: &places{home: "/home/me", homeDir: home, began: time.Now()}}
	at := span{from: time.Now().Add(-time.Hour), to: time.Now().Add(time.Hour)}
	for script, want := range map[string]bool{"": true, "F=/home/me/other.sh": true, "F=/home/me/snapshot.sh\n": false} {
		at.script = script
		s.upkeep = []span{at}
		if got := s.suspect("/home/me/snapshot.sh"); got != want {
			t.Errorf("made while %q ran, suspect: %v", script, got)
		}
	}
	if !s.suspect("/project/snapshot.sh") {
		t.Error("a file of the project isn't suspect")
	}
}
