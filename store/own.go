package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrOwned says that another process writes a session's record.
var ErrOwned = errors.New("another process has the session")

// ReadOnly says whether the record can't be written through this Store.
func (s *Store) ReadOnly() bool { return s.readonly }

// Own makes this process the one that writes a session's record, until release or
// its end: the supervisor of a live one, and of others who applies something of it.
// It locks the session's folder, see flock(2). ErrOwned: another one does.
func (s *Store) Own(session string) (release func() error, err error) {
	fail := func(err error) (func() error, error) {
		return nil, fmt.Errorf("cannot take hold of session %.80q: %w", session, err)
	}
	if s.readonly {
		return fail(ErrReadOnly)
	}
	if err := checkID(session); err != nil {
		return fail(err)
	}
	dir := s.SessionDir(session)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(fileFault(s.dir, err))
	}
	f, err := os.Open(dir)
	if err != nil {
		return fail(err)
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		f.Close()
		if err == unix.EWOULDBLOCK {
			err = ErrOwned
		}
		return fail(err)
	}
	return func() error { return unlock(f) }, nil
}

// unlock closes a locked file. The lock is given up first: a process that was just forked has the
// file as well until it starts its program, and would keep it, see flock(2).
func unlock(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

// Owned says whether a process writes a session's record now.
func (s *Store) Owned(session string) bool {
	f, err := os.Open(s.SessionDir(session))
	if err != nil {
		return false
	}
	defer unlock(f)
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

// Unsettled lists the sessions of which something is being applied or undone, or
// was when its process died.
func (s *Store) Unsettled(ctx context.Context) ([]string, error) {
	out, err := columnOf[string](ctx, s, `SELECT DISTINCT session FROM applies WHERE state IN ('open', 'undoing')`)
	if err != nil {
		return nil, fmt.Errorf("cannot look for applies: %w", err)
	}
	return out, nil
}
