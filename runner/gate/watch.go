package gate

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watcher waits for the ends of processes by their pidfds, all in one place,
// so that each costs no more than a descriptor.
type watcher struct {
	epoll int
	file  *os.File // the same

	mu   sync.Mutex
	next int            // guarded by mu
	ends map[int]func() // guarded by mu
}

func newWatcher() (*watcher, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(ep, true) // for Go's own poller to wait for it
	}
	if err != nil {
		procDir(ep).close()
		return nil, fmt.Errorf("cannot watch processes: %w", err)
	}
	return &watcher{epoll: ep, file: os.NewFile(uintptr(ep), "watcher"), ends: map[int]func(){}}, nil
}

// add calls a function, which must be quick, once the process of a pidfd has
// ended. The number undoes that. A pidfd that is watched already, which has to
// be known, is watched for this instead. Closing a pidfd ends its watch, but
// remove comes first.
func (w *watcher) add(pidfd int, known bool, end func()) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(w.next)}
	operation := unix.EPOLL_CTL_ADD
	if known {
		operation = unix.EPOLL_CTL_MOD
	}
	if err := unix.EpollCtl(w.epoll, operation, pidfd, &event); err != nil {
		return 0, fmt.Errorf("cannot watch a process: %w", err)
	}
	w.ends[w.next] = end
	return w.next, nil
}

func (w *watcher) remove(n int) {
	w.mu.Lock()
	delete(w.ends, n)
	w.mu.Unlock()
}

// run calls the functions until end is called.
func (w *watcher) run() {
	events := make([]unix.EpollEvent, 32)
	for {
		n := 0
		err := whenReadable(w.file, func() bool {
			n, _ = unix.EpollWait(w.epoll, events, 0)
			return n > 0
		})
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			w.mu.Lock()
			end := w.ends[int(e.Fd)]
			delete(w.ends, int(e.Fd))
			w.mu.Unlock()
			if end != nil {
				end()
			}
		}
	}
}

func (w *watcher) end() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) }

// close comes after run has returned.
func (w *watcher) close() { _ = w.file.Close() }
