package files

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/holder"
	"stepbox/session/e2e/must"
)

// Wherever a sandbox writes, it counts.
func TestRoomCountsAll(t *testing.T) {
	for _, name := range []string{"upper", "outer", "tmp", "mounts/0", "caches/0", "home/upper", "home/own"} {
		folder := t.TempDir()
		r := NewRoom(folder, 1<<20)
		must.OK(t, os.MkdirAll(filepath.Join(folder, name), 0o700))
		must.OK(t, os.WriteFile(filepath.Join(folder, name, "x"), make([]byte, 2<<20), 0o600))
		r.bytes.wasFree += 3 << 20 // others may have made room meanwhile
		if why, _, err := r.Look(context.Background(), Amount{}); err != nil || !strings.Contains(why, "more than its limit") {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
}

// Empty files count for the limit, and a filesystem isn't left without inodes: what the
// record doesn't have yet takes them a second time.
func TestRoomCountsFiles(t *testing.T) {
	folder := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(folder, "tmp"), 0o700))
	r := NewRoom(folder, 1<<20)
	for i := range 1<<20/leastFile + 1 {
		must.OK(t, os.WriteFile(filepath.Join(folder, "tmp", strconv.Itoa(i)), nil, 0o600))
	}
	r.files.wasFree, r.bytes.wasFree = math.MaxInt64, math.MaxInt64 // others may have made room meanwhile
	if why, _, err := r.Look(t.Context(), Amount{}); err != nil || why != "it has written 1 MiB in 257 files, more than its limit of 1 MiB" {
		t.Errorf("empty files: %q, %v", why, err)
	}
	plenty := Amount{Bytes: math.MaxInt64, Files: math.MaxInt64}
	few := Room{limit: math.MaxInt64, files: supply{room: 50, used: 60, wasFree: 120}}
	for _, at := range []struct {
		left, stored int64
		full         bool
	}{{120, 60, false}, {100, 60, false}, {100, 20, true}, {75, 60, true}} {
		now := few
		why := now.stops(Amount{Bytes: math.MaxInt64, Files: at.left}, Amount{Bytes: plenty.Bytes, Files: at.stored})
		if full := why == fmt.Sprintf("the disk is nearly full: %d files (inodes) are left where the session's files are", at.left); full != at.full || full != (why != "") {
			t.Errorf("with %d left and %d stored it is %q", at.left, at.stored, why)
		}
		if at.full && now.stops(Amount{Bytes: math.MaxInt64, Files: at.left}, plenty) != "" {
			t.Error("let go on, it stops at once again")
		}
	}
}

// deep makes folders of one name in one another, with an empty file f in each, and
// opens the last.
func deep(t testing.TB, top, name string, levels int) int {
	t.Helper()
	dir, err := unix.Open(top, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range levels {
		if err == nil {
			err = unix.Mkdirat(dir, name, 0o700)
		}
		below := -1
		if err == nil {
			below, err = unix.Openat(dir, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		if err == nil {
			err = unix.Mknodat(below, "f", unix.S_IFREG|0o600, 0)
		}
		must.OK(t, err)
		unix.Close(dir)
		dir = below
	}
	return dir
}

// What is deeper than a path can say counts, too.
func TestDiskUseDeep(t *testing.T) {
	top := t.TempDir()
	t.Cleanup(func() { _ = holder.RemoveAll(top) })
	dir := deep(t, top, strings.Repeat("d", 200), 50)
	file, err := unix.Openat(dir, "x", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err == nil {
		_, err = unix.Write(file, make([]byte, 1<<20))
	}
	must.OK(t, err)
	unix.Close(file)
	unix.Close(dir)
	if got := DiskUse(context.Background(), top); got.Bytes < 1<<20 || got.Files != 101 {
		t.Errorf("it takes %+v", got)
	}
}
