package restore

import (
	"bytes"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// setAttrs gives an open file, directory, link, FIFO or socket the owner,
// mode, attributes and times of a step. fd may be an O_PATH descriptor. It
// refuses to touch anything of another kind than the step says. With same, the
// extended attributes are what they shall be.
//
// The order matters: a change of owner clears setuid and capabilities, an
// access list changes the mode, and everything moves the times.
func setAttrs(fd int, op *Op, same bool) error {
	var st unix.Stat_t
	if err := inode.Fstat(fd, &st); err != nil {
		return err
	}
	if kind := inode.KindOf(&st); kind != op.What {
		return fmt.Errorf("there is a %s instead of a %s", kind, op.What)
	}
	chmod := st.Mode&07777 != op.Mode
	uid, gid := -1, -1
	if op.UID != NoID && op.UID != st.Uid {
		uid = int(op.UID)
	}
	if op.GID != NoID && op.GID != st.Gid {
		gid = int(op.GID)
	}
	if uid >= 0 || gid >= 0 {
		if err := inode.Retry(func() error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) }); err != nil {
			return fmt.Errorf("cannot set its owner: %w", err)
		}
		chmod = true // setuid and setgid may be gone
	}
	if !same && (op.What == manifest.KindFile || op.What == manifest.KindDir) {
		changed, err := setXattrs(fd, op.Xattrs)
		if err != nil {
			return err
		}
		chmod = chmod || changed
	}
	if chmod && op.What != manifest.KindSymlink {
		if err := chmodFD(fd, op.Mode); err != nil {
			return fmt.Errorf("cannot set its mode: %w", err)
		}
	}
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: op.MTime.Sec, Nsec: int64(op.MTime.Nsec)}}
	if err := inode.Retry(func() error { return unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH) }); err != nil {
		return fmt.Errorf("cannot set its time: %w", err)
	}
	return nil
}

func chmodFD(fd int, mode uint32) error {
	err := inode.Retry(func() error { return unix.Fchmod(fd, mode) })
	if err == unix.EBADF { // O_PATH
		err = inode.Retry(func() error { return unix.Chmod(inode.FDPath(fd), mode) })
	}
	return err
}

// setXattrs makes want the attributes of an open file or directory, leaving
// those alone that checkpoints don't keep. It says whether anything changed.
func setXattrs(fd int, want []manifest.Xattr) (bool, error) {
	names, err := inode.ListXattr(fd)
	if err != nil {
		return false, fmt.Errorf("cannot list its attributes: %w", err)
	}
	changed := false
	for raw := range bytes.SplitSeq(names, []byte{0}) {
		name := string(raw)
		if name == "" || !manifest.Kept(name) || slices.ContainsFunc(want, func(x manifest.Xattr) bool { return x.Name == name }) {
			continue
		}
		err := inode.Retry(func() error { return unix.Fremovexattr(fd, name) })
		if err == unix.EBADF {
			err = inode.Retry(func() error { return unix.Removexattr(inode.FDPath(fd), name) })
		}
		if err != nil && err != unix.ENODATA {
			return changed, fmt.Errorf("cannot remove its attribute %q: %w", name, err)
		}
		changed = true
	}
	for _, x := range want {
		if len(names) > 0 {
			if have, err := inode.GetXattr(fd, x.Name); err == nil && bytes.Equal(have, x.Value) {
				continue
			}
		}
		err := inode.Retry(func() error { return unix.Fsetxattr(fd, x.Name, x.Value, 0) })
		if err == unix.EBADF {
			err = inode.Retry(func() error { return unix.Setxattr(inode.FDPath(fd), x.Name, x.Value, 0) })
		}
		if err != nil {
			return changed, fmt.Errorf("cannot set its attribute %q: %w", x.Name, err)
		}
		changed = true
	}
	return changed, nil
}
