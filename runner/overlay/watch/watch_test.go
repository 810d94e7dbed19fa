package watch

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
)

// waiting is a watcher whose wakes a test waits for.
type waiting struct {
	t     *testing.T
	w     *Watcher
	wakes chan Wake
}

func watch(t *testing.T, upper string) *waiting {
	t.Helper()
	quick(t)
	x := &waiting{t: t, wakes: make(chan Wake, 100)} // more than any test causes; further ones are dropped
	w, err := New(upper, func(k Wake) {
		select {
		case x.wakes <- k:
		default:
		}
	})
	must(t, err)
	x.w = w
	t.Cleanup(func() { must(t, w.Close()) })
	x.until("the first wake", func(k Wake) bool { return true })
	return x
}

// until waits for a wake that f says yes to.
func (x *waiting) until(what string, f func(Wake) bool) {
	x.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case k := <-x.wakes:
			if f(k) {
				return
			}
		case <-deadline:
			x.t.Fatalf("no wake for %s", what)
		}
	}
}

// What can't be watched is said, and looked at at intervals instead.
func TestWatchFallback(t *testing.T) {
	dir := t.TempDir()
	for i := range 8 {
		must(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755))
	}
	set(t, &maxWatches, 4)
	x := watch(t, dir)
	if st := x.w.State(); st.Watched != 4 || !strings.Contains(st.Why, "too many") {
		t.Fatalf("state %+v", st)
	}
	for range 3 {
		x.until("a full wake", func(k Wake) bool { return k.Full && len(k.Dirs) == 0 && k.State.Why != "" })
	}
}

func TestWatchFallbackWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may watch everything")
	}
	locked := t.TempDir()
	must(t, os.Mkdir(filepath.Join(locked, "d"), 0))
	x := watch(t, locked)
	if st := x.w.State(); st.Watched != 1 || st.Why == "" {
		t.Fatalf("state %+v", st)
	}
	x.until("a full wake", func(k Wake) bool { return k.Full })
}

// Lost events become a full wake, and the watches stand afterwards.
func TestWatchOverflow(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	x := watch(t, dir)
	// A queue of the usual length takes too long to fill; the error is the same.
	x.w.in.Errors <- fsnotify.ErrEventOverflow
	x.until("a full wake", func(k Wake) bool { return k.Full && k.State.Watched == 2 && k.State.Why == "" })
	must(t, os.WriteFile(filepath.Join(dir, "d/file"), nil, 0o644))
	x.until("the file", func(k Wake) bool { return slices.Contains(k.Dirs, "d") })
	w := &Watcher{dirty: map[string]bool{}}
	for i := range maxDirty + 1 {
		w.full = false
		w.mark(fmt.Sprint(i))
	}
	if !w.full {
		t.Error("the list of directories has no bound")
	}
}

// A directory swapped for a link must not lead a watch to the host's files.
func TestWatchAttackLink(t *testing.T) {
	dir, target := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(target, "sub"), 0o755), os.Symlink(target, filepath.Join(dir, "link")))
	x := watch(t, dir)
	if err := func() error { _, err := x.w.addOne("link"); return err }(); !inode.Gone(err) {
		t.Errorf("a link was watched: %v", err)
	}
	if err := func() error { _, err := x.w.addOne("link/sub"); return err }(); !inode.Gone(err) {
		t.Errorf("a directory behind a link was watched: %v", err)
	}
	if st := x.w.State(); st.Watched != 1 {
		t.Errorf("state %+v", st)
	}
}

// quick lets watchers wake soon.
func quick(t *testing.T) {
	set(t, &debounce, time.Millisecond)
	set(t, &rescanning, 20*time.Millisecond)
}

// However directories are made, moved, removed and put in each other's places,
// what happens in one afterwards is told of it by its path.
func TestWatchFollowsMoves(t *testing.T) {
	dir := t.TempDir()
	x := watch(t, dir)
	rnd := rand.New(rand.NewPCG(1, 2))
	name := func() string {
		parts := make([]string, 1+rnd.IntN(3))
		for i := range parts {
			parts[i] = string(rune('a' + rnd.IntN(4)))
		}
		return filepath.Join(dir, filepath.Join(parts...))
	}
	for round := range 20 {
		for range 30 { // many fail
			switch rnd.IntN(4) {
			case 0, 1:
				_ = os.MkdirAll(name(), 0o755)
			case 2:
				_ = os.Rename(name(), name())
			case 3:
				_ = unix.Renameat2(unix.AT_FDCWD, name(), unix.AT_FDCWD, name(), unix.RENAME_EXCHANGE)
			}
			if rnd.IntN(8) == 0 {
				_ = os.RemoveAll(name())
			}
		}
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			rel := strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
			file := filepath.Join(path, "file")
			must(t, os.WriteFile(file, fmt.Append(nil, round), 0o644))
			x.until(fmt.Sprintf("%q in round %d", rel, round), func(k Wake) bool {
				return slices.Contains(k.Dirs, rel) || k.Full
			})
			return nil
		}))
	}
}

// A name that was let go isn't given out again at once: an event may still be
// on its way that has it.
func TestWatchNamesTakeTurns(t *testing.T) {
	dir := t.TempDir()
	x := watch(t, dir)
	root, last := x.w.in.WatchList(), ""
	for range 20 {
		must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
		x.until("the directory", func(k Wake) bool { return k.State.Watched == 2 })
		names := slices.DeleteFunc(x.w.in.WatchList(), func(name string) bool { return name == root[0] })
		if len(names) != 1 || names[0] == last {
			t.Fatalf("%q after %q", names, last)
		}
		last = names[0]
		must(t, os.Remove(filepath.Join(dir, "d")))
		x.until("its end", func(k Wake) bool { return k.State.Watched == 1 })
	}
}
