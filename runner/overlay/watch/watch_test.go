package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
)

// watched is a watcher whose wakes a test waits for.
type watched struct {
	t     *testing.T
	w     *Watcher
	wakes chan Wake
}

func watch(t *testing.T, upper string) *watched {
	t.Helper()
	quick(t)
	x := &watched{t: t, wakes: make(chan Wake, 100)} // more than any test causes; further ones are dropped
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
func (x *watched) until(what string, f func(Wake) bool) {
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
	// A queue of the usual length takes too long to fill; the event is the same.
	w := &Watcher{
		root: x.w.root, in: x.w.in,
		paths: map[int32]string{}, wds: map[string]int32{}, dirty: map[string]bool{},
	}
	w.event(-1, unix.IN_Q_OVERFLOW, "")
	if !w.full || len(w.paths) != 2 || w.due.IsZero() {
		t.Errorf("after an overflow: full %v, %d watches", w.full, len(w.paths))
	}
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
	if err := func() error { _, err := x.w.addOne("link", make([]byte, 4096)); return err }(); !inode.Gone(err) {
		t.Errorf("a link was watched: %v", err)
	}
	if err := func() error { _, err := x.w.addOne("link/sub", make([]byte, 4096)); return err }(); !inode.Gone(err) {
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
