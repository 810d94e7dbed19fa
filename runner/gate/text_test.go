package gate

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// What the gate says about the kernel is so: a running program's file can be
// written, or it can't.
func TestTextIsProtectedAsSaid(t *testing.T) {
	dir := t.TempDir()
	prog := filepath.Join(dir, "prog")
	copyFile(t, prog, "/bin/sleep")
	b := start(t, setup{args: []string{prog, "60"}})
	b.eventually("it runs", func() bool {
		if len(b.seen()) == 0 {
			return false
		}
		exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(b.seen()[0].PID), "exe"))
		return err == nil && exe == prog
	})
	fd, err := unix.Open(prog, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	if protected := errors.Is(err, unix.ETXTBSY); protected != textProtected() {
		t.Errorf("protected: %v, said: %v", err, textProtected())
	}
}
