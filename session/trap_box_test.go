package session_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// What a command writes where programs obey it, in the home that later sessions have, is
// told as it ends, whatever the command is called; it is told at the session's end too, and goes
// back to what it was.
func TestATrapInAKeptHomeIsToldAndTakenBack(t *testing.T) {
	t.Parallel()
	const was = "# as it was\n"
	kept := func(w *world) string { return filepath.Join(w.config.DataDir, "homes", "generic") }
	w := startConfigured(t, func(project string) {
		dir := filepath.Join(filepath.Dir(project), "data", "homes", "generic")
		must.OK(t, os.MkdirAll(dir, 0o700))
		must.OK(t, os.WriteFile(filepath.Join(dir, ".bashrc"), []byte(was), 0o600))
		must.OK(t, os.WriteFile(filepath.Join(dir, ".vimrc"), []byte(was), 0o600))
	}, func(c *session.Config) { c.Mode = api.ModePolicy }, "bash", "-c",
		`python3 -c 'import os; open(os.path.expanduser("~/.bashrc"), "a").write("trap\n"); os.mkdir(os.path.expanduser("~/.config")); os.mkdir(os.path.expanduser("~/.config/fish")); open(os.path.expanduser("~/.config/fish/config.fish"), "w").write("trap\n"); os.remove(os.path.expanduser("~/.vimrc")); open(os.path.expanduser("~/notes"), "w")'; read x`)
	w.happened("a word on it, and no question", func(e api.Event) bool {
		if e.Question != nil {
			t.Errorf("it asks about %s", e.Question.Title)
		}
		return e.Note != nil && e.Note.Warn && strings.Contains(e.Note.Text, "/.bashrc") && strings.Contains(e.Note.Text, "rollback --home "+w.ID())
	})
	plan := func(paths ...string) api.RollbackRequest {
		t.Helper()
		target := home(paths...)
		p, err := w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: target})
		w.must(err)
		var names []string
		for _, f := range p.Files {
			names = append(names, f.Path)
		}
		want := []string{".bashrc", ".config/fish/config.fish", ".vimrc"}
		if len(paths) > 0 {
			want = paths
		}
		if !slices.Equal(names, want) {
			t.Errorf("of %q it takes back %q", paths, names)
		}
		return api.RollbackRequest{RollbackTarget: target, Hash: p.Hash, By: "test"}
	}
	all := plan()
	must.OK(t, os.WriteFile(filepath.Join(kept(w), ".bashrc"), []byte("another trap\n"), 0o600))
	if _, err := w.Rollback(t.Context(), all); code(err) != api.CodeStale {
		t.Errorf("it took back what nobody was shown: %v", err)
	}
	_, err := w.Rollback(t.Context(), plan(".bashrc"))
	w.must(err)
	must.OK(t, os.Remove(filepath.Join(kept(w), ".config/fish/config.fish")))
	must.OK(t, os.Symlink("../../notes", filepath.Join(kept(w), ".config/fish/config.fish")))
	_, err = w.Rollback(t.Context(), plan(".config/fish/config.fish"))
	w.must(err)
	if text, err := os.ReadFile(filepath.Join(kept(w), ".bashrc")); err != nil || string(text) != was {
		t.Errorf("it is %q (%v)", text, err)
	}
	if _, err := os.Lstat(filepath.Join(kept(w), ".config/fish/config.fish")); err == nil {
		t.Error("what wasn't there is there")
	}
	if _, err := os.Lstat(filepath.Join(kept(w), "notes")); err != nil {
		t.Errorf("what nothing obeys is gone: %v", err)
	}
	_, err = w.Kill(t.Context())
	w.must(err)
	w.happened("what is left", func(e api.Event) bool {
		return e.Note != nil && strings.Contains(e.Note.Text, "1 file changed in its home") && strings.Contains(e.Note.Text, "~/.vimrc")
	})
}

// A file that was told is told again once it is another, and so is one that is gone.
func TestATrapIsToldAgain(t *testing.T) {
	t.Parallel()
	w := startConfigured(t, func(project string) {
		dir := filepath.Join(filepath.Dir(project), "data", "homes", "generic")
		must.OK(t, os.MkdirAll(dir, 0o700))
		must.OK(t, os.WriteFile(filepath.Join(dir, ".gitconfig"), nil, 0o600))
	}, func(c *session.Config) { c.Mode = api.ModePolicy }, "bash", "-c",
		`perl -e 'open F, ">>", "$ENV{HOME}/.bashrc"; print F "alias\n"'; read x; perl -e 'open F, ">>", "$ENV{HOME}/.bashrc"; print F "trap\n"'; read x; rm ~/.gitconfig; read x`)
	var after uint64
	for _, file := range []string{"~/.bashrc", "~/.bashrc", "~/.gitconfig"} {
		after = w.happened(file, func(e api.Event) bool {
			return e.Seq > after && e.Note != nil && strings.Contains(e.Note.Text, "is another by now: "+file+";")
		}).Seq
		w.enter()
	}
}
