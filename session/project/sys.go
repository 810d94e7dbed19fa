package project

import (
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// crashed is called before each call that changes something on disk. Only tests
// set it: they end the process there.
var crashed func()

func crashPoint() {
	if crashed != nil {
		crashed()
	}
}

// change makes a call that changes something on disk.
func change(call func() error) error {
	crashPoint()
	return inode.Retry(call)
}

// rename moves a name to one that is free, or with unix.RENAME_EXCHANGE exchanges two.
func rename(fromfd int, from string, tofd int, to string, flags uint) error {
	return change(func() error { return unix.Renameat2(fromfd, from, tofd, to, flags) })
}

func unlink(dirfd int, name string, flags int) error {
	return change(func() error { return unix.Unlinkat(dirfd, name, flags) })
}

func fsync(fd int) error { return change(func() error { return unix.Fsync(fd) }) }

// chmodDir gives a folder below dirfd its permissions. It keeps what else its mode
// says: setgid hands its group down.
func chmodDir(dirfd int, name string, mode uint32) error {
	fd, err := inode.Beneath(dirfd, name, unix.O_PATH|unix.O_DIRECTORY) // its owner needn't be able to read it
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := inode.Fstat(fd, &st); err != nil || st.Mode&0o777 == mode&0o777 {
		return err
	}
	return change(func() error { return unix.Chmod(inode.FDPath(fd), mode&0o777|st.Mode&0o7000) })
}

// written says whether some process has the file of that name open for writing, or
// mapped so: then no lease on reading it can be had (fcntl(2), F_SETLEASE). Where
// leases aren't kept, or the file is another user's, it can't be told, and is no.
func written(dirfd int, name string) bool {
	fd, err := inode.Beneath(dirfd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return err == unix.EAGAIN
}

// keepAttrs gives the file that takes another's place that one's owner, access
// list and user attributes, as far as the caller may: they are the person's.
func keepAttrs(fd, dirfd int, name string) {
	from, err := inode.Beneath(dirfd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return
	}
	defer unix.Close(from)
	var old, st unix.Stat_t
	if inode.Fstat(from, &old) == nil && inode.Fstat(fd, &st) == nil && (old.Uid != st.Uid || old.Gid != st.Gid) {
		if unix.Fchown(fd, int(old.Uid), int(old.Gid)) != nil {
			_ = unix.Fchown(fd, -1, int(old.Gid))
		}
	}
	names, _ := inode.ListXattr(from)
	for n := range strings.SplitSeq(string(names), "\x00") {
		if n == manifest.ACLAccess || strings.HasPrefix(n, "user.") {
			if value, err := inode.GetXattr(from, n); err == nil {
				_ = unix.Fsetxattr(fd, n, value, 0)
			}
		}
	}
}

// writeAll writes b at off of an empty file, but for whole pages of zeros.
func writeAll(fd int, b []byte, off int64) error {
	const page = 4096
	for len(b) > 0 {
		n := 0
		for n < len(b) && !content.IsZero(b[n:min(n+page, len(b))]) {
			n = min(n+page, len(b))
		}
		for n > 0 {
			crashPoint()
			k, err := unix.Pwrite(fd, b[:n], off)
			if err == unix.EINTR {
				continue
			}
			if err == nil && k == 0 {
				err = io.ErrShortWrite
			}
			if err != nil {
				return err
			}
			b, off, n = b[k:], off+int64(k), n-k
		}
		for len(b) > 0 && content.IsZero(b[:min(page, len(b))]) {
			n := min(page, len(b))
			b, off = b[n:], off+int64(n)
		}
	}
	return nil
}
