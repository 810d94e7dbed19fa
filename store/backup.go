package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Backups of the database, each as it was before its schema was changed.
const (
	backupsDir  = "backups"
	backupsKept = 2
	backupName  = "stepbox-schema%d-%s.db"
)

// backup copies the database of schema v beside it, whole or not at all. The caller holds
// the schema lock exclusively.
func backup(ctx context.Context, dir string, c *sql.Conn, v int) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("cannot keep a copy of the record before it is upgraded, so it wasn't: %w", fault(dir, err))
	}
	var size uint64
	if err := c.QueryRowContext(ctx, `SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)`).Scan(&size); err != nil {
		return fail(err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fail(err)
	}
	// The upgrade itself writes about as much to the log.
	if free := st.Bavail * uint64(st.Bsize); free < 2*size {
		return fail(full(dir, fmt.Errorf("it takes %d bytes and %d are free", 2*size, free)))
	}
	folder := filepath.Join(dir, backupsDir)
	made := filepath.Join(folder, "unfinished")
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = os.WriteFile(made, nil, 0o600) // SQLite would make it by the umask, and takes an empty file
	}
	if err == nil {
		_, err = c.ExecContext(ctx, `VACUUM INTO ?`, made)
	}
	if err == nil {
		err = syncFile(made)
	}
	whole := filepath.Join(folder, fmt.Sprintf(backupName, v, time.Now().UTC().Format("20060102T150405.000")))
	if err == nil {
		err = os.Rename(made, whole)
	}
	if err != nil {
		return fail(errors.Join(err, os.RemoveAll(made)))
	}
	return whole, nil
}

func syncFile(p string) error {
	f, err := os.OpenFile(p, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// prune removes all backups but the newest: their names end with when they were made.
func prune(folder string) error {
	all, err := filepath.Glob(filepath.Join(folder, "stepbox-schema*.db"))
	made := func(p string) string { return p[strings.LastIndex(p, "-"):] }
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(made(a), made(b)) })
	for _, p := range all[:max(0, len(all)-backupsKept)] {
		err = errors.Join(err, os.Remove(p))
	}
	return err
}
