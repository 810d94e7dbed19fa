package files

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/holder"
)

// Wherever a sandbox writes, it counts.
func TestRoomCountsAll(t *testing.T) {
	for _, name := range []string{"upper", "outer", "tmp", "mounts/0", "caches/0", "home/upper", "home/own"} {
		folder := t.TempDir()
		r := NewRoom(folder, 1<<20)
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "x"), make([]byte, 2<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		r.wasFree += 3 << 20 // others may have made room meanwhile
		if why, _, err := r.Look(context.Background(), 0); err != nil || !strings.Contains(why, "more than its limit") {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
}

// What is deeper than a path can say counts, too.
func TestDiskUseDeep(t *testing.T) {
	top := t.TempDir()
	t.Cleanup(func() { _ = holder.RemoveAll(top) })
	dir, err := unix.Open(top, unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 200)
	for range 50 {
		if err := unix.Mkdirat(dir, name, 0o700); err != nil {
			t.Fatal(err)
		}
		below, err := unix.Openat(dir, name, unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(dir)
		dir = below
	}
	file, err := unix.Openat(dir, "x", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err == nil {
		_, err = unix.Write(file, make([]byte, 1<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(file)
	unix.Close(dir)
	if got := DiskUse(context.Background(), top); got < 1<<20 {
		t.Errorf("it takes %d bytes", got)
	}
}
