package session

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"stepbox/session/api"
	"stepbox/session/files"
)

// pausedAgain is how often it is looked whether a paused session goes on.
const pausedAgain = 100 * time.Millisecond

// sharedEvery is how often it is looked what the agent has of shared memory, where
// nothing bounds that.
const sharedEvery = time.Second

// watchSpace pauses the agent before the disk is full, and when it has written more
// than it may, or has more shared memory, until the session ends: so nothing is lost, and a person who lets it
// go on lets it write as much again. One that can't be paused is ended.
func (s *Session) watchSpace(room *files.Room) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	next, stopped := time.Duration(0), false
	shares := int64(1) // how many times what it may have of shared memory it may have now
	for {
		select {
		case <-time.After(next):
		case <-s.loop.Done():
			return
		}
		if stopped { // nothing is written before a person lets it go on
			if err := s.loop.Call(ctx, func() { stopped = s.thaw != nil }); err != nil || stopped {
				next = pausedAgain
				continue
			}
		}
		var why string
		var err error
		scanned := s.files.Scanned()
		why, next, err = room.Look(ctx, files.Amount{Bytes: scanned.Bytes(), Files: int64(scanned.Len())})
		if err != nil {
			s.log.Warn("the session's room on the disk isn't watched", "error", err)
		}
		words, again := s.crowded(ctx, &shares)
		if why, next = cmp.Or(why, words), min(next, again); why == "" {
			continue
		}
		if _, err := s.Pause(ctx); err != nil {
			s.loop.Post(func() { s.stop(api.ByLimit, why+", and it couldn't be paused") })
			return
		}
		stopped, next = true, pausedAgain
		s.loop.Post(func() {
			s.note(true, "%s: the session is paused. Make room, roll back what it wrote, or let it go on as it is", why)
		})
	}
}

// crowded says why the agent has to stop for the shared memory that it has, if that is
// more than so many times what it may have; once more, then, when it goes on. It is to
// be looked at again by then.
func (s *Session) crowded(ctx context.Context, times *int64) (why string, again time.Duration) {
	shared, bound := s.box.SharedMemory(ctx)
	switch {
	case bound == 0:
		return "", math.MaxInt64
	case shared <= bound**times:
		return "", sharedEvery
	}
	why = fmt.Sprintf("its programs have %d MiB of shared memory, and may have %d MiB", shared>>20, bound**times>>20)
	*times = 1 + shared/bound
	return why, sharedEvery
}
