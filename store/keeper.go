package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// keeper makes commits durable and keeps the log short, off the way of the
// commits themselves: with synchronous=NORMAL SQLite syncs only when it moves
// the log into the database, so power loss could take much more than the last
// second otherwise.
type keeper struct {
	db    *sql.DB
	path  string      // of the database
	file  os.FileInfo // which it is
	gone  func()      // told when it isn't any more
	wal   *os.File
	dirty chan struct{} // holds one: something was committed
	stop  context.CancelFunc
	done  sync.WaitGroup
}

const (
	syncEvery = time.Second
	moveAfter = 4 << 20   // bytes of log that aren't in the database
	moveHard  = 128 << 20 // bytes of log at which writers may have to wait for it
	pageSize  = 4096      // SQLite's default
)

func newKeeper(dir, dsn string, gone func()) (*keeper, error) {
	db, err := connect(dsn, 1)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{db: db, path: filepath.Join(dir, database), gone: gone, dirty: make(chan struct{}, 1), stop: cancel}
	// The log exists: a connection has read the database. Its locks are
	// elsewhere, so it may be opened and closed here.
	if k.wal, err = os.Open(filepath.Join(dir, database+"-wal")); err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("cannot open the record's log: %w", err), db.Close())
	}
	if k.file, err = os.Stat(k.path); err != nil {
		cancel()
		return nil, errors.Join(err, k.wal.Close(), db.Close())
	}
	k.done.Go(func() { k.run(ctx) })
	return k, nil
}

// Sync makes what was committed by now survive power loss.
func (s *Store) Sync() error {
	if err := unix.Fdatasync(int(s.keep.wal.Fd())); err != nil {
		return fmt.Errorf("cannot write the record out: %w", fileFault(s.dir, err))
	}
	return nil
}

// wrote says that something was committed. It never blocks.
func (k *keeper) wrote() {
	select {
	case k.dirty <- struct{}{}:
	default: // one is enough
	}
}

func (k *keeper) run(ctx context.Context) {
	timer := time.NewTimer(syncEvery)
	defer timer.Stop()
	for {
		select {
		case <-k.dirty:
		case <-ctx.Done():
			return
		}
		timer.Reset(syncEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		// A failed sync is found again by SQLite's own when it moves the
		// log; commits in between are what NORMAL may lose anyway.
		_ = unix.Fdatasync(int(k.wal.Fd()))
		k.move()
		// What is written to a file that was deleted is kept by nobody.
		if now, err := os.Stat(k.path); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, k.file) {
			k.gone()
		}
	}
}

// move copies the log into the database, once there is enough of it and as far
// as readers allow. It holds up writers only once the log has grown out of
// proportion. An error leaves a longer log, which the next call meets.
func (k *keeper) move() {
	log, moved, err := k.checkpoint("NOOP") // only counts
	if err != nil || log-moved < moveAfter {
		return
	}
	if log, _, err = k.checkpoint("PASSIVE"); err == nil && log > moveHard {
		_, _, _ = k.checkpoint("RESTART") // see above
	}
}

// checkpoint returns how many bytes the log has, and how many of them are in
// the database.
func (k *keeper) checkpoint(mode string) (log, moved int64, err error) {
	var busy int
	err = k.db.QueryRow(`PRAGMA wal_checkpoint(`+mode+`)`).Scan(&busy, &log, &moved)
	return log * pageSize, moved * pageSize, err
}

func (k *keeper) close() error {
	k.stop()
	k.done.Wait()
	return errors.Join(k.wal.Close(), k.db.Close())
}

// bootTime is when this machine started, to the second.
func bootTime() time.Time {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(up.Nano()))
}
