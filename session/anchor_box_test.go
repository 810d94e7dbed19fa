package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/runner"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store/storetest"
)

// inHome starts a session whose project, and a tool, are in the home that others have as well.
func inHome(t *testing.T, prepare func(kept string), script string) *world {
	t.Helper()
	return startConfigured(t, func(string) {}, func(c *session.Config) {
		c.Mode = api.ModeWatch
		c.Workspace = filepath.Join(c.Home, "src", "deep", "project")
		tools := filepath.Join(c.Home, ".local", "bin")
		kept := filepath.Join(c.DataDir, "homes", "generic")
		for _, dir := range []string{c.Workspace, tools, kept} {
			must.OK(t, os.MkdirAll(dir, 0o700))
		}
		must.OK(t, os.WriteFile(filepath.Join(tools, "tool"), []byte("#!/bin/sh\n"), 0o700))
		c.Env = []string{"PATH=" + tools + ":/usr/bin:/bin"}
		prepare(kept)
	}, "bash", "-c", script)
}

// The folders above the project and the tools can't be moved away, so nobody puts others in their place.
func TestFoldersAboveMountsStay(t *testing.T) {
	t.Parallel()
	w := inHome(t, func(string) {}, `cd; exec >/tmp/said 2>&1; for d in src src/deep src/deep/project .local .local/bin; do mv $d $d.old && echo $d moved; rmdir $d && echo $d gone; done
		mkdir -p .local/share/x && mv .local/share/x .local/y && ls .local/y && echo done >src/deep/project/done; sleep 60`)
	w.happened("the change", func(e api.Event) bool { return e.Action != nil && e.Action.Kind == api.KindEdit })
	said, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "tmp", "said"))
	must.OK(t, err)
	if out := string(said); strings.Contains(out, "moved") || strings.Contains(out, "gone") || strings.Count(out, "busy") != 10 {
		t.Errorf("%s", out)
	}
}

// What another session of the home takes away from below a mount ends the session: what is at its path isn't the project any more.
func TestAnotherSessionTakesTheProjectAway(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{"src/deep/project", ".local/bin"} {
		t.Run(gone, func(t *testing.T) {
			t.Parallel()
			var home string
			w := inHome(t, func(kept string) { home = kept }, "sleep 60")
			must.OK(t, os.Remove(filepath.Join(home, gone))) // nothing is mounted there on the host, as in other sandboxes
			end := w.happened("the end", func(e api.Event) bool { return e.Kind == "session.ended" })
			if !strings.Contains(end.Session.Reason, "isn't where it belongs") || !strings.Contains(end.Session.Reason, gone) {
				t.Errorf("it ended because of %q", end.Session.Reason)
			}
		})
	}
}

// A link that an earlier session has left has nothing mounted elsewhere.
func TestLinksBelowMounts(t *testing.T) {
	t.Parallel()
	for _, at := range []string{".local", ".local/bin", "src"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			outside := t.TempDir()
			dir := t.TempDir()
			home, data, run := filepath.Join(dir, "home"), filepath.Join(dir, "data"), filepath.Join(dir, "run")
			project, tools, kept := filepath.Join(home, "src", "project"), filepath.Join(home, ".local", "bin"), filepath.Join(data, "homes", "generic")
			for _, d := range []string{project, tools, kept, run, filepath.Dir(filepath.Join(kept, at))} {
				must.OK(t, os.MkdirAll(d, 0o700))
			}
			must.OK(t, os.WriteFile(filepath.Join(tools, "tool"), []byte("#!/bin/sh\n"), 0o700))
			must.OK(t, os.Symlink(outside, filepath.Join(kept, at)))
			must.OK(t, os.Chmod(data, 0o700))
			_, err := session.Start(t.Context(), storetest.Open(t, data), session.Config{
				ID: newID(), Name: "t", Workspace: project, Home: home, Argv: []string{"true"}, Env: []string{"PATH=" + tools + ":/usr/bin:/bin"},
				Cols: 80, Rows: 24, DataDir: data, RunDir: run, Mode: api.ModeWatch,
			})
			if err == nil || !errors.Is(err, runner.ErrMounts) && !strings.Contains(err.Error(), "too many levels of symbolic links") {
				t.Errorf("it started, or: %v", err)
			}
			if left, _ := os.ReadDir(outside); len(left) != 0 {
				t.Errorf("outside there is %v", left)
			}
		})
	}
}
