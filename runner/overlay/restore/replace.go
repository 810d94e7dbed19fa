package restore

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// replace makes something under a temporary name, gives it its attributes and
// puts it in the name's place.
func (x *executor) replace(dirfd int, name string, op *Op, create func(temp string) error) error {
	temp, err := withTemp(create)
	if err != nil {
		return err
	}
	fd, err := inode.Beneath(dirfd, temp, unix.O_PATH)
	if err == nil {
		err = inode.SetMeta(fd, op.What, &op.Meta, false)
		_ = unix.Close(fd)
	}
	if err == nil {
		err = rename(dirfd, temp, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dirfd, temp, 0)
		return err
	}
	return nil
}

// full says whether an error means that the disk is.
func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func rename(dirfd int, temp, name string) error {
	return inode.Retry(func() error { return unix.Renameat(dirfd, temp, dirfd, name) })
}

// withTemp calls create with names until one is free.
func withTemp(create func(temp string) error) (string, error) {
	for range 16 {
		var r [12]byte
		_, _ = rand.Read(r[:])
		temp := tempPrefix + hex.EncodeToString(r[:])
		err := inode.Retry(func() error { return create(temp) })
		if err == unix.EEXIST {
			continue
		}
		return temp, err
	}
	return "", unix.EEXIST
}

// link gives a file another name.
func (x *executor) link(dirfd int, name string, op *Op) error {
	if x.Failed[op.Source] {
		return fmt.Errorf("the file it shares, %q, wasn't restored", op.Source)
	}
	if !manifest.ValidPath(op.Source) || op.Source == "" {
		return unix.EINVAL
	}
	if x.overwritten[op.Source] {
		return nil // the names still share the file: only then a plan writes in place
	}
	fromDir, from := manifest.Split(op.Source)
	fromfd, err := x.dir(fromDir)
	if err != nil {
		return err
	}
	temp, err := withTemp(func(temp string) error { return unix.Linkat(fromfd, from, dirfd, temp, 0) })
	if err != nil {
		return err
	}
	// The old name goes first: it may be the same file already, and a rename
	// between two names of one file does nothing; on overlayfs, where those
	// names can have different inodes, it fails with ESTALE.
	if err = x.remove(dirfd, name); err == nil {
		err = rename(dirfd, temp, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dirfd, temp, 0)
		return err
	}
	return nil
}
