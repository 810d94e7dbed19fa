package judge

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// Of a home that is a view of another, what earlier agents wrote there is theirs, what this
// one wrote is this one's, and nothing is taken for the system's.
func TestAHomeOfTwoLayers(t *testing.T) {
	upper, below := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(upper, ".bashrc"), filepath.Join(below, "old"), filepath.Join(below, "gone/x"), filepath.Join(below, ".zshrc")} {
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.OK(t, os.WriteFile(file, nil, 0o600))
	}
	if err := unix.Mknod(filepath.Join(upper, "gone"), unix.S_IFCHR, 0); err != nil {
		t.Skip("this filesystem has no whiteouts:", err)
	}
	p := Places{Project: "/p", Upper: t.TempDir(), Home: "/home/me", HomeDir: upper, HomeBelow: below, Began: time.Now().Add(-time.Hour)}
	for name, want := range map[string]bool{".bashrc": true, "old": true, "gone/x": true, "none": false} {
		if got := p.look("/home/me/" + name).made(); got != want {
			t.Errorf("an agent made %s: %v", name, got)
		}
	}
	if p.HomeDir = t.TempDir(); p.look("/home/me/old").made() != true {
		t.Error("what is below counts only beside what is above")
	}
	// Of the home that others share, what is older than the session is theirs; in its own it
	// is this session's, also when that goes on later.
	p.HomeDir = upper
	if p.Began = time.Now().Add(time.Hour); len(p.Traps()) != 1 {
		t.Errorf("traps are %q", p.Traps())
	}
	p.HomeDir, p.HomeBelow = below, ""
	for began, want := range map[time.Duration]int{-time.Hour: 1, time.Hour: 0} {
		p.Began = time.Now().Add(began)
		if got := p.Traps(); len(got) != want {
			t.Errorf("traps are %q, want %d", got, want)
		}
	}
	for rel, want := range map[string]bool{".bashrc": true, ".config/git/config": true, ".vim/x": true, ".bashrc2": false, "x/.bashrc": false} {
		if Obeyed(rel) != want {
			t.Errorf("%s is obeyed: %v", rel, !want)
		}
	}
}
