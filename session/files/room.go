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
	folder string    // of the session
	limit  int64     // bytes that it may write; math.MaxInt64 without a limit
	more   int64     // that it may write when it goes on after that
	again  time.Time // not to be measured before, unless it may have to stop
	bytes  supply
	files  supply
}

// supply is what a filesystem has of one kind: bytes, or inodes.
type supply struct {
	room    int64 // has to stay free
	used    int64 // by the sandbox, when that was measured last
	wasFree int64 // then
}

// newSupply looks at what there is: at most a quarter is kept for everyone else.
func newSupply(free, most int64) supply { return supply{room: min(most, free/4), wasFree: free} }

// gone is what was taken since it was measured, by whomever.
func (s *supply) gone(left int64) int64 { return max(s.wasFree-left, 0) }

// spare is what is there to be used when left is free. What isn't stored yet needs its
// room a second time.
func (s *supply) spare(left, stored int64) int64 {
	return left - max(s.used+s.gone(left)-stored, 0) - s.room
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
	left, _ := free(folder) // unknown: the next look tells
	r := &Room{folder: folder, limit: limit, more: limit, bytes: newSupply(left.Bytes, leastRoom), files: newSupply(left.Files, leastRoom/leastFile)}
	if limit == 0 {
		r.limit = math.MaxInt64
	}
	return r
}

// free is how much the caller may still write to a folder's filesystem. Some count no
// files: there are enough, then.
func free(folder string) (Amount, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return Amount{}, fmt.Errorf("cannot tell how full the disk of %q is: %w", folder, err)
	}
	left := Amount{Bytes: int64(min(st.Bavail*uint64(st.Bsize), math.MaxInt64)), Files: math.MaxInt64}
	if st.Files > 0 {
		left.Files = int64(min(st.Ffree, math.MaxInt64))
	}
	return left, nil
}

// Look says why what runs has to stop; "" when it needn't. Stored is how much of
// what it wrote is in the record already: the rest needs its room a second time.
// Files are counted only when so much of the disk has gone that it may be due to
// them. Next is when to look again: before the fastest disk could have been filled.
func (r *Room) Look(ctx context.Context, stored Amount) (why string, next time.Duration, err error) {
	left, err := free(r.folder)
	if err != nil {
		return "", roomMost, err
	}
	written := func() int64 {
		return r.bytes.used + r.bytes.gone(left.Bytes) + leastFile*min(r.files.gone(left.Files), math.MaxInt64/leastFile/4)
	}
	spare := func() int64 {
		return min(r.bytes.spare(left.Bytes, stored.Bytes), leastFile*min(r.files.spare(left.Files, stored.Files), math.MaxInt64/leastFile))
	}
	moved := left.Bytes != r.bytes.wasFree || left.Files != r.files.wasFree
	// Others make room and take it, too, so that now and then it is measured anyway.
	if begun := time.Now(); written() > r.limit || spare() < 0 || moved && begun.After(r.again) {
		r.measure(ctx, left)
		r.again = time.Now().Add(max(roomAgain, 200*time.Since(begun)))
	}
	if why := r.stops(left, stored); why != "" {
		return why, roomMost, nil
	}
	most := min(spare()/2, r.limit-written())
	return "", min(max(time.Duration(float64(most)/fastest*float64(time.Second))/2, roomMin), roomMost), nil
}

func (r *Room) measure(ctx context.Context, left Amount) {
	used := DiskUse(ctx, below(r.folder)...)
	r.bytes.used, r.bytes.wasFree = used.Bytes, left.Bytes
	r.files.used, r.files.wasFree = used.Files, left.Files
}

// stops says why what runs has to stop, and how much more it may have when it goes on.
func (r *Room) stops(left, stored Amount) string {
	const full = "the disk is nearly full: %s are left where the session's files are"
	switch {
	case r.bytes.spare(left.Bytes, stored.Bytes) < 0:
		r.bytes.room = min(r.bytes.room, max(left.Bytes, 0)) / 2
		return fmt.Sprintf(full, sizeWords(left.Bytes))
	case r.files.spare(left.Files, stored.Files) < 0:
		r.files.room = min(r.files.room, max(left.Files, 0)) / 2
		return fmt.Sprintf(full, fmt.Sprintf("%d files (inodes)", left.Files))
	case r.bytes.used > r.limit:
		why := fmt.Sprintf("it has written %s in %d files, more than its limit of %s", sizeWords(r.bytes.used), r.files.used, sizeWords(r.limit))
		r.limit = r.bytes.used + r.more
		return why
	}
	return ""
}
