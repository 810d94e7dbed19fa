package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	w, err := NewWatcher(upper, func(k Wake) {
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

// The loop that a session runs: wake, scan what is dirty. It must end up with
// what a full scan finds.
func TestWatchAndScan(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), place, func(lower string) {
				must(t, os.MkdirAll(filepath.Join(lower, "low/deep"), 0o755), os.WriteFile(filepath.Join(lower, "low/deep/f"), []byte("x"), 0o644))
			})
			defer s.close()
			s.scan()
			x := watch(t, s.q.Upper)
			steps := [][]mutation{
				{{Op: "write", Path: "a", Data: []byte("1")}},
				{{Op: "mkdir", Path: "d"}, {Op: "mkdir", Path: "d/e"}, {Op: "write", Path: "d/e/f", Data: []byte("1")}},
				{{Op: "append", Path: "d/e/f", Data: []byte("2")}},
				{{Op: "append", Path: "low/deep/f", Data: []byte("copied up")}},
				{{Op: "append", Path: "low/deep/f", Data: []byte("again")}},
				{{Op: "rename", Path: "d", To: "moved"}},
				{{Op: "append", Path: "moved/e/f", Data: []byte("3")}},
				{{Op: "chmod", Path: "moved/e", N: 0o700}},
				{{Op: "removeall", Path: "moved"}, {Op: "mkdir", Path: "moved"}, {Op: "write", Path: "moved/g"}},
				{{Op: "write", Path: "moved/\xff\n", Data: []byte("x")}},
			}
			for _, muts := range steps {
				s.agent(muts...)
				fresh, err := NewScanner(s.q.Upper, nil, s.h.open(bg, s.q.Upper))
				must(t, err)
				want, _ := scanWith(t, fresh, ScanOptions{})
				must(t, fresh.Close())
				x.until(fmt.Sprint(muts), func(k Wake) bool {
					o := ScanOptions{Dirty: append([]string{}, k.Dirs...)}
					if k.Full {
						if o.Dirty = nil; k.State.Why == "" {
							t.Error("a full wake for little")
						}
					}
					m, _ := scanWith(t, s.scanner, o)
					return explainManifests(want, m) == ""
				})
			}
			if st := x.w.State(); (st.Why == "") != kernelSince(6, 8) || st.Watched != 4 {
				t.Errorf("state %+v", st)
			}
		})
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
	if err := func() error { _, err := x.w.addOne("link", make([]byte, 4096)); return err }(); !gone(err) {
		t.Errorf("a link was watched: %v", err)
	}
	if err := func() error { _, err := x.w.addOne("link/sub", make([]byte, 4096)); return err }(); !gone(err) {
		t.Errorf("a directory behind a link was watched: %v", err)
	}
	if st := x.w.State(); st.Watched != 1 {
		t.Errorf("state %+v", st)
	}
}
