package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/holder"
)

const guardName = "guard.json"

// lockFolder locks a run-time folder for as long as the file, or a copy of it in
// another process, is open. See flock(2).
func lockFolder(dir string) (*os.File, error) { return openLock(dir, os.O_CREATE) }

func openLock(dir string, how int) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, holder.LockName), os.O_RDWR|how, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the sandbox's run-time folder: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot lock the sandbox's run-time folder: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil || st.Nlink == 0 {
		file.Close()
		return nil, fmt.Errorf("cannot lock the sandbox's run-time folder: it is gone (%w)", errors.Join(fs.ErrNotExist, err))
	}
	return file, nil
}

// between runs f while nobody else makes a run-time folder in runDir or takes
// one over: to whoever looks, a folder is there with its lock held, or not at
// all. The lock is runDir's own and held for a few system calls.
func between(runDir string, f func() error) error {
	dir, err := os.OpenFile(runDir, unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("cannot lock the run-time folders: %w", err)
	}
	defer dir.Close()
	for {
		if err = unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("cannot lock the run-time folders: %w", err)
	}
	return f()
}

// makeLocked makes a run-time folder and locks it: who gets the lock later
// knows that neither supervisor nor holder lives.
func makeLocked(dir string) (lock *os.File, err error) {
	err = between(filepath.Dir(dir), func() error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("cannot make the sandbox's run-time folder: %w", err)
		}
		if lock, err = lockFolder(dir); err != nil {
			os.Remove(dir)
		}
		return err
	})
	return lock, err
}

func writeGuard(dir string, guard holder.Guard) error {
	encoded, err := json.Marshal(guard)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, guardName)
	err = os.WriteFile(path+".new", encoded, 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("cannot note what the sandbox consists of: %w", err)
	}
	return nil
}

// Sweep removes what sandboxes left whose supervisor and holder both died, as
// after a crash of the machine, and gives their names. Those that live are left
// alone, and so is what isn't a sandbox's; what couldn't be removed is in the error.
func Sweep(ctx context.Context, runDir string) ([]string, error) {
	entries, err := os.ReadDir(runDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look for leftovers: %w", err)
	}
	var swept []string
	var failures []error
	for _, entry := range entries {
		ok, err := SweepOne(ctx, runDir, entry.Name())
		if failures = append(failures, err); ok {
			swept = append(swept, entry.Name())
		}
	}
	return swept, errors.Join(failures...)
}

// SweepOne is Sweep for one sandbox, and says whether there was something of it. It
// leaves alone what else is in runDir, which may be anybody's folder.
func SweepOne(ctx context.Context, runDir, id string) (swept bool, err error) {
	if !validID(id) {
		return false, nil
	}
	dir := filepath.Join(runDir, id)
	if _, err := os.Lstat(dir); err != nil {
		return false, nil
	}
	var lock *os.File
	if between(runDir, func() (err error) { lock, err = takeOver(dir); return err }) != nil {
		return false, nil // it lives, just went, or is no sandbox's
	}
	defer lock.Close()
	if err := sweep(ctx, dir); err != nil {
		return false, fmt.Errorf("cannot remove what session %q left: %w", id, err)
	}
	return true, nil
}

// Gone waits until nothing is left of a sandbox whose supervisor died, which its
// holder sees to, or else Sweep here. An error says that something still is.
func Gone(ctx context.Context, runDir, id string) error {
	if !validID(id) {
		return fmt.Errorf("cannot use %q as a sandbox's name", id)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		_, failure := SweepOne(ctx, runDir, id)
		if _, err := os.Lstat(filepath.Join(runDir, id)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the sandbox of session %s isn't gone: its run-time folder is %q", id, filepath.Join(runDir, id)), failure)
		case <-time.After(wait):
		}
	}
}

// takeOver locks the folder of a sandbox that has nobody. It makes nothing: a
// folder that its owner is removing must not grow again. Only its lock, which goes
// last, shows that a folder is a sandbox's: one without is left alone, but for an
// empty one, whose maker died at once or whose remover before the end.
func takeOver(dir string) (*os.File, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return nil, fs.ErrInvalid
	}
	lock, err := openLock(dir, unix.O_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) >= removing {
		err = errors.Join(err, os.Remove(dir))
	}
	if err != nil {
		return nil, err
	}
	if is, err := lock.Stat(); err != nil || !is.Mode().IsRegular() || is.Size() > 0 {
		lock.Close()
		return nil, fs.ErrInvalid
	}
	return lock, nil
}

// removing is longer than the removal of a run-time folder takes.
const removing = time.Minute

func sweep(ctx context.Context, dir string) error {
	guard := holder.Guard{}
	encoded, err := os.ReadFile(filepath.Join(dir, guardName))
	if err == nil {
		err = json.Unmarshal(encoded, &guard)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The folder that says what there is goes last.
	guard.Dirs = append(slices.DeleteFunc(guard.Dirs, func(d string) bool { return d == dir }), dir)
	pidfd := -1
	if guard.PID > 1 {
		// PID 1 follows its supervisor by itself; a frozen tree may keep it.
		if fd, err := unix.PidfdOpen(guard.PID, 0); err == nil {
			defer unix.Close(fd)
			if status, err := box.ReadStatus(guard.PID); err == nil && status.Start == guard.Start {
				pidfd = fd
			}
		}
	}
	return guard.Clean(ctx, pidfd)
}
