package cli

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// whenUnread calls lost once nobody can read what is written to a pipe or a socket, which is
// else noticed with the next that is written. It never does for other files: a terminal that
// hangs up sends a signal. It is over when stop returns.
func whenUnread(f *os.File, lost func()) (stop func(), err error) {
	cannot := func(err error) (func(), error) {
		return nil, fmt.Errorf("cannot watch whether %s is read: %w", f.Name(), err)
	}
	st, err := f.Stat()
	if err != nil {
		return cannot(err)
	}
	if st.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return func() {}, nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return cannot(err)
	}
	over, end, err := os.Pipe() // its end is what stop is noticed by
	if err != nil {
		return cannot(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		gone := false
		_ = conn.Control(func(fd uintptr) { // it fails where f is closed: its owner knows
			fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(over.Fd())}} // both ends' going is always told
			for {
				if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
					break
				}
			}
			gone = fds[0].Revents != 0 && fds[1].Revents == 0
		})
		if gone {
			lost()
		}
	}()
	return func() {
		_ = end.Close()
		<-left
		_ = over.Close()
	}, nil
}
