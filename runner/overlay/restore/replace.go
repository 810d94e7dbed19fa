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
		err = setAttrs(fd, op, false)
		_ = unix.Close(fd)
	}
	if err == nil {
		err = x.renameOver(dirfd, temp, name, op)
	}
	if err != nil {
		_ = unix.Unlinkat(dirfd, temp, 0)
		return err
	}
	x.report.Made++
	return nil
}

// renameOver puts a temporary name in a name's place. It exchanges the two, so
// that there is no moment without the name, and the old one is taken away
// later: a rename that replaces a file makes ext4 write the new one to disk at
// once (auto_da_alloc, ext4(5)), and an ext4 without a journal is slow to make
// files while others were deleted just before.
func (x *executor) renameOver(dirfd int, temp, name string, op *Op) error {
	err := inode.Retry(func() error { return unix.Renameat2(dirfd, temp, dirfd, name, unix.RENAME_EXCHANGE) })
	switch err {
	case nil:
		dirPath, _ := manifest.Split(op.Path)
		x.old = append(x.old, manifest.Join(dirPath, temp))
		if x.oldBytes += op.Content.Size; x.oldBytes > maxOldBytes || len(x.old) >= maxOld {
			return x.clear()
		}
		return nil
	case unix.ENOENT, unix.EINVAL: // there is no old one, or no exchange
		return rename(dirfd, temp, name)
	}
	return err
}

// clear takes away what was replaced.
func (x *executor) clear() error {
	var errs []error
	at, fd := "", -1
	for _, path := range x.old {
		dirPath, name := manifest.Split(path)
		if fd < 0 || at != dirPath {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
			var err error
			if fd, err = inode.OpenDirBeneath(x.root, dirPath); err != nil {
				errs = append(errs, err)
				continue
			}
			at = dirPath
		}
		if _, err := x.remove(fd, name); err != nil {
			errs = append(errs, err)
		}
	}
	if fd >= 0 {
		_ = unix.Close(fd)
	}
	x.old, x.oldBytes = nil, 0
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot take away what was replaced: %w", err)
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
	if _, err = x.remove(dirfd, name); err == nil {
		err = rename(dirfd, temp, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dirfd, temp, 0)
		return err
	}
	x.report.Linked++
	return nil
}
