package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/holder"
)

const (
	lockName  = "lock"
	guardName = "guard.json"
)

// lockFolder locks a run-time folder for as long as the file, or a copy of it in
// another process, is open. See flock(2).
func lockFolder(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the sandbox's run-time folder: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot lock the sandbox's run-time folder: %w", err)
	}
	return file, nil
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
// alone; what couldn't be removed is in the error.
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
		if !entry.IsDir() || !validID(entry.Name()) {
			continue
		}
		dir := filepath.Join(runDir, entry.Name())
		lock, err := lockFolder(dir)
		if err != nil {
			continue // it lives, or just went
		}
		err = sweep(ctx, dir)
		lock.Close()
		if err != nil {
			failures = append(failures, fmt.Errorf("cannot remove what session %q left: %w", entry.Name(), err))
			continue
		}
		swept = append(swept, entry.Name())
	}
	return swept, errors.Join(failures...)
}

func sweep(ctx context.Context, dir string) error {
	guard := holder.Guard{}
	encoded, err := os.ReadFile(filepath.Join(dir, guardName))
	if err == nil {
		err = json.Unmarshal(encoded, &guard)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	guard.Dirs = []string{dir}
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
