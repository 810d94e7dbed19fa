package watch

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
)

// waiting is a watcher whose calls a test waits for.
type waiting struct {
	t     *testing.T
	w     *Watcher
	wakes chan state
}

// state is what a watcher watched when it called.
type state struct {
	dirs    map[string]uint64 // their inodes by path
	partial bool
}

func watch(t *testing.T, upper string) *waiting {
	t.Helper()
	quick(t)
	x := &waiting{t: t, wakes: make(chan state, 100)} // more than any test causes; further ones are dropped
	made := make(chan struct{})
	w, err := New(upper, func() { // in the goroutine that what it looks at belongs to
		<-made
		now := state{map[string]uint64{}, x.w.partial}
		for path, d := range x.w.byPath {
			now.dirs[path] = d.inode
		}
		select {
		case x.wakes <- now:
		default:
		}
	})
	must(t, err)
	x.w = w
	close(made)
	t.Cleanup(func() { must(t, w.Close()) })
	return x
}

// until waits for a call at which f says yes to what is watched.
func (x *waiting) until(what string, f func(state) bool) {
	x.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case now := <-x.wakes:
			if f(now) {
				return
			}
		case <-deadline:
			x.t.Fatalf("no wake for %s", what)
		}
	}
}

// What can't be watched is looked at at intervals instead.
func TestWatchFallback(t *testing.T) {
	dir := t.TempDir()
	for i := range 8 {
		must(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755))
	}
	set(t, &maxWatches, 4)
	x := watch(t, dir)
	for range 4 {
		x.until("a wake for what isn't watched", func(now state) bool { return len(now.dirs) == 4 && now.partial })
	}
}

func TestWatchFallbackWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may watch everything")
	}
	locked := t.TempDir()
	must(t, os.Mkdir(filepath.Join(locked, "d"), 0))
	x := watch(t, locked)
	for range 2 {
		x.until("a wake for what isn't watched", func(now state) bool { return len(now.dirs) == 1 && now.partial })
	}
}

// Lost events cause a call, and the watches stand afterwards.
func TestWatchOverflow(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	x := watch(t, dir)
	both := func(now state) bool { return maps.Equal(now.dirs, folders(t, dir)) && !now.partial }
	x.until("the first", both)
	// A queue of the usual length takes too long to fill; the error is the same.
	x.w.in.Errors <- fsnotify.ErrEventOverflow
	x.until("lost events", both)
	must(t, os.WriteFile(filepath.Join(dir, "d/file"), nil, 0o644))
	x.until("the file", both)
}

// The library tells an error with its lock held, for which the watcher may be
// waiting: it is taken even while the watcher is busy.
func TestWatchHearsErrorsWhileBusy(t *testing.T) {
	made, heard := make(chan struct{}), make(chan bool, 1)
	var w *Watcher
	say := sync.OnceFunc(func() {
		<-made
		select {
		case w.in.Errors <- fsnotify.ErrEventOverflow:
			heard <- true
		case <-time.After(patience):
			heard <- false
		}
	})
	quick(t)
	var err error
	w, err = New(t.TempDir(), say)
	must(t, err)
	close(made)
	if !<-heard {
		t.Error("nobody takes the error")
	}
	must(t, w.Close())
}

// folders are the directories at and below dir, as a watcher of all has them.
func folders(t *testing.T, dir string) map[string]uint64 {
	t.Helper()
	found := map[string]uint64{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		var st unix.Stat_t
		err = unix.Lstat(path, &st)
		found[strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")] = st.Ino
		return err
	}))
	return found
}

// A directory swapped for a link must not lead a watch to the host's files.
func TestWatchAttackLink(t *testing.T) {
	dir, target := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(target, "sub"), 0o755), os.Symlink(target, filepath.Join(dir, "link")))
	x := watch(t, dir)
	x.until("the first", func(now state) bool { return len(now.dirs) == 1 })
	for _, path := range []string{"link", "link/sub"} {
		if _, err := x.w.addOne(path); !inode.Gone(err) {
			t.Errorf("%q was watched: %v", path, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	x.until("the file", func(now state) bool { return len(now.dirs) == 1 })
}

// quick lets watchers wake soon.
func quick(t *testing.T) {
	set(t, &debounce, time.Millisecond)
	set(t, &rescanning, 20*time.Millisecond)
}

// However directories are made, moved, removed and put in each other's places,
// each is watched by its path in the end.
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
		want := folders(t, dir)
		for path := range want {
			must(t, os.WriteFile(filepath.Join(dir, path, "file"), fmt.Append(nil, round), 0o644))
		}
		x.until(fmt.Sprintf("%v in round %d", want, round), func(now state) bool { return maps.Equal(now.dirs, want) })
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
		x.until("the directory", func(now state) bool { return len(now.dirs) == 2 })
		names := slices.DeleteFunc(x.w.in.WatchList(), func(name string) bool { return name == root[0] })
		if len(names) != 1 || names[0] == last {
			t.Fatalf("%q after %q", names, last)
		}
		last = names[0]
		must(t, os.Remove(filepath.Join(dir, "d")))
		x.until("its end", func(now state) bool { return len(now.dirs) == 1 })
	}
}
