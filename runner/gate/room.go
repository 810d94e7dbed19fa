package gate

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A held exec takes descriptors, of which a process has only so many. Execs beyond what
// there is room for wait unread until others are decided: none is refused for want of it.
const (
	descriptorsPerExec = 8   // with those that reading it takes for the moment
	descriptorsKept    = 128 // for all else that this process does
	leastRoom          = 4
	mostRoom           = 4096
)

// room is a place for each exec that may be held at a time.
type room struct {
	places chan struct{}
	full   func(most int) // told once that execs wait for a place
	once   sync.Once
}

// newRoom has so many places, or (0) as many as this process may have descriptors for.
func newRoom(full func(most int), places int) *room {
	var limit unix.Rlimit
	if places > 0 {
		return &room{places: make(chan struct{}, places), full: full}
	}
	places = leastRoom
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Cur > descriptorsKept {
		places = int(min(max((limit.Cur-descriptorsKept)/descriptorsPerExec, leastRoom), mostRoom))
	}
	return &room{places: make(chan struct{}, places), full: full}
}

// enter takes a place; false when the gate closes first.
func (r *room) enter(done <-chan struct{}) bool {
	select {
	case r.places <- struct{}{}:
		return true
	default:
	}
	r.tell()
	select {
	case r.places <- struct{}{}:
		return true
	case <-done:
		return false
	}
}

func (r *room) leave() { <-r.places }

func (r *room) tell() {
	r.once.Do(func() {
		if r.full != nil {
			r.full(cap(r.places))
		}
	})
}

// scarce says whether something failed only for want of descriptors or memory here.
func scarce(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// readPatiently is read, tried again while this process is out of descriptors.
func (g *Gate) readPatiently(n notification) (*Exec, error) {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		e, err := g.read(n)
		if !scarce(err) {
			return e, err
		}
		g.room.tell()
		select {
		case <-time.After(pause):
		case <-g.done:
			return nil, errGone
		}
	}
}
