package ledger

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// room is room on the disk for the record of the session's end. It is a file
// without a name, so that a crash gives it back.
type room struct{ f *os.File }

// reserved is enough for the end of a session with hundreds of open actions, and
// for the last of its output, packed, which it gives way to before that.
const (
	reserved = 1 << 20 // bytes
	output   = 3 << 19 // bytes beside them
)

// keepRoom takes the room. A filesystem that can't is one without such a
// promise; one that is full says so before anything runs.
func keepRoom(dir string) (*room, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &room{}, nil
	}
	f := os.NewFile(uintptr(fd), "reserve")
	err = unix.Fallocate(fd, 0, 0, reserved+output)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		f.Close()
		return nil, fmt.Errorf("cannot start a session: there is no room for its record in %q: make room, or set STEPBOX_DATA to a folder elsewhere: %w", dir, err)
	}
	return &room{f}, nil
}

// shrink gives the room for the last of the output back.
func (r *room) shrink() {
	if r.f != nil {
		_ = r.f.Truncate(reserved) // then it is as without that room
	}
}

// free gives the room back; again is nothing.
func (r *room) free() {
	if r != nil && r.f != nil {
		r.f.Close()
		r.f = nil
	}
}
