package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// schemaLock keeps a record from being made twice: whoever has it open holds the lock
// shared, whoever makes it holds it exclusively (flock(2); the kernel drops it when the process dies).
type schemaLock struct{ f *os.File }

// patience is how long Open waits for others that make the record, or have one open that
// a copy took the place of.
const (
	patience  = 2 * time.Second
	lockPause = 5 * time.Millisecond
)

func openLock(dir string, write bool) (*schemaLock, error) {
	flags := os.O_RDONLY
	if write {
		flags = os.O_RDWR | os.O_CREATE
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return &schemaLock{f}, nil
}

func (l *schemaLock) try(how int) (bool, error) {
	for {
		err := unix.Flock(int(l.f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return false, fmt.Errorf("cannot lock %q: %w", l.f.Name(), err)
		}
	}
}

// wait tries until it has the lock, ctx is done or the time is over.
func (l *schemaLock) wait(ctx context.Context, how int, most time.Duration) (bool, error) {
	end := time.NewTimer(most)
	defer end.Stop()
	for {
		ok, err := l.try(how)
		if ok || err != nil {
			return ok, err
		}
		select {
		case <-time.After(lockPause):
		case <-end.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (l *schemaLock) close() error {
	if l == nil {
		return nil
	}
	return l.f.Close()
}
