package holder

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// However deep a tree is, whatever modes are in it, and however few files may be
// open, it goes; what its links lead to stays.
func TestRemoveAllDeep(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept")
	top := filepath.Join(t.TempDir(), "top")
	for _, dir := range []string{kept, top} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(kept, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(top, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var shut []int // folders of mode 000, once all is made
	for i := range 600 {
		for _, err := range []error{
			unix.Mkdirat(at, "ddddddddddddddddddddddddddddddddd", 0o700), unix.Mkdirat(at, strconv.Itoa(i), 0), unix.Symlinkat(kept, at, "link"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		next, err := unix.Openat(at, "ddddddddddddddddddddddddddddddddd", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if i%200 == 199 {
			shut = append(shut, at)
		} else {
			unix.Close(at)
		}
		at = next
	}
	for _, fd := range append(shut, at) {
		if err := unix.Fchmod(fd, 0); err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(len(open) + 8)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err = RemoveAll(top)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("it is there still: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(kept, "file")); err != nil {
		t.Error("what a link leads to was removed")
	}
}
