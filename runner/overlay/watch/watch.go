// Package watch wakes its owner when something moves in an overlay's upper
// directory. It is a hint and nothing more: what happened is found by a scan.
package watch

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Tests don't wait as long, nor watch as many.
var (
	debounce   = 75 * time.Millisecond // from the first event to the call
	rescanning = 2 * time.Second       // between calls while not everything is told
	maxWatches = 16_384                // directories
)

// Watcher wakes its owner when something below an upper moves. Stores through
// mappings give no event.
//
// Directories are opened below the upper without following links, and watched by
// the names of their descriptors, /proc/self/fd/N, so that one that the sandbox
// swaps for a link leads nowhere. Each keeps its N as a name for as long as it is
// watched, while the descriptor itself is closed at once.
type Watcher struct {
	root   int
	in     *fsnotify.Watcher
	notify func()
	ended  sync.WaitGroup
	lost   chan struct{} // of one place, which stands for all that is yet to be seen to: some events didn't come
	deaf   bool          // the kernel doesn't tell of writes through an overlay

	// The rest belongs to run.
	byPath  map[string]*watched
	byName  map[string]*watched
	byInode map[uint64]*watched // an upper is on one file system
	next    int                 // N to try for the next name
	partial bool                // some directories aren't watched
	due     time.Time           // of the next call; zero for none
	buf     [32 << 10]byte
}

// watched is a directory that is watched.
type watched struct {
	path  string
	name  string // by which the library knows it
	inode uint64
}

// New watches the upper directory at that path. notify is called from the
// watcher's one goroutine, after New began and then whenever something moved, and
// at intervals where not everything that moves is told. It should return soon:
// events that don't fit the kernel's queue meanwhile make all watches be set up
// anew. Close ends it.
func New(upper string, notify func()) (*Watcher, error) {
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
		root: root, in: in, notify: notify, lost: make(chan struct{}, 1),
		byPath: map[string]*watched{}, byName: map[string]*watched{}, byInode: map[uint64]*watched{},
		deaf: !inode.KernelSince(6, 8), // before, overlayfs opened the files of its upper so that writes give no event
	}
	w.add("")
	w.ended.Go(w.run)
	w.ended.Go(w.hear)
	return w, nil
}

// Close ends the watcher and waits for it. notify isn't called afterwards, and
// mustn't be what calls Close.
func (w *Watcher) Close() error {
	err := w.in.Close()
	w.ended.Wait()
	return err
}

func (w *Watcher) run() {
	defer unix.Close(w.root)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if w.due.IsZero() && (w.deaf || w.partial) {
			w.due = time.Now().Add(rescanning)
		}
		timer.Stop()
		if !w.due.IsZero() {
			timer.Reset(time.Until(w.due))
		}
		select {
		case e, open := <-w.in.Events:
			if !open {
				return
			}
			w.event(e)
		case <-w.lost:
			w.again()
		case <-timer.C:
		}
		if !w.due.IsZero() && !time.Now().Before(w.due) {
			w.due = time.Time{}
			w.notify()
		}
	}
}

// hear takes the library's errors: events were lost, or can't be read. It holds
// its lock while it tells them, so that run, which may wait for that, can't be the
// one who listens.
func (w *Watcher) hear() {
	for range w.in.Errors {
		select {
		case w.lost <- struct{}{}:
		default:
		}
	}
}

// moved makes a call due soon.
func (w *Watcher) moved() {
	if soon := time.Now().Add(debounce); w.due.IsZero() || soon.Before(w.due) {
		w.due = soon
	}
}

// event takes what happened to a watched directory, or to a name in one.
func (w *Watcher) event(e fsnotify.Event) {
	number, name, _ := strings.Cut(strings.TrimPrefix(e.Name, fdFolder), "/")
	dir := w.byName[fdFolder+number]
	if dir == nil {
		return
	}
	w.moved()
	if name == "" {
		switch {
		case e.Has(fsnotify.Remove):
			w.forget(dir)
		case e.Has(fsnotify.Rename): // and nothing told where to
			w.drop(dir.path)
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
	w.partial = false
	w.moved()
	w.add("")
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
			w.moved()
			todo = append(todo, below...)
		case inode.Gone(err):
		default:
			w.moved()
			w.partial = true
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
