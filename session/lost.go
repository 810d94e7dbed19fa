package session

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
)

// lost is what couldn't be recorded. The session stops at the first of it, so
// there is never much; at the end, when there may be room again, it is told
// anew as it stands then. Owned by the loop.
type lost struct {
	actions     []int
	checkpoints []api.Event
}

// maxLost bounds what is told anew, in events.
const maxLost = 4096

func (l *lost) add(events []api.Event) {
	for _, e := range events {
		switch {
		case len(l.actions)+len(l.checkpoints) >= maxLost:
			return
		case e.Action != nil && !slices.Contains(l.actions, e.Action.N):
			l.actions = append(l.actions, e.Action.N)
		case e.Checkpoint != nil:
			l.checkpoints = append(l.checkpoints, e)
		}
	}
}

// events tells it anew. Actions that still run or wait are told by the end.
func (l *lost) events(s *Session) []api.Event {
	events := l.checkpoints
	for _, n := range l.actions {
		if a := s.action(n); a != nil && a.State != api.ActionHeld && a.State != api.ActionRunning {
			events = append(events, s.actionEvent(a, "counted"))
		}
	}
	return events
}

// reserve is room on the disk for the record of the session's end. It is a file
// without a name, so that a crash gives it back.
type reserve struct{ f *os.File }

// reserved is enough for the end of a session with hundreds of open actions.
const reserved = 1 << 20 // bytes

// keepRoom takes the room. A filesystem that can't is one without such a
// promise; one that is full says so before anything runs.
func keepRoom(dir string) (*reserve, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &reserve{}, nil
	}
	f := os.NewFile(uintptr(fd), "reserve")
	err = unix.Fallocate(fd, 0, 0, reserved)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		f.Close()
		return nil, fmt.Errorf("cannot start a session: there is no room for its record in %q: make room, or set STEPBOX_DATA to a folder elsewhere: %w", dir, err)
	}
	return &reserve{f}, nil
}

// free gives the room back; again is nothing.
func (r *reserve) free() {
	if r != nil && r.f != nil {
		r.f.Close()
		r.f = nil
	}
}
