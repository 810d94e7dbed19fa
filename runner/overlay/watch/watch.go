// Package watch wakes its owner when something moves in an overlay's upper
// directory. It is a hint and nothing more: what happened is found by a scan.
package watch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Wake says that an upper may have moved.
type Wake struct {
	Dirs  []string // directories to look at, sorted: for a scan's Options.Dirty
	Full  bool     // look at everything; Dirs is empty
	State State
}

// State is how well an upper is watched.
type State struct {
	Watched int    // directories
	Why     string // why some aren't, so that Wakes come at intervals instead; "" when all are
}

// Tests don't wait as long, nor watch as many.
var (
	debounce   = 75 * time.Millisecond // from the first event to the Wake
	rescanning = 2 * time.Second       // between Wakes while not everything is watched
	maxWatches = 16_384                // directories
)

// maxDirty is how many directories a Wake lists before it becomes a full one.
const maxDirty = 1024

// Watcher wakes its owner when something below an upper moves. It is a hint and
// nothing more: stores through mappings give no event, and what happened must be
// found by a scan.
//
// Directories are opened below the upper without following links, and watched by
// the names of their descriptors, /proc/self/fd/N, so that one that the sandbox
// swaps for a link leads nowhere. Each keeps its N as a name for as long as it is
// watched, while the descriptor itself is closed at once.
type Watcher struct {
	root   int
	in     *fsnotify.Watcher
	notify func(Wake)
	done   chan struct{} // closed when run has returned

	mu    sync.Mutex
	state State // guarded by mu

	// The rest belongs to run.
	byPath  map[string]*watched
	byName  map[string]*watched
	byInode map[uint64]*watched // an upper is on one file system
	next    int                 // N to try for the next name
	dirty   map[string]bool
	full    bool
	why     string
	deaf    string    // a why that doesn't pass
	due     time.Time // of the next Wake; zero for none
	buf     [32 << 10]byte
}

// watched is a directory that is watched.
type watched struct {
	path  string
	name  string // by which the library knows it
	inode uint64
}

// New watches the upper directory at that path. notify is called from
// the watcher's one goroutine, never before New returned, and should
// return soon: events that don't fit the kernel's queue meanwhile become a
// full Wake. Close ends it.
func New(upper string, notify func(Wake)) (*Watcher, error) {
	root, err := inode.OpenAt(unix.AT_FDCWD, upper, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("cannot watch %q: %w", upper, err)
	}
	in, err := fsnotify.NewWatcher()
	if err != nil {
		_ = unix.Close(root)
		return nil, fmt.Errorf("cannot watch %q: %w", upper, err)
	}
	w := &Watcher{
		root: root, in: in, notify: notify, done: make(chan struct{}),
		byPath: map[string]*watched{}, byName: map[string]*watched{}, byInode: map[uint64]*watched{}, dirty: map[string]bool{},
	}
	if !inode.KernelSince(6, 8) {
		// Before, overlayfs opened the files of its upper so that writes give no event.
		w.deaf = "this kernel doesn't tell of writes through an overlay; Linux 6.8 does"
	}
	w.why = w.deaf
	w.add("")
	w.publish()
	go w.run()
	return w, nil
}

// Close ends the watcher and waits for it. notify isn't called afterwards, and
// mustn't be what calls Close.
func (w *Watcher) Close() error {
	err := w.in.Close()
	<-w.done
	return err
}

// State says how well the upper is watched now.
func (w *Watcher) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *Watcher) publish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = State{Watched: len(w.byPath), Why: w.why}
}

func (w *Watcher) run() {
	defer close(w.done)
	defer unix.Close(w.root)
	rescan := time.Now().Add(rescanning)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		at := w.due
		if w.why != "" && (at.IsZero() || rescan.Before(at)) {
			at = rescan
		}
		timer.Stop()
		if !at.IsZero() {
			timer.Reset(time.Until(at))
		}
		select {
		case e, open := <-w.in.Events:
			if !open {
				return
			}
			w.event(e)
			w.publish()
		case _, open := <-w.in.Errors: // events were lost, or can't be read
			if !open {
				return
			}
			w.again()
			w.publish()
		case <-timer.C:
		}
		now := time.Now()
		if w.why != "" && !now.Before(rescan) {
			w.full = true
			w.due = now
		}
		if w.why == "" || !now.Before(rescan) {
			rescan = now.Add(rescanning)
		}
		if !w.due.IsZero() && !now.Before(w.due) {
			w.wake()
		}
	}
}

// wake tells the owner what is dirty.
func (w *Watcher) wake() {
	k := Wake{Full: w.full, State: w.State()}
	if !k.Full {
		k.Dirs = slices.Sorted(maps.Keys(w.dirty))
	}
	w.due, w.full = time.Time{}, false
	clear(w.dirty)
	w.notify(k)
}

func (w *Watcher) mark(path string) {
	if w.due.IsZero() {
		w.due = time.Now().Add(debounce)
	}
	if w.full {
		return
	}
	if w.dirty[path] = true; len(w.dirty) > maxDirty {
		w.full = true
	}
}

// event takes what happened to a watched directory, or to a name in one.
func (w *Watcher) event(e fsnotify.Event) {
	number, name, _ := strings.Cut(strings.TrimPrefix(e.Name, fdFolder), "/")
	dir := w.byName[fdFolder+number]
	if dir == nil {
		return
	}
	w.mark(dir.path)
	if name == "" {
		if dir.path != "" { // its own attributes are an entry of the one above
			up, _ := manifest.Split(dir.path)
			w.mark(up)
		}
		switch {
		case e.Has(fsnotify.Remove):
			w.forget(dir)
		case e.Has(fsnotify.Rename): // and nothing told where to
			w.drop(dir.path)
			w.full = true
		}
		return
	}
	// An event may be late: what counts is what there is now.
	path := manifest.Join(dir.path, name)
	there := w.byPath[path]
	switch {
	case there == nil && e.Has(fsnotify.Create|fsnotify.Chmod):
		w.add(path)
	case there == nil:
	case e.Has(fsnotify.Create | fsnotify.Rename):
		w.drop(path)
		w.add(path)
	case e.Has(fsnotify.Remove): // so it was empty
		w.forget(there)
		w.add(path)
	}
}

// forget ends the watch of a directory.
func (w *Watcher) forget(d *watched) {
	_ = w.in.Remove(d.name) // the watch may have ended with its directory
	delete(w.byPath, d.path)
	delete(w.byName, d.name)
	delete(w.byInode, d.inode)
}

// drop ends the watches at and below path.
func (w *Watcher) drop(path string) {
	for p, d := range w.byPath {
		if p == path || path == "" || strings.HasPrefix(p, path+"/") {
			w.forget(d)
		}
	}
}

// again makes all watches anew, after events were lost.
func (w *Watcher) again() {
	w.drop("")
	w.why = w.deaf
	w.add("")
	w.full = true
}

// add watches a directory and then those below it, which are looked for after
// the watch stands. Whatever is newly watched may have moved before. What isn't a
// directory, or no longer there, is left out.
func (w *Watcher) add(path string) {
	todo := []string{path}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		below, err := w.addOne(path)
		switch {
		case err == nil:
			w.mark(path)
			todo = append(todo, below...)
		case inode.Gone(err):
		default:
			w.mark(path)
			w.why = fmt.Sprintf("cannot watch all directories: %v", err)
			if errors.Is(err, unix.ENOSPC) || errors.Is(err, errWatches) {
				return
			}
		}
	}
}

var errWatches = errors.New("there are too many of them")

// addOne watches one directory and lists those in it.
func (w *Watcher) addOne(path string) (below []string, err error) {
	fd, err := inode.OpenDirBeneath(w.root, path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := inode.Fstat(fd, &st); err != nil {
		return nil, err
	}
	// What was moved here or away is dropped now where that is yet to be told.
	for _, d := range []*watched{w.byInode[st.Ino], w.byPath[path]} {
		if d != nil {
			w.drop(d.path)
		}
	}
	if len(w.byPath) >= maxWatches {
		return nil, errWatches
	}
	named, name, err := w.name(fd)
	if err != nil {
		return nil, err
	}
	err = w.in.Add(name)
	_ = unix.Close(named)
	if err != nil {
		return nil, err
	}
	d := &watched{path: path, name: name, inode: st.Ino}
	w.byPath[path], w.byName[name], w.byInode[d.inode] = d, d, d
	err = inode.EachName(fd, w.buf[:], func(name []byte) error {
		if err := inode.Lstat(fd, string(name), &st); err == nil && inode.KindOf(&st) == manifest.KindDir {
			below = append(below, manifest.Join(path, string(name)))
		}
		return nil
	})
	return below, err
}

const (
	fdFolder = "/proc/self/fd/" // begins the names of descriptors
	maxNames = 1 << 15          // more than are watched at once
)

// name duplicates a descriptor so that its number is no watched directory's name.
// Names are given out in turns: an event may still be on its way that has one
// which isn't used any more.
func (w *Watcher) name(fd int) (int, string, error) {
	for tries := 0; ; tries++ {
		for w.byName[inode.FDPath(w.next)] != nil {
			w.next++
		}
		named, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, w.next)
		if (err == unix.EINVAL || err == unix.EMFILE) && w.next > 0 && tries == 0 { // past the limit of descriptors
			w.next = 0
			continue
		}
		if err != nil {
			return -1, "", err
		}
		w.next = named + 1
		if w.next >= maxNames {
			w.next = 0
		}
		name := inode.FDPath(named)
		if w.byName[name] == nil {
			return named, name, nil
		}
		_ = unix.Close(named)
	}
}
