package holder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Write is a value for a file of a cgroup.
type Write struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Guard is what has to go when a sandbox does.
type Guard struct {
	PID     int      `json:"pid"`     // of PID 1, on the host; 0 while there is none
	Start   uint64   `json:"start"`   // its start time in clock ticks after boot, which with PID names the process
	Thaw    []Write  `json:"thaw"`    // frozen processes of a v1 cgroup don't die
	Cgroups []string `json:"cgroups"` // folders, children before parents
	Dirs    []string `json:"dirs"`    // run-time folders; removed with all they hold
}

// Clean ends the sandbox and removes what it leaves, until ctx ends. It may be
// called again, and by several at once. pidfd names PID 1 unless it is negative.
func (g Guard) Clean(ctx context.Context, pidfd int) error {
	var failures []error
	if pidfd >= 0 {
		failures = append(failures, g.kill(ctx, pidfd))
	}
	for _, folder := range g.Cgroups {
		failures = append(failures, g.removeCgroup(ctx, folder))
	}
	for _, dir := range g.Dirs {
		failures = append(failures, RemoveAll(dir))
	}
	return errors.Join(failures...)
}

// kill ends PID 1, with which the kernel ends its pid namespace, and waits.
func (g Guard) kill(ctx context.Context, pidfd int) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
			return fmt.Errorf("cannot kill the sandbox: %w", err)
		}
		g.thaw()
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(wait/time.Millisecond))
		if n > 0 {
			return nil
		}
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("cannot wait for the sandbox to end: %w", err)
		}
		if ctx.Err() != nil {
			return errors.New("the sandbox didn't end in time")
		}
	}
}

// LockName is the file in a run-time folder that is locked while somebody has it.
const LockName = "lock"

// RemoveAll removes a folder of ours with all that it holds, however deep and of
// whatever modes an agent, or overlayfs in its work folder, made it. By its lock, which goes last,
// a run-time folder is known to whoever finds half of it.
func RemoveAll(dir string) error {
	var err error
	if is, failed := os.Lstat(dir); failed == nil && is.IsDir() {
		entries, _ := os.ReadDir(dir) // what can't be read is made to be below
		for _, e := range entries {
			if e.Name() != LockName && err == nil {
				err = removeAll(filepath.Join(dir, e.Name()))
			}
		}
	}
	if err == nil {
		err = removeAll(dir)
	}
	if err != nil {
		return fmt.Errorf("cannot remove %q: %w", dir, err)
	}
	return nil
}

func (g Guard) thaw() {
	for _, thaw := range g.Thaw {
		_ = os.WriteFile(thaw.Path, []byte(thaw.Value), 0) // gone with its cgroup, perhaps, or never made
	}
}

// removeCgroup removes a cgroup and those in it, if there is one. What is still
// in it is killed, and thawed so that it dies: all of them are the sandbox's,
// whoever there was to end it. The kernel takes a moment to see that the last
// process left.
func (g Guard) removeCgroup(ctx context.Context, folder string) error {
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, _ := os.ReadDir(folder) // gone already, perhaps
	for _, e := range entries {
		if e.IsDir() {
			if err := g.removeCgroup(ctx, filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := unix.Rmdir(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != unix.EBUSY {
			return fmt.Errorf("cannot remove cgroup %q: %w", folder, err)
		}
		killMembers(folder)
		g.thaw()
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot remove cgroup %q: %w", folder, err)
		case <-time.After(wait):
		}
	}
}

// killMembers kills the processes of a cgroup. A number is looked at again once
// it is held by a descriptor: it may have become another process's.
func killMembers(folder string) {
	for _, pid := range members(folder) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it is gone
		}
		if slices.Contains(members(folder), pid) {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it is gone, then
		}
		unix.Close(fd)
	}
}

func members(folder string) []int {
	text, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs")) // gone with the folder, perhaps
	var pids []int
	for field := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}
