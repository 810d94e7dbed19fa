package gate

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// watcher waits for the ends of processes by their pidfds, all in one place,
// so that each costs no more than a descriptor.
type watcher struct {
	epoll, stop int

	mu   sync.Mutex
	next int            // guarded by mu
	ends map[int]func() // guarded by mu
}

func newWatcher() (*watcher, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot watch processes: %w", err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, stop, &unix.EpollEvent{Events: unix.EPOLLIN})
	}
	if err != nil {
		procDir(stop).close()
		_ = unix.Close(ep)
		return nil, fmt.Errorf("cannot watch processes: %w", err)
	}
	return &watcher{epoll: ep, stop: stop, ends: map[int]func(){}}, nil
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
		n, err := unix.EpollWait(w.epoll, events, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			if e.Fd == 0 {
				return
			}
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

func (w *watcher) end() { _, _ = unix.Write(w.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// close comes after run has returned.
func (w *watcher) close() {
	_ = unix.Close(w.stop)
	_ = unix.Close(w.epoll)
}
