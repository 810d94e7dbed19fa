package ledger

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// room is room on the disk for the record of a session's end: files without names, so
// that a crash gives it back. An inode comes with each.
type room struct {
	end    *os.File // enough for hundreds of open actions
	output *os.File // for the last of the output, packed, which comes before that
}

const (
	endRoom    = 1 << 20 // bytes
	outputRoom = 3 << 19
)

// keepRoom takes the room. A filesystem that can't is one without such a
// promise; one that is full says so before anything runs.
func keepRoom(dir string) (*room, error) {
	r := &room{}
	for _, of := range []struct {
		file **os.File
		size int64
	}{{&r.end, endRoom}, {&r.output, outputRoom}} {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err == nil {
			*of.file = os.NewFile(uintptr(fd), "reserve")
			err = unix.Fallocate(fd, 0, 0, of.size)
		}
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			r.free()
			return nil, fmt.Errorf("cannot start a session: there is no room for its record in %q: make room (df, df -i), or set STEPBOX_DATA to a folder elsewhere: %w", dir, err)
		}
	}
	return r, nil
}

// shrink gives the room for the last of the output back.
func (r *room) shrink() { giveBack(&r.output) }

// free gives all of it back; again is nothing.
func (r *room) free() {
	giveBack(&r.output)
	giveBack(&r.end)
}

func giveBack(f **os.File) {
	_ = (*f).Close() // an error is that there is none
	*f = nil
}
