package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// patience bounds waits for what should happen at once: on a busy machine it
// takes long, and only a test that fails waits for all of it.
const patience = 2 * time.Minute

// follow follows files, and gives a function that waits until what is told of them is
// as it should be.
func follow(t *testing.T, cfg Config) (*Set, func(what string, is func(State) bool)) {
	t.Helper()
	s, err := Open(cfg)
	must.OK(t, err)
	states := make(chan State, 100)
	must.OK(t, s.Follow(func(now State) { states <- now }))
	t.Cleanup(s.Close)
	return s, func(what string, is func(State) bool) {
		t.Helper()
		var last State
		for end := time.After(patience); ; {
			select {
			case last = <-states:
				if is(last) {
					return
				}
			case <-end:
				t.Fatalf("%s wasn't told; the last was %+v", what, last)
			}
		}
	}
}

// What somebody does to the files in whatever way is told, and what can't be used
// leaves what was.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	must.OK(t, os.Mkdir(project, 0o755))
	cfg := Config{User: filepath.Join(dir, "config", "stepbox", "policy.yaml"), Project: filepath.Join(project, Name), Trust: TrustIn(filepath.Join(dir, "data"))}
	_, told := follow(t, cfg)
	rules := func(n int) func(State) bool {
		return func(s State) bool { return s.User.Problem == nil && len(s.User.Layer.Network) == n }
	}
	write := func(file, text string) {
		t.Helper()
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
	}
	write(cfg.User, "network: [{allow: a.example.org}]\n")
	told("a file in folders that came with it", rules(1))
	write(cfg.User+"~", "network: [{allow: a.example.org}, {deny: b.example.org}]\n")
	must.OK(t, os.Rename(cfg.User+"~", cfg.User))
	told("another in its place", rules(2))
	write(cfg.User, "network: [{allow: a.example.org}, {deny: ]\n")
	told("what is wrong", func(s State) bool {
		return s.User.Problem != nil && strings.Contains(s.User.Problem.Error(), "policy.yaml:1:") && len(s.User.Layer.Network) == 2 && len(s.Layers()) == 1
	})
	write(cfg.User, strings.Repeat("# large\n", 1<<20))
	told("that it is large", func(s State) bool { return s.User.Problem != nil && len(s.User.Layer.Network) == 2 })
	must.OK(t, os.RemoveAll(filepath.Dir(filepath.Dir(cfg.User))))
	told("that it is gone", rules(0))
	real := filepath.Join(dir, "dotfiles.yaml")
	write(real, "network: [{allow: a.example.org}]\n")
	must.OK(t, os.MkdirAll(filepath.Dir(cfg.User), 0o755), os.Symlink(real, cfg.User))
	told("a link", rules(1))
	write(real, "network: []\n")
	told("a change of what it leads to", rules(0))

	write(cfg.Project, "network: [{allow: a.example.org}, {deny: b.example.org}]\n")
	told("what holds of the project's", func(s State) bool {
		return !s.Project.Trusted && len(s.Project.Layer.Network) == 1 && s.Project.Loosens()
	})
	must.OK(t, cfg.Trust.Confirm(cfg.Project, Look(cfg).Project.Hash, "me"))
	told("that it is trusted", func(s State) bool { return s.Project.Trusted && len(s.Project.Layer.Network) == 2 })
	any, err := cfg.Trust.Forget(cfg.Project)
	if must.OK(t, err); !any {
		t.Error("nothing was forgotten")
	}
	told("that it isn't", func(s State) bool { return !s.Project.Trusted && len(s.Project.Layer.Network) == 1 })
	must.OK(t, os.Remove(cfg.Project), os.Symlink(real, cfg.Project))
	told("that it is a link now", func(s State) bool { return s.Project.Problem != nil && len(s.Project.Layer.Network) == 1 })
}

// Two that put rules into a file at once don't lose each other's.
func TestTwoAtOnce(t *testing.T) {
	c := Config{User: filepath.Join(t.TempDir(), "stepbox", "policy.yaml")}
	done := make(chan error)
	for _, h := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		go func() {
			done <- c.Add("", api.Rule{Verdict: api.Allow, Host: h + ".example.org", For: api.ExtentAlways})
		}()
	}
	for range 8 {
		must.OK(t, <-done)
	}
	if got := Look(c); got.User.Problem != nil || len(got.User.Layer.Network) != 8 {
		t.Errorf("it has %d rules (%v)", len(got.User.Layer.Network), got.User.Problem)
	}
}

// Whoever can change the person's own policy can change what holds for them, and so it is
// read only where nobody else can, as what it includes is.
func TestOwnPolicyThatOthersCanChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	must.OK(t, os.WriteFile(file, []byte("network: [{allow: a.example.org}]\n"), 0o644))
	must.OK(t, os.Chmod(file, 0o666))
	if now := Look(Config{User: file}).User; now.Problem == nil || len(now.Layer.Network) > 0 {
		t.Errorf("it holds: %+v", now)
	}
}
