package store

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	sqlite "github.com/mattn/go-sqlite3"
)

// What a caller can act on. The errors that methods return wrap these and say
// in words where the fault is and what mends it.
var (
	ErrNotFound = errors.New("not in the record")
	ErrExists   = errors.New("already in the record")
	ErrClosed   = errors.New("the record is closed")
	ErrFull     = errors.New("the disk is full")
	ErrReadOnly = errors.New("the record can't be written") // OpenReadOnly may work
	ErrCorrupt  = errors.New("the record is damaged")
	ErrOther    = errors.New("the record was written by another version of Stepbox")
	ErrInUse    = errors.New("the record is in use")
	ErrNetwork  = errors.New("the record can't be on a network filesystem")
	ErrPrivate  = errors.New("the record's folder isn't private")
	ErrBusy     = errors.New("another process keeps the record locked")
	ErrGone     = errors.New("the record is gone")
	ErrMissing  = errors.New("the record's database is missing")
	ErrTampered = errors.New("the record doesn't agree with itself") // by Examine
	ErrBody     = errors.New("a body's bytes aren't what its name says")
)

// fault gives an error of SQLite or of the filesystem its sentinel and advice.
// dir is the store's folder. One that has them already stays as it is.
func fault(dir string, err error) error {
	if err == nil || slices.ContainsFunc([]error{ErrFull, ErrReadOnly, ErrCorrupt, ErrBusy}, func(has error) bool { return errors.Is(err, has) }) {
		return err
	}
	var se sqlite.Error
	if !errors.As(err, &se) {
		return fileFault(dir, err)
	}
	switch {
	case se.Code == sqlite.ErrFull, outOfSpace(se.SystemErrno):
		return full(dir, err)
	case se.Code == sqlite.ErrCorrupt, se.Code == sqlite.ErrNotADB:
		suspect(dir)
		return corrupt(dir, err)
	case se.Code == sqlite.ErrReadonly, se.Code == sqlite.ErrPerm, se.SystemErrno == syscall.EROFS:
		return readOnly(dir, err)
	case se.Code == sqlite.ErrBusy, se.Code == sqlite.ErrLocked:
		return fmt.Errorf("%w: fuser -v %s names it; try again when it is through: %w", ErrBusy, quote(dir+"/"+database), err)
	case se.Code == sqlite.ErrError && strings.Contains(se.Error(), "no such table"):
		return fmt.Errorf("the database lacks what Stepbox made in it: stepbox verify --all says what, and with --repair makes it again where it can: %w", err)
	}
	return err
}

// fileFault is fault for what the kernel said.
func fileFault(dir string, err error) error {
	var no syscall.Errno
	if !errors.As(err, &no) || errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) {
		return err
	}
	switch {
	case outOfSpace(no):
		return full(dir, err)
	case no == syscall.EROFS:
		return readOnly(dir, err)
	}
	return err
}

// outOfSpace covers full filesystems, quotas and the process's own limit on
// the size of files (write(2)).
func outOfSpace(no syscall.Errno) bool {
	return no == syscall.ENOSPC || no == syscall.EDQUOT || no == syscall.EFBIG
}

func full(dir string, err error) error {
	return fmt.Errorf("%w: make room on the filesystem of %s, or set STEPBOX_DATA to a folder elsewhere: %w", ErrFull, quote(dir), err)
}

func readOnly(dir string, err error) error {
	return fmt.Errorf("%w: %s must be writable for you; mend that (chmod -R u+rwX %s) or set STEPBOX_DATA to a folder elsewhere: %w",
		ErrReadOnly, quote(dir), quote(dir), err)
}

func corrupt(dir string, err error) error {
	d := quote(dir)
	return fmt.Errorf("%w: %s can't be read as a database. To start a new record and keep this one for inspection: "+
		"mkdir -m 700 %s/damaged && mv %s/%s* %s/bodies %s/sessions %s/damaged/: %w", ErrCorrupt, quote(dir+"/"+database), d, d, database, d, d, d, err)
}

func isBusy(err error) bool {
	var se sqlite.Error
	return errors.As(err, &se) && (se.Code == sqlite.ErrBusy || se.Code == sqlite.ErrLocked)
}

// suspect leaves a mark that makes the next Open check the whole database.
func suspect(dir string) {
	f, err := os.OpenFile(dir+"/"+suspicion, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		f.Close() // nothing was written to it
	}
}

// quote makes a path safe to paste into a shell, and plain when it already is.
func quote(p string) string {
	if p != "" && strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@:,") == "" {
		return p
	}
	return "'" + strings.ReplaceAll(p, "'", `'\''`) + "'"
}

// isNoTransaction says that a ROLLBACK found nothing to roll back.
func isNoTransaction(err error) bool {
	var se sqlite.Error
	return errors.As(err, &se) && se.Code == sqlite.ErrError && strings.Contains(se.Error(), "no transaction is active")
}
