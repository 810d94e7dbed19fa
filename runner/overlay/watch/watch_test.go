package watch

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
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
	w, err := New(upper, func() {
		<-made
		x.w.mu.Lock()
		defer x.w.mu.Unlock()
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

// What no scan looks into isn't watched, whenever it comes: an agent makes such folders
// without end.
func TestWatchDeep(t *testing.T) {
	dir := t.TempDir()
	name := strings.Repeat("d", 200)
	levels := manifest.MaxLong/len(name) + 5
	nest(t, dir, name, levels)
	x := watch(t, dir)
	nest(t, dir, strings.Repeat("e", 200), levels)
	last := strings.Repeat("e", 200)
	for manifest.Beyond(last+"/"+last[:200]) == "" {
		last += "/" + last[:200]
	}
	x.until("the last folder within bounds", func(s state) bool {
		for path := range s.dirs {
			if why := manifest.Beyond(path); why != "" {
				t.Fatalf("a folder is watched though %s", why)
			}
		}
		return s.dirs[last] != 0 && !s.partial
	})
}

// nest makes folders in one another.
func nest(t *testing.T, top, name string, levels int) {
	t.Helper()
	at, err := unix.Open(top, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range levels {
		must(t, unix.Mkdirat(at, name, 0o700))
		below, err := unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		unix.Close(at)
		at = below
	}
	unix.Close(at)
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
	overflow(t, x.w, filepath.Join(dir, "d"))
	if dirs, sure := x.w.Dirty(); sure || dirs != nil {
		t.Errorf("after lost events it is sure of %q", dirs)
	}
	x.until("lost events", both)
	must(t, os.WriteFile(filepath.Join(dir, "d/file"), nil, 0o644))
	x.until("the file", both)
}

// overflow makes more events than the kernel's queue holds while nobody takes them.
func overflow(t *testing.T, w *Watcher, dir string) {
	t.Helper()
	raw, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	must(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	for range n/2 + 1 { // each is told twice
		must(t, os.WriteFile(filepath.Join(dir, "one"), nil, 0o644), os.Remove(filepath.Join(dir, "one")))
	}
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
		x.w.mu.Lock()
		_, err := x.w.addOne(path)
		x.w.mu.Unlock()
		if !inode.Gone(err) {
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

// What was written before the call is in the answer, and in no later one.
func TestDirty(t *testing.T) {
	dir := t.TempDir()
	w := quiet(t, dir)
	dirty(t, w, "")
	dirty(t, w)
	in := func(path string) string { return filepath.Join(dir, path) }
	must(t, os.WriteFile(in("f"), nil, 0o644))
	dirty(t, w, "")
	must(t, os.MkdirAll(in("a/b/c"), 0o755))
	dirty(t, w, "", "a", "a/b", "a/b/c")
	must(t, os.WriteFile(in("a/b/f"), nil, 0o644))
	dirty(t, w, "a/b")
	must(t, os.Chmod(in("a/b"), 0o700))
	dirty(t, w, "a", "a/b")
	must(t, os.Rename(in("a"), in("z")))
	dirty(t, w, "", "z", "z/b", "z/b/c")
	must(t, os.WriteFile(in("z/b/c/f"), nil, 0o644), os.Link(in("z/b/c/f"), in("g")))
	dirty(t, w, "", "z/b/c")
	must(t, os.RemoveAll(in("z/b")), os.MkdirAll(in("z/b/c"), 0o755))
	dirty(t, w, "z", "z/b", "z/b/c")
	f, err := os.OpenFile(in("z/b/c/f"), os.O_CREATE|os.O_RDWR, 0o644)
	must(t, err)
	must(t, f.Truncate(10))
	dirty(t, w, "z/b/c")
	mem, err := unix.Mmap(int(f.Fd()), 0, 10, unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err, f.Close())
	mem[0] = 1
	dirty(t, w) // as the documentation says
	must(t, unix.Munmap(mem))
	dirty(t, w, "z/b/c")
	must(t, w.Close())
	if _, sure := w.Dirty(); sure {
		t.Error("a watcher that was closed is sure")
	}
}

// Whatever it may have missed, it isn't sure of.
func TestDirtyUnsure(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, w *Watcher, dir string){
		"an old kernel": func(_ *testing.T, w *Watcher, _ string) {
			w.mu.Lock()
			w.deaf = true
			w.mu.Unlock()
		},
		"lost events": overflow,
		"too many directories": func(t *testing.T, _ *Watcher, dir string) {
			must(t, os.MkdirAll(dir+"/a/b/c", 0o755))
		},
		"too many that are dirty": func(t *testing.T, w *Watcher, dir string) {
			for _, name := range []string{"/a", "/b", "/c"} {
				must(t, os.Mkdir(dir+name, 0o755))
				w.mu.Lock()
				w.drain()
				w.mu.Unlock()
				must(t, os.Remove(dir+name))
			}
		},
		"a directory that is shut": shut,
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "too many") {
				set(t, &maxWatches, 3)
			}
			dir := t.TempDir()
			w := quiet(t, dir)
			dirty(t, w, "")
			spoil(t, w, dir)
			if dirs, sure := w.Dirty(); sure {
				t.Errorf("it is sure of %q", dirs)
			}
		})
	}
}

// shut makes a directory whose names can be read, but not what they are.
func shut(t *testing.T, w *Watcher, dir string) {
	if os.Geteuid() == 0 {
		t.Skip("root may look at everything")
	}
	w.mu.Lock() // or it may look in time
	must(t, os.MkdirAll(dir+"/a/b", 0o755), os.Chmod(dir+"/a", 0o400))
	w.mu.Unlock()
	t.Cleanup(func() { must(t, os.Chmod(dir+"/a", 0o700)) })
}

// quiet is a watcher that wakes nobody.
func quiet(t *testing.T, dir string) *Watcher {
	t.Helper()
	w, err := New(dir, func() {})
	must(t, err)
	t.Cleanup(func() { _ = w.Close() }) // twice is an error
	return w
}

// dirty checks what the watcher finds dirty, and that it is sure.
func dirty(t *testing.T, w *Watcher, want ...string) {
	t.Helper()
	got, sure := w.Dirty()
	slices.Sort(got)
	if !sure || !slices.Equal(got, want) {
		t.Errorf("%q are dirty, %v; want %q", got, sure, want)
	}
}

// The kernel tells a move to the moved directory itself last, when the directory
// may be watched in its new place already: it stays watched.
func TestMoveToldLate(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	w := quiet(t, dir)
	dirty(t, w, "", "a", "a/b")
	w.mu.Lock()
	w.event(w.byPath["a"].number, unix.IN_MOVE_SELF, "")
	w.mu.Unlock()
	dirty(t, w, "a", "a/b")
	must(t, os.WriteFile(filepath.Join(dir, "a/b/f"), nil, 0o644))
	dirty(t, w, "a/b")
	must(t, w.Close())
}
