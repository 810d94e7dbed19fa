package gate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// What lies in a mount that the sandbox hasn't came by a descriptor, and its path leads elsewhere.
func TestForeignMounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"), 0o755))
	foreign, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if errors.Is(err, unix.EPERM) {
		t.Skip("only root makes mounts")
	}
	must.OK(t, err)
	defer unix.Close(foreign)
	own, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	must.OK(t, err)
	defer unix.Close(own)
	thread, err := openProc(os.Getpid())
	must.OK(t, err)
	defer thread.close()
	for fd, want := range map[int]error{own: nil, foreign: errForeign} {
		v := &view{proc: thread, cwd: fd, programs: &programs{}}
		if err := v.stands(); !errors.Is(err, want) {
			t.Errorf("standing there: %v, want %v", err, want)
		}
		tool, err := unix.Openat(fd, "tool", unix.O_PATH|unix.O_CLOEXEC, 0)
		must.OK(t, err)
		if _, _, err := v.examine(tool); !errors.Is(err, want) {
			t.Errorf("running what is there: %v, want %v", err, want)
		}
		must.OK(t, unix.Close(tool))
	}
}
