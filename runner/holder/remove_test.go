package holder

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// However deep a tree is, whatever modes are in it, and however few files may be
// open, it goes; what its links lead to stays.
func TestRemoveAllDeep(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept")
	top := filepath.Join(t.TempDir(), "top")
	for _, dir := range []string{kept, top} {
		must.OK(t, os.Mkdir(dir, 0o700))
	}
	must.OK(t, os.WriteFile(filepath.Join(kept, "file"), nil, 0o600))
	at, err := unix.Open(top, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must.OK(t, err)
	var shut []int // folders of mode 000, once all is made
	for i := range 600 {
		for _, err := range []error{
			unix.Mkdirat(at, "ddddddddddddddddddddddddddddddddd", 0o700), unix.Mkdirat(at, strconv.Itoa(i), 0), unix.Symlinkat(kept, at, "link"),
		} {
			must.OK(t, err)
		}
		next, err := unix.Openat(at, "ddddddddddddddddddddddddddddddddd", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must.OK(t, err)
		if i%200 == 199 {
			shut = append(shut, at)
		} else {
			unix.Close(at)
		}
		at = next
	}
	for _, fd := range append(shut, at) {
		must.OK(t, unix.Fchmod(fd, 0))
		unix.Close(fd)
	}
	open, err := os.ReadDir("/proc/self/fd")
	must.OK(t, err)
	var limit unix.Rlimit
	must.OK(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	few := limit
	few.Cur = uint64(len(open) + 8)
	must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	err = RemoveAll(top)
	must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	must.OK(t, err)
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("it is there still: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(kept, "file")); err != nil {
		t.Error("what a link leads to was removed")
	}
}
