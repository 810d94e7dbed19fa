package files

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DiskUse is how much room folders take on the disk, in bytes, with what they hold: a
// file with several names counts once, a sparse one with what is written of it.
// What can't be read isn't counted; no link is followed.
func DiskUse(ctx context.Context, folders ...string) int64 {
	var sum int64
	seen := make(map[[2]uint64]bool)
	var walk func(dir string)
	walk = func(dir string) {
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
			sum += st.Blocks * 512
			if e.IsDir() {
				walk(path)
			}
		}
	}
	for _, f := range folders {
		walk(f)
	}
	return sum
}
