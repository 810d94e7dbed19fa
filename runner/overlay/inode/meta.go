package inode

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/manifest"
)

// MetaOf is what is to be kept of an open file or directory, or with an O_PATH
// descriptor of anything, that isn't in an overlay's upper.
func MetaOf(fd int, st *unix.Stat_t) (manifest.Meta, error) {
	m := statMeta(st)
	var err error
	if kind := KindOf(st); kind == manifest.KindFile || kind == manifest.KindDir {
		m.Xattrs, err = rawXattrs(fd, manifest.Kept)
	}
	return m, err
}

func statMeta(st *unix.Stat_t) manifest.Meta {
	return manifest.Meta{Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid, MTime: manifest.TimeOf(st.Mtim)}
}

// rawXattrs are the attributes of an open inode whose names keep takes, as they are stored.
func rawXattrs(fd int, keep func(name string) bool) (xs []manifest.Xattr, err error) {
	names, err := ListXattr(fd)
	total := len(names)
	for raw := range bytes.SplitSeq(names, []byte{0}) {
		name := string(raw)
		if err != nil || !keep(name) {
			continue
		}
		value, gerr := GetXattr(fd, name)
		if errors.Is(gerr, unix.ENODATA) {
			continue
		}
		if total += len(value); gerr == nil && total > maxXattrs {
			gerr = ErrXattrs
		}
		xs, err = append(xs, manifest.Xattr{Name: name, Value: value}), gerr
	}
	slices.SortFunc(xs, func(x, y manifest.Xattr) int { return strings.Compare(x.Name, y.Name) })
	return xs, err
}

// Beyond says in words what of m this process can't write, "" for nothing.
func Beyond(m *manifest.Meta) string {
	if os.Geteuid() == 0 {
		return ""
	}
	var what []string
	groups, _ := os.Getgroups()
	if m.UID != uint32(os.Geteuid()) || m.GID != uint32(os.Getegid()) && !slices.Contains(groups, int(m.GID)) {
		what = append(what, fmt.Sprintf("its owner %d:%d", m.UID, m.GID))
		if m.Mode&setIDs != 0 {
			what = append(what, "setuid and setgid")
		}
	}
	if slices.ContainsFunc(m.Xattrs, func(x manifest.Xattr) bool { return x.Name == manifest.Capability }) {
		what = append(what, "its capabilities")
	}
	return strings.Join(what, ", ")
}

const setIDs = unix.S_ISUID | unix.S_ISGID

// SetMeta gives an open file, directory, link, FIFO or socket what m says. fd may
// be an O_PATH descriptor. It refuses to touch anything of another kind. With same,
// the extended attributes are what they shall be. The error names all that couldn't
// be set; the rest is.
//
// The order matters: a change of owner clears setuid and capabilities, an access
// list changes the mode, user attributes need it to be writable, and everything
// moves the times. Who doesn't get their owner gets no setuid or setgid either.
func SetMeta(fd int, kind manifest.Kind, m *manifest.Meta, same bool) error {
	var st unix.Stat_t
	if err := Fstat(fd, &st); err != nil {
		return err
	}
	if is := KindOf(&st); is != kind {
		return fmt.Errorf("there is a %s instead of a %s", is, kind)
	}
	mode := m.Mode
	moved, err := setOwner(fd, &st, m)
	if err != nil {
		err = fmt.Errorf("cannot set its owner %d:%d: %w", m.UID, m.GID, err)
		mode &^= setIDs
	}
	failed := []error{err}
	if !same && (kind == manifest.KindFile || kind == manifest.KindDir) {
		changed, err := setXattrs(fd, m.Xattrs)
		moved = moved || changed
		failed = append(failed, err)
	}
	if (moved || st.Mode&0o7777 != mode) && kind != manifest.KindSymlink {
		failed = append(failed, setMode(fd, mode))
	}
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: m.MTime.Sec, Nsec: int64(m.MTime.Nsec)}}
	if err := Retry(func() error { return unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH) }); err != nil {
		failed = append(failed, fmt.Errorf("cannot set its time: %w", err))
	}
	return errors.Join(failed...)
}

// setOwner says whether setuid, setgid and capabilities may be gone.
func setOwner(fd int, st *unix.Stat_t, m *manifest.Meta) (moved bool, err error) {
	uid, gid := -1, -1
	if m.UID != manifest.NoID && m.UID != st.Uid {
		uid = int(m.UID)
	}
	if m.GID != manifest.NoID && m.GID != st.Gid {
		gid = int(m.GID)
	}
	if uid < 0 && gid < 0 {
		return false, nil
	}
	chown := func(uid int) error {
		return Retry(func() error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) })
	}
	if err = chown(uid); err != nil && gid >= 0 {
		_ = chown(-1) // its group may be one of this process's
	}
	return true, err
}

func setMode(fd int, mode uint32) error {
	err := chmodFD(fd, mode)
	if err != nil {
		return fmt.Errorf("cannot set its mode: %w", err)
	}
	var st unix.Stat_t
	if mode&unix.S_ISGID != 0 && Fstat(fd, &st) == nil && st.Mode&unix.S_ISGID == 0 { // chmod(2): silently
		return errors.New("cannot set setgid: its group is none of this process's")
	}
	return nil
}

func chmodFD(fd int, mode uint32) error {
	err := Retry(func() error { return unix.Fchmod(fd, mode) })
	if err == unix.EBADF { // O_PATH
		err = Retry(func() error { return unix.Chmod(FDPath(fd), mode) })
	}
	return err
}

// setXattrs makes want the attributes of an open file or directory, leaving
// those alone that checkpoints don't keep. It says whether anything changed.
func setXattrs(fd int, want []manifest.Xattr) (changed bool, err error) {
	names, err := ListXattr(fd)
	if err != nil {
		return false, fmt.Errorf("cannot list its attributes: %w", err)
	}
	var failed []error
	for raw := range bytes.SplitSeq(names, []byte{0}) {
		name := string(raw)
		if name == "" || !manifest.Kept(name) || slices.ContainsFunc(want, func(x manifest.Xattr) bool { return x.Name == name }) {
			continue
		}
		err := Retry(func() error { return unix.Fremovexattr(fd, name) })
		if err == unix.EBADF {
			err = Retry(func() error { return unix.Removexattr(FDPath(fd), name) })
		}
		if err != nil && err != unix.ENODATA {
			failed = append(failed, fmt.Errorf("cannot remove its attribute %q: %w", name, err))
		}
		changed = true
	}
	for _, x := range slices.Backward(want) { // an access list may take the right to set those of users, which sort last
		if len(names) > 0 {
			if have, err := GetXattr(fd, x.Name); err == nil && bytes.Equal(have, x.Value) {
				continue
			}
		}
		err := Retry(func() error { return unix.Fsetxattr(fd, x.Name, x.Value, 0) })
		if err == unix.EBADF {
			err = Retry(func() error { return unix.Setxattr(FDPath(fd), x.Name, x.Value, 0) })
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("cannot set its attribute %q: %w", x.Name, err))
		}
		changed = true
	}
	return changed, errors.Join(failed...)
}

// Look gives a file or a folder of ours another's mode and times.
func Look(ours, theirs string) error {
	var st unix.Stat_t
	if err := unix.Lstat(theirs, &st); err != nil {
		return err
	}
	if err := unix.Chmod(ours, st.Mode&0o7777); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, ours, []unix.Timespec{st.Atim, st.Mtim}, 0)
}
