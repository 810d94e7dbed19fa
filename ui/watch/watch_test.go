package watch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func told(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, open := <-ch:
		if !open {
			t.Fatalf("%s: the watch ended", what)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s wasn't told", what)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	must.OK(t, os.WriteFile(path, []byte("x"), 0o600))
}

// A folder may come, go and come again.
func TestFoldersComeAndGo(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "config", "themes")
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := Folders(ctx, dir)
	must.OK(t, err)
	for range 2 {
		must.OK(t, os.MkdirAll(dir, 0o700))
		told(t, ch, "the folder")
		write(t, filepath.Join(dir, "dark.yaml"))
		told(t, ch, "a file")
		must.OK(t, os.Rename(filepath.Join(dir, "dark.yaml"), filepath.Join(dir, "light.yaml")))
		told(t, ch, "a new name")
		must.OK(t, os.RemoveAll(filepath.Join(top, "config")))
		told(t, ch, "the end of the folder")
	}
	cancel()
	for range ch {
	}
}

// What goes on beside a folder is nobody's business, in the folders above it either.
func TestMatters(t *testing.T) {
	for name, want := range map[string]bool{
		"/c/s/themes/dark.yaml": true, "/c/s/themes": true, "/c/s": true, "/c": true,
		"/c/s/other": false, "/c/other": false, "/c/s/themes/deep/er": false, "/c/s/themes2": false,
	} {
		if got := matters(fsnotify.Event{Name: name, Op: fsnotify.Create}, []string{"/c/s/themes"}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if matters(fsnotify.Event{Name: "/c/f", Op: fsnotify.Chmod}, []string{"/c"}) {
		t.Error("another mode is told")
	}
}

func TestFoldersThatCannotBeWatched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file)
	if ch, err := Folders(t.Context(), filepath.Join(file, "themes")); err == nil {
		t.Errorf("a folder in a file is watched: %v", ch)
	}
}
