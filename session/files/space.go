package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Bounds of folders in one another, which an agent makes: how long a path is used, as the
// kernel takes no longer one than 4096 bytes, and how deep it is looked. What is deeper is
// taken for more than any limit.
const (
	longest = 3500
	deepest = 20_000
	noLimit = 1 << 50
)

// leastFile is what a file counts for at least, in bytes, also an empty one: a
// filesystem has only so many.
const leastFile = 4 << 10

// Amount is what is taken, or free, on a disk.
type Amount struct {
	Bytes int64 // each file counts for at least leastFile
	Files int64 // of any kind, as inodes
}

// DiskUse is how much room folders take on the disk, with what they hold: a
// file with several names counts once, a sparse one with what is written of it.
// What can't be read isn't counted; no link is followed.
func DiskUse(ctx context.Context, folders ...string) Amount {
	var sum Amount
	seen := make(map[[2]uint64]bool)
	var walk func(dir string, deep int)
	walk = func(dir string, deep int) {
		if deep > deepest {
			sum.Bytes += noLimit
			return
		}
		if len(dir) > longest { // its path begins anew
			fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return
			}
			defer unix.Close(fd)
			dir = fmt.Sprintf("/proc/self/fd/%d", fd)
		}
		entries, _ := os.ReadDir(dir) // what was read until it failed
		for _, e := range entries {
			if ctx.Err() != nil {
				return
			}
			path := filepath.Join(dir, e.Name())
			var st unix.Stat_t
			if unix.Lstat(path, &st) != nil {
				continue
			}
			if at := [2]uint64{st.Dev, st.Ino}; st.Nlink > 1 && !e.IsDir() {
				if seen[at] {
					continue
				}
				seen[at] = true
			}
			sum.Bytes, sum.Files = sum.Bytes+max(st.Blocks*512, leastFile), sum.Files+1
			if e.IsDir() {
				walk(path, deep+1)
			}
		}
	}
	for _, f := range folders {
		walk(f, 0)
	}
	return sum
}
