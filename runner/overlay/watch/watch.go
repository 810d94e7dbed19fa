// Package watch tells what moves in an overlay's upper directory: it wakes its
// owner, and names the directories in which a scan has to look.
package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

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

// Watcher tells what moves below an upper, from the kernel's events (inotify(7)).
// It asks for them itself: no library gives the end of writing, by which alone
// some writes are told, nor all that there is at a given moment. Safe for
// concurrent use.
//
// Directories are opened below the upper without following links, and watched by
// the names of their descriptors, /proc/self/fd/N, so that one that the sandbox
// swaps for a link leads nowhere.
type Watcher struct {
	queue  *os.File // of events
	number int      // its descriptor
	notify func()
	ended  sync.WaitGroup
	woken  chan struct{} // of one place: due was set, or closed
	deaf   bool          // the kernel doesn't tell of writes through an overlay

	// mu is held while directories are opened and watched: events have to be
	// taken one after the other.
	mu       sync.Mutex
	root     int                 // guarded by mu; -1 once closed
	byPath   map[string]*watched // guarded by mu
	byNumber map[int]*watched    // guarded by mu
	byInode  map[uint64]*watched // guarded by mu; an upper is on one file system
	partial  bool                // guarded by mu; some directories aren't watched
	lost     bool                // guarded by mu; some events didn't come since Dirty was called
	dirty    map[string]bool     // guarded by mu; directories in which something moved since then
	due      time.Time           // guarded by mu; of the next call; zero for none
	names    [32 << 10]byte      // guarded by mu
	events   [32 << 10]byte      // guarded by mu
}

// watched is a directory that is watched.
type watched struct {
	path   string
	number int // the kernel's, for this watch and no later one
	inode  uint64
}

// New watches the upper directory at that path. notify is called from the
// watcher's one goroutine, after New began and then whenever something moved, and
// at intervals where not everything that moves is told. Close ends it.
func New(upper string, notify func()) (*Watcher, error) {
	root, err := inode.OpenAt(unix.AT_FDCWD, upper, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("cannot watch %q: %w", upper, err)
	}
	number, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		_ = unix.Close(root)
		return nil, fmt.Errorf("cannot watch %q: %w", upper, err)
	}
	w := &Watcher{
		root: root, queue: os.NewFile(uintptr(number), "inotify"), number: number, notify: notify, woken: make(chan struct{}, 1),
		byPath: map[string]*watched{}, byNumber: map[int]*watched{}, byInode: map[uint64]*watched{}, dirty: map[string]bool{},
		deaf: !inode.KernelSince(6, 8), // before, overlayfs opened the files of its upper so that writes give no event
	}
	w.add("")
	w.ended.Go(w.run)
	w.ended.Go(w.listen)
	return w, nil
}

// Close ends the watcher and waits for it. notify isn't called afterwards, and
// mustn't be what calls Close.
func (w *Watcher) Close() error {
	w.mu.Lock()
	err := w.queue.Close()
	if w.root >= 0 {
		_ = unix.Close(w.root)
		w.root = -1
	}
	w.wake()
	w.mu.Unlock()
	w.ended.Wait()
	return err
}

// Dirty gives the directories in which something moved since it was called last
// or the watcher was made, and in which more may be new than was told: for each,
// its own names and attributes have to be looked at. It isn't sure when something
// may be missing, or the answer would be too long; then look at everything.
//
// Even when it is sure it is a hint. All that was written by system calls before
// is in it, but for writes that the kernel tells elsewhere or not at all:
//   - to a file that had another name once (link(2), O_TMPFILE): overlayfs tells
//     them of the name by which it first found the file, even when that is gone;
//   - by splice(2) and io_submit(2), and stores through mappings: as the file is
//     closed and unmapped.
func (w *Watcher) Dirty() (dirs []string, sure bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain()
	sure = w.root >= 0 && !w.deaf && !w.partial && !w.lost
	if sure {
		dirs = slices.AppendSeq(make([]string, 0, len(w.dirty)), maps.Keys(w.dirty))
	}
	w.lost = false
	clear(w.dirty)
	return dirs, sure
}

func (w *Watcher) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		w.mu.Lock()
		if w.root < 0 {
			w.mu.Unlock()
			return
		}
		if w.due.IsZero() && (w.deaf || w.partial) {
			w.due = time.Now().Add(rescanning)
		}
		due := w.due
		now := !due.IsZero() && !time.Now().Before(due)
		if now {
			w.due = time.Time{}
		}
		w.mu.Unlock()
		if now {
			w.notify()
			continue
		}
		timer.Stop()
		if !due.IsZero() {
			timer.Reset(time.Until(due))
		}
		select {
		case <-w.woken:
		case <-timer.C:
		}
	}
}

// listen takes events as they come, until the watcher is closed.
func (w *Watcher) listen() {
	conn, err := w.queue.SyscallConn()
	for err == nil {
		err = conn.Read(func(uintptr) bool { return w.pending() > 0 })
		w.mu.Lock()
		w.drain()
		w.mu.Unlock()
	}
}

// wake has run look again.
func (w *Watcher) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// moved marks a directory, and makes a call due soon.
func (w *Watcher) moved(path string) {
	if len(w.dirty) < maxWatches {
		w.dirty[path] = true
	} else if !w.dirty[path] {
		w.lost = true
	}
	w.soon()
}

// soon makes a call due soon.
func (w *Watcher) soon() {
	if soon := time.Now().Add(debounce); w.due.IsZero() || soon.Before(w.due) {
		w.due = soon
		w.wake()
	}
}

// pending is how many bytes of events wait to be read; negative when that can't
// be told.
func (w *Watcher) pending() int {
	n, err := unix.IoctlGetInt(w.number, unix.TIOCINQ)
	if err != nil {
		return -1
	}
	return n
}

// drain takes all events that had come when it was called. Those of one queue
// come in the order in which things happened. The caller holds w.mu.
func (w *Watcher) drain() {
	if w.root < 0 { // the descriptor may be something else's
		return
	}
	left := w.pending()
	w.lost = w.lost || left < 0
	for left > 0 {
		n, err := unix.Read(w.number, w.events[:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN: // equal events that follow each other become one
			return
		case err != nil || n < unix.SizeofInotifyEvent:
			w.lost = true
			w.soon()
			return
		}
		left -= n
		// struct inotify_event, inotify(7): wd, mask, cookie, len, name.
		for b := w.events[:n]; len(b) >= unix.SizeofInotifyEvent; {
			number, mask := int(int32(binary.NativeEndian.Uint32(b))), binary.NativeEndian.Uint32(b[4:])
			end := min(unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(b[12:])), len(b))
			name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
			w.event(number, mask, string(name))
			b = b[end:]
		}
	}
}

// told are the events that are asked for. Writes through an overlay are told as
// they are made but for some rarer kinds; then as the file is closed.
const told = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// event takes what happened to a watched directory, or to a name in one.
func (w *Watcher) event(number int, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.again()
		return
	}
	dir := w.byNumber[number]
	if dir == nil { // its watch was ended, or made anew, and marked then
		return
	}
	w.moved(dir.path)
	if name == "" {
		switch {
		case mask&(unix.IN_DELETE_SELF|unix.IN_IGNORED) != 0:
			w.forget(dir)
		case mask&unix.IN_MOVE_SELF != 0:
			// Where to may not have been told. Or it was, and the directory is
			// watched there already: the kernel tells it after IN_MOVED_TO, and not
			// in the same step (fsnotify_move in linux/fsnotify.h).
			w.drop(dir.path)
			w.add(dir.path)
		}
		return
	}
	if mask&unix.IN_ISDIR == 0 {
		return
	}
	// An event may be late: what counts is what there is now.
	path := manifest.Join(dir.path, name)
	there := w.byPath[path]
	switch {
	case there == nil && mask&(unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ATTRIB) != 0:
		w.add(path)
	case there == nil:
	case mask&(unix.IN_CREATE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0:
		w.drop(path)
		w.add(path)
	case mask&unix.IN_DELETE != 0: // so it was empty
		w.forget(there)
		w.add(path)
	}
}

// forget ends the watch of a directory.
func (w *Watcher) forget(d *watched) {
	_, _ = unix.InotifyRmWatch(w.number, uint32(d.number)) // the watch may have ended with its directory
	delete(w.byPath, d.path)
	delete(w.byNumber, d.number)
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
	w.partial, w.lost = false, true
	w.soon()
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
		if manifest.Beyond(path) != "" { // no scan looks into it
			continue
		}
		below, err := w.addOne(path)
		switch {
		case err == nil:
			w.moved(path)
			todo = append(todo, below...)
		case inode.Gone(err):
		default:
			w.partial = true
			w.soon()
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
	number, err := unix.InotifyAddWatch(w.number, inode.FDPath(fd), told)
	if err != nil {
		return nil, err
	}
	d := &watched{path: path, number: number, inode: st.Ino}
	w.byPath[path], w.byNumber[number], w.byInode[d.inode] = d, d, d
	err = inode.EachName(fd, w.names[:], func(name []byte) error {
		switch err := inode.Lstat(fd, string(name), &st); {
		case err == nil && inode.KindOf(&st) == manifest.KindDir:
			below = append(below, manifest.Join(path, string(name)))
		case err != nil && !inode.Gone(err):
			w.partial = true
			w.soon()
		}
		return nil
	})
	return below, err
}
