package files

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	fastest   = 4 << 30 // bytes that a disk takes in a second, at most
	leastRoom = 1 << 30 // bytes that are left to everyone else, where there are
	roomMost  = 5 * time.Second
	roomMin   = 50 * time.Millisecond

	roomAgain = time.Minute
)

// Room is how a sandbox stands with the disk: whether it has written more than it
// may, or the disk is nearly full. It belongs to one goroutine.
type Room struct {
	folder  string    // of the session
	limit   int64     // bytes that it may write; math.MaxInt64 without a limit
	more    int64     // that it may write when it goes on after that
	room    int64     // bytes that have to stay free
	used    int64     // when that was measured last
	wasFree int64     // then
	again   time.Time // not to be measured before, unless it may have to stop
}

// below are the folders of a session in which a sandbox writes: to its project and that of
// an outer repository, to /tmp, to further folders, caches, and a home of its own.
func below(folder string) (out []string) {
	for _, name := range []string{"upper", "outer", "tmp", "mounts", "caches", "home"} {
		out = append(out, filepath.Join(folder, name))
	}
	return out
}

// NewRoom looks at a sandbox's folder, which has what it writes below. Limit is how
// many bytes that may be; 0: as many as there is room for.
func NewRoom(folder string, limit int64) *Room {
	r := &Room{folder: folder, limit: limit, more: limit, room: leastRoom}
	if limit == 0 {
		r.limit = math.MaxInt64
	}
	r.wasFree, _ = free(folder) // unknown: the next look tells
	r.room = min(r.room, r.wasFree/4)
	return r
}

// free is how much the caller may still write to a folder's filesystem, in bytes.
func free(folder string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, fmt.Errorf("cannot tell how full the disk of %q is: %w", folder, err)
	}
	return int64(min(st.Bavail*uint64(st.Bsize), math.MaxInt64)), nil
}

// Look says why what runs has to stop; "" when it needn't. Stored is how many bytes of
// what it wrote are in the record already: the rest needs its room a second time.
// Files are counted only when so much of the disk has gone that it may be due to
// them. Next is when to look again: before the fastest disk could have been filled.
func (r *Room) Look(ctx context.Context, stored int64) (why string, next time.Duration, err error) {
	left, err := free(r.folder)
	if err != nil {
		return "", roomMost, err
	}
	written := func() int64 { return r.used + max(r.wasFree-left, 0) }
	spare := func() int64 { return left - max(written()-stored, 0) - r.room }
	// Others make room and take it, too, so that now and then it is measured anyway.
	if begun := time.Now(); written() > r.limit || spare() < 0 || left != r.wasFree && begun.After(r.again) {
		r.used, r.wasFree = DiskUse(ctx, below(r.folder)...), left
		r.again = time.Now().Add(max(roomAgain, 200*time.Since(begun)))
	}
	switch {
	case spare() < 0:
		r.room = min(r.room, max(left, 0)) / 2
		return fmt.Sprintf("the disk is nearly full: %s are left where the session's files are", sizeWords(left)), roomMost, nil
	case r.used > r.limit:
		why := fmt.Sprintf("it has written %s, more than its limit of %s", sizeWords(r.used), sizeWords(r.limit))
		r.limit = r.used + r.more
		return why, roomMost, nil
	}
	most := min(spare()/2, r.limit-written())
	return "", min(max(time.Duration(float64(most)/fastest*float64(time.Second))/2, roomMin), roomMost), nil
}
