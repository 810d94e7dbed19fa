package holder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
		failures = append(failures, removeCgroup(ctx, folder))
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
		for _, thaw := range g.Thaw {
			_ = os.WriteFile(thaw.Path, []byte(thaw.Value), 0) // gone with its cgroup, perhaps
		}
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

// RemoveAll removes a folder of ours with all that it holds, also the folder of
// mode 000 that overlayfs makes below its work folder.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
			if entry != nil && entry.IsDir() {
				_ = unix.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("cannot remove %q: %w", dir, err)
	}
	return nil
}

// removeCgroup removes an empty cgroup and those in it; the kernel takes a moment
// to see that the last process left it.
func removeCgroup(ctx context.Context, folder string) error {
	entries, _ := os.ReadDir(folder) // gone already, perhaps
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(ctx, filepath.Join(folder, e.Name())); err != nil {
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
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot remove cgroup %q: %w", folder, err)
		case <-time.After(wait):
		}
	}
}
