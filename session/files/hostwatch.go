package files

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"stepbox/runner/overlay/diff"
)

// hostWatch tells when something moves in the project's folders that hold files
// which the session changed, so that whoever looks at the changes looks again. It
// is a hint: where it can't watch, the next look finds it all the same. The zero
// value is ready; it is safe for concurrent use.
type hostWatch struct {
	mu      sync.Mutex
	in      *fsnotify.Watcher // guarded by mu; nil: none yet, or closed
	watched map[string]bool   // guarded by mu
	closed  bool              // guarded by mu
	ended   sync.WaitGroup
}

const (
	maxHostWatches = 512                    // folders
	hostDebounce   = 200 * time.Millisecond // from the first event to the call
)

// follow watches the folders of changed files, besides those that it watches. Moved
// is called from a goroutine of its own, until close.
func (h *hostWatch) follow(folder string, changes []diff.Change, moved func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	if h.in == nil {
		in, err := fsnotify.NewWatcher()
		if err != nil {
			return // as above: only a hint is missing
		}
		h.in, h.watched = in, make(map[string]bool)
		h.ended.Go(func() { hear(in, moved) })
	}
	for i := range changes {
		dir := filepath.Join(folder, filepath.Dir(changes[i].Path))
		if len(h.watched) < maxHostWatches && !h.watched[dir] && h.in.Add(dir) == nil {
			h.watched[dir] = true
		}
	}
}

// hear calls moved a little after something happened, until the watcher is closed.
func hear(in *fsnotify.Watcher, moved func()) {
	var due <-chan time.Time
	for {
		select {
		case _, ok := <-in.Events:
			if !ok {
				return
			}
		case _, ok := <-in.Errors: // events were lost: something happened
			if !ok {
				return
			}
		case <-due:
			due = nil
			moved()
			continue
		}
		if due == nil {
			due = time.After(hostDebounce)
		}
	}
}

// close ends it and waits.
func (h *hostWatch) close() {
	h.mu.Lock()
	in := h.in
	h.in, h.closed = nil, true
	h.mu.Unlock()
	if in != nil {
		_ = in.Close() // nothing is left to be told
		h.ended.Wait()
	}
}
