// Package watch wakes its owner when something moves in an overlay's upper
// directory. It is a hint and nothing more: what happened is found by a scan.
package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Wake says that an upper may have moved.
type Wake struct {
	Dirs  []string // directories to look at, sorted: for ScanOptions.Dirty
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

// Watcher wakes its owner when something below an upper moves, by inotify(7).
// It is a hint and nothing more: stores through mappings give no event, and
// what happened must be found by a scan.
//
// The watches are made on open directories, by /proc/self/fd, so that a
// directory that the sandbox swaps for a link leads nowhere.
type Watcher struct {
	root   int
	in     *os.File
	notify func(Wake)
	done   chan struct{} // closed when run has returned

	mu    sync.Mutex
	state State // guarded by mu

	// The rest belongs to run.
	paths map[int32]string // by watch descriptor
	wds   map[string]int32
	dirty map[string]bool
	full  bool
	why   string
	deaf  string    // a why that doesn't pass
	due   time.Time // of the next Wake; zero for none
}

const watchMask = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_EXCL_UNLINK | unix.IN_ONLYDIR

// New watches the upper directory at that path. notify is called from
// the watcher's one goroutine, never before NewWatcher returned, and should
// return soon: events that don't fit the kernel's queue meanwhile become a
// full Wake. Close ends it.
func New(upper string, notify func(Wake)) (*Watcher, error) {
	root, err := inode.OpenAt(unix.AT_FDCWD, upper, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("cannot watch %q: %w", upper, err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		_ = unix.Close(root)
		return nil, fmt.Errorf("cannot watch %q: %w", upper, err)
	}
	w := &Watcher{
		root: root, in: os.NewFile(uintptr(fd), "inotify"), notify: notify, done: make(chan struct{}),
		paths: map[int32]string{}, wds: map[string]int32{}, dirty: map[string]bool{},
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
	w.state = State{Watched: len(w.paths), Why: w.why}
}

func (w *Watcher) run() {
	defer close(w.done)
	defer unix.Close(w.root)
	rescan := time.Now().Add(rescanning)
	buf := make([]byte, 64<<10)
	for {
		wait := w.due
		if w.why != "" && (wait.IsZero() || rescan.Before(wait)) {
			wait = rescan
		}
		if err := w.in.SetReadDeadline(wait); err != nil {
			return
		}
		n, err := w.in.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			return
		default:
			w.events(buf[:n])
			w.publish()
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
		for path := range w.dirty {
			k.Dirs = append(k.Dirs, path)
		}
		slices.Sort(k.Dirs)
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

// events reads struct inotify_event, inotify(7): wd, mask, cookie, len, name.
func (w *Watcher) events(b []byte) {
	for len(b) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(b))
		mask := binary.NativeEndian.Uint32(b[4:])
		size := int(binary.NativeEndian.Uint32(b[12:]))
		b = b[unix.SizeofInotifyEvent:]
		if size > len(b) {
			return
		}
		name := string(b[:size])
		if i := strings.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		b = b[size:]
		w.event(wd, mask, name)
	}
}

func (w *Watcher) event(wd int32, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.mark("")
		w.full = true
		w.again()
		return
	}
	dirPath, ok := w.paths[wd]
	if !ok {
		return
	}
	if mask&unix.IN_IGNORED != 0 {
		w.forget(wd, dirPath)
		return
	}
	w.mark(dirPath)
	if name == "" {
		if dirPath != "" { // its own attributes are an entry of the one above
			up, _ := manifest.Split(dirPath)
			w.mark(up)
		}
		return
	}
	if mask&unix.IN_ISDIR == 0 {
		return
	}
	path := manifest.Join(dirPath, name)
	switch {
	case mask&(unix.IN_MOVED_FROM|unix.IN_DELETE) != 0:
		w.drop(path)
	case mask&unix.IN_MOVED_TO != 0:
		w.drop(path)
		w.add(path)
	case mask&(unix.IN_CREATE|unix.IN_ATTRIB) != 0:
		if _, watched := w.wds[path]; !watched {
			w.add(path)
		}
	}
}

func (w *Watcher) forget(wd int32, path string) {
	delete(w.paths, wd)
	if w.wds[path] == wd {
		delete(w.wds, path)
	}
}

// drop ends the watches at and below path.
func (w *Watcher) drop(path string) {
	for p, wd := range w.wds {
		if p == path || strings.HasPrefix(p, path+"/") {
			w.unwatch(wd)
			w.forget(wd, p)
		}
	}
}

func (w *Watcher) unwatch(wd int32) {
	if c, err := w.in.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.InotifyRmWatch(int(fd), uint32(wd)) })
	}
}

// again makes all watches anew, after events were lost.
func (w *Watcher) again() {
	for wd, path := range w.paths {
		w.unwatch(wd)
		w.forget(wd, path)
	}
	w.why = w.deaf
	w.add("")
}

// add watches a directory and then those below it, which are looked for after
// the watch stands. Whatever is newly watched may have moved before.
func (w *Watcher) add(path string) {
	buf := make([]byte, 32<<10)
	todo := []string{path}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		below, err := w.addOne(path, buf)
		switch {
		case err == nil:
			w.mark(path)
			todo = append(todo, below...)
		case inode.Gone(err):
		default:
			w.why = fmt.Sprintf("cannot watch all directories: %v", err)
			if errors.Is(err, unix.ENOSPC) || errors.Is(err, errWatches) {
				return
			}
		}
	}
}

var errWatches = errors.New("there are too many of them")

// addOne watches one directory and lists those in it.
func (w *Watcher) addOne(path string, buf []byte) (below []string, err error) {
	if len(w.paths) >= maxWatches {
		return nil, errWatches
	}
	fd, err := inode.OpenDirBeneath(w.root, path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	c, err := w.in.SyscallConn()
	if err != nil {
		return nil, err
	}
	wd, werr := -1, error(nil)
	if err := c.Control(func(in uintptr) { wd, werr = unix.InotifyAddWatch(int(in), inode.FdPath(fd), watchMask) }); err != nil {
		return nil, err
	}
	if werr != nil {
		return nil, werr
	}
	if old, ok := w.paths[int32(wd)]; ok && old != path {
		w.forget(int32(wd), old) // it was moved here
	}
	w.paths[int32(wd)], w.wds[path] = path, int32(wd)
	var st unix.Stat_t
	err = inode.EachName(fd, buf, func(name []byte) error {
		if err := inode.Lstat(fd, string(name), &st); err == nil && inode.KindOf(&st) == manifest.KindDir {
			below = append(below, manifest.Join(path, string(name)))
		}
		return nil
	})
	return below, err
}
