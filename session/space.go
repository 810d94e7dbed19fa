package session

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/files"
)

// The agent is stopped before the disk is full, and when it has written more than
// it may: it is paused, so that nothing is lost, and a person who lets it go on
// lets it write as much again.
const (
	fastest   = 4 << 30 // bytes that a disk takes in a second, at most
	leastRoom = 1 << 30 // bytes that are left to everyone else, where there are
	spaceMost = 5 * time.Second
	spaceMin  = 50 * time.Millisecond

	spaceAgain = time.Minute
)

// space is how a session stands with the disk.
type space struct {
	folder  string    // of the session
	limit   int64     // bytes that it may write; math.MaxInt64 without a limit
	more    int64     // that it may write when it goes on after that
	room    int64     // bytes that have to stay free
	used    int64     // when that was measured last
	wasFree int64     // then
	again   time.Time // not to be measured before, unless it may have to stop
}

func newSpace(folder string, limit int64) *space {
	sp := &space{folder: folder, limit: limit, more: limit, room: leastRoom}
	if limit == 0 {
		sp.limit = math.MaxInt64
	}
	sp.wasFree, _ = free(folder) // unknown: the next look tells
	sp.room = min(sp.room, sp.wasFree/4)
	return sp
}

// free is how much the caller may still write to a folder's filesystem, in bytes.
func free(folder string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, fmt.Errorf("cannot tell how full the disk of %q is: %w", folder, err)
	}
	return int64(min(st.Bavail*uint64(st.Bsize), math.MaxInt64)), nil
}

// look says why the agent has to stop; "" when it needn't. Files are counted only
// when so much of the disk has gone that it may be due to this session. Next is
// when to look again: before the fastest disk could have been filled.
func (sp *space) look(ctx context.Context) (why string, next time.Duration, err error) {
	left, err := free(sp.folder)
	if err != nil {
		return "", spaceMost, err
	}
	// Others make room and take it, too, so that now and then it is measured anyway.
	if begun := time.Now(); sp.used+sp.wasFree-left > sp.limit || left != sp.wasFree && begun.After(sp.again) {
		sp.used, sp.wasFree = files.DiskUse(ctx, filepath.Join(sp.folder, "upper"), filepath.Join(sp.folder, "outer"), filepath.Join(sp.folder, "tmp")), left
		sp.again = time.Now().Add(max(spaceAgain, 200*time.Since(begun)))
	}
	switch {
	case left < sp.room:
		sp.room = left / 2
		return fmt.Sprintf("the disk is nearly full: %s are left where the session's files are", sizeWords(left)), spaceMost, nil
	case sp.used > sp.limit:
		why := fmt.Sprintf("it has written %s, more than its limit of %s", sizeWords(sp.used), sizeWords(sp.limit))
		sp.limit = sp.used + sp.more
		return why, spaceMost, nil
	}
	spare := min(left-sp.room, sp.limit-(sp.used+max(sp.wasFree-left, 0)))
	return "", min(max(time.Duration(float64(spare)/fastest*float64(time.Second))/2, spaceMin), spaceMost), nil
}

// watchSpace pauses the agent when it has to stop, until the session ends. One that
// can't be paused is ended.
func (s *Session) watchSpace(sp *space) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	next := spaceMin
	for {
		select {
		case <-time.After(next):
		case <-s.Done():
			return
		}
		var why string
		var err error
		why, next, err = sp.look(ctx)
		if err != nil {
			s.log.Warn("the session's room on the disk isn't watched", "error", err)
		}
		if why == "" {
			continue
		}
		if _, err := s.Pause(ctx); err != nil {
			s.post(func() { s.stop(api.ByLimit, why+", and it couldn't be paused") })
			return
		}
		s.post(func() {
			s.note(true, "%s: the session is paused. Make room, take back what it wrote, or let it go on as it is", why)
		})
	}
}

// sizeWords is a number of bytes for a person.
func sizeWords(n int64) string {
	f, unit := float64(n), 0
	for ; f >= 1000 && unit < 4; unit++ {
		f /= 1024
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.3g %ciB", f, " KMGT"[unit])
}
