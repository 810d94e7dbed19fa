package launch

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
	"stepbox/session/seal"
	"stepbox/store"
	"stepbox/store/storetest"
)

// TestNamesAreDistinct: sessions that start at once in one folder get names of
// their own, and a chosen name is one session's while it lives.
func TestNamesAreDistinct(t *testing.T) {
	r := registryIn(t.TempDir())
	var mu sync.Mutex
	names := make(map[string]bool)
	var all []*announced
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			n := note{Name: "project", Socket: "/s"}
			a, err := r.announce(NewID(), &n, false)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if names[n.Name] {
				t.Errorf("two sessions are called %q", n.Name)
			}
			names[n.Name] = true
			all = append(all, a)
		})
	}
	wg.Wait()
	if !names["project"] || !names["project-20"] {
		t.Errorf("the names are %v", names)
	}
	var refused *Error
	if _, err := r.announce("b", &note{Name: "project-7"}, true); !errors.As(err, &refused) || refused.Code != 2 {
		t.Errorf("a name that is taken: %v", err)
	}
	for _, a := range all {
		if err := a.withdraw(); err != nil {
			t.Error(err)
		}
	}
	a, err := r.announce("c", &note{Name: "project-7"}, true)
	must.OK(t, err)
	if err := a.withdraw(); err != nil {
		t.Error(err)
	}
}

// TestDeadNote: a note whose supervisor died is nobody's word.
func TestDeadNote(t *testing.T) {
	r := registryIn(t.TempDir())
	at := filepath.Join(t.TempDir(), "sock")
	must.OK(t, os.WriteFile(at, nil, 0o600))
	a, err := r.announce("a", &note{Name: "n", Socket: at}, true)
	must.OK(t, err)
	if !r.live("a") || r.find("a").Socket != at {
		t.Error("a live session isn't found")
	}
	must.OK(t, os.Remove(at))
	if r.find("a").Socket != filepath.Join(string(r), "a.sock") {
		t.Error("a session whose run-time folder is gone isn't found")
	}
	a.file.Close() // as the kernel does
	if r.live("a") || r.find("a").Socket != "" {
		t.Error("a dead session is taken for a live one")
	}
	live, dead, err := r.list()
	if err != nil || len(live) != 0 || dead["a"].Name != "n" {
		t.Errorf("live %v, dead %v, %v", live, dead, err)
	}
	for _, id := range []string{"", "..", "../live/a", ".a", "nobody"} {
		if r.live(id) {
			t.Errorf("%q is live", id)
		}
	}
	half := filepath.Join(string(r), ".half") // a start that was killed
	must.OK(t, os.WriteFile(half, nil, 0o600))
	b, err := r.announce("b", &note{Name: "n"}, true)
	if err != nil {
		t.Fatal("the name of a dead session isn't free")
	}
	if _, err := os.Lstat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a note is left: %v", err)
	}
	if err := b.withdraw(); err != nil {
		t.Error(err)
	}
}

// A dead session's note stays until its record is sealed: by it the next command knows that
// this is still to be done.
func TestSealedBeforeForgotten(t *testing.T) {
	dir := filepath.Join(host(t), "data")
	st := storetest.Open(t, dir)
	r := registryIn(dir)
	for _, id := range []string{"dead", "never"} { // it died before it had a row
		mine, err := r.announce(id, &note{Name: id}, true)
		must.OK(t, err)
		defer mine.file.Close()
		if err := unix.Flock(int(mine.file.Fd()), unix.LOCK_UN); err != nil { // as the kernel does
			t.Fatal(err)
		}
	}
	storetest.Begin(t, st, "dead", json.RawMessage(`{"id":"dead","state":"running"}`))
	if _, err := seal.Seal(t.Context(), st, keyIn(dir, st), "dead", seal.Going); err != nil {
		t.Fatal(err)
	}
	newest := func() string {
		docs, err := st.Newest(t.Context(), "dead", store.KindSeal, 1)
		must.OK(t, err)
		return string(docs[0])
	}
	looked := func(sealed bool) {
		t.Helper()
		_, _, err := second(Hub(t.Context()))
		_, gone := os.Lstat(r.path("dead"))
		if is := strings.Contains(newest(), `"by":"after"`); err != nil || is != sealed || errors.Is(gone, fs.ErrNotExist) != sealed {
			t.Errorf("%v: it is sealed: %v; its note: %v", err, is, gone)
		}
	}
	output := filepath.Join(st.SessionDir("dead"), "terminal")
	if err := os.WriteFile(output, nil, 0o600); err != nil { // it can't be packed
		t.Fatal(err)
	}
	looked(false)
	if _, err := os.Lstat(r.path("never")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the note of what isn't there: %v", err)
	}
	must.OK(t, os.Remove(output))
	looked(true)
}

// TestSweepByNote: a note that is left says where its session's folder was, and nothing
// of what else is there goes.
func TestSweepByNote(t *testing.T) {
	dir, beyond := t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	folder := func(name string, files ...string) string {
		for _, f := range files {
			path := filepath.Join(beyond, name, f)
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600))
		}
		old := time.Now().Add(-time.Hour)
		must.OK(t, os.Chtimes(filepath.Join(beyond, name), old, old))
		return filepath.Join(beyond, name)
	}
	mine, another, home := folder("aaaaaaaa", "lock", "guard"), folder("bbbbbbbb", "lock"), folder("projects", "work")
	live := registryIn(dir)
	for _, id := range []string{"aaaaaaaa", "projects"} {
		must.OK(t, os.MkdirAll(string(live), 0o700))
		a, err := live.write(id, note{Name: id, Root: beyond})
		must.OK(t, err)
		if err := a.file.Close(); err != nil { // as when its supervisor dies
			t.Fatal(err)
		}
	}
	dead, clean, err := sweep(t.Context(), dir, live)
	if err != nil || !clean || len(dead) != 2 {
		t.Fatalf("%v, %v, %v", dead, clean, err)
	}
	if _, err := os.Stat(mine); err == nil {
		t.Error("what the session left is there still")
	}
	for _, d := range []string{filepath.Join(another, "lock"), filepath.Join(home, "work")} {
		if _, err := os.Stat(d); err != nil {
			t.Error(err)
		}
	}
}
