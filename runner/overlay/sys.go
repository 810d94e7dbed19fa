package overlay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// statKey says whether an inode moved since it was last read. On whiteouts
// only the kind counts: they are mostly hard links of one shared inode.
type statKey struct {
	ino, dev, rdev, nlink uint64
	size                  int64
	mtime, ctime          unix.Timespec
	mode, uid, gid        uint32
}

func keyOf(st *unix.Stat_t) statKey {
	return statKey{
		ino: st.Ino, dev: uint64(st.Dev), rdev: uint64(st.Rdev), nlink: uint64(st.Nlink), size: st.Size,
		mtime: st.Mtim, ctime: st.Ctim, mode: st.Mode, uid: st.Uid, gid: st.Gid,
	}
}

func kindOf(st *unix.Stat_t) Kind {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return KindFile
	case unix.S_IFDIR:
		return KindDir
	case unix.S_IFLNK:
		return KindSymlink
	case unix.S_IFIFO:
		return KindFIFO
	case unix.S_IFSOCK:
		return KindSocket
	case unix.S_IFCHR:
		if st.Rdev == 0 {
			return KindWhiteout
		}
	}
	return KindDevice
}

// entryOf fills in what a stat knows.
func entryOf(name string, st *unix.Stat_t) Entry {
	e := Entry{Name: name, Kind: kindOf(st)}
	if e.Kind == KindWhiteout {
		return e // its owner, mode and times mean nothing
	}
	e.Mode, e.UID, e.GID, e.MTime = st.Mode&07777, st.Uid, st.Gid, timeOf(st.Mtim)
	if e.Kind == KindFile {
		e.Size = st.Size
		if st.Nlink > 1 {
			e.Links = st.Ino
		}
	}
	return e
}

// retryEINTR calls f until it isn't interrupted.
func retryEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func lstatAt(dirfd int, name string, st *unix.Stat_t) error {
	return retryEINTR(func() error { return unix.Fstatat(dirfd, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

func fstat(fd int, st *unix.Stat_t) error {
	return retryEINTR(func() error { return unix.Fstat(fd, st) })
}

// openAt opens one name below dirfd. It never follows a link and never blocks
// on a FIFO.
func openAt(dirfd int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dirfd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// readlinkAt reads a link's whole target.
func readlinkAt(dirfd int, name string) (string, error) {
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(dirfd, name, buf)
		if err != nil {
			return "", err
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

// eachName calls f with each name in a directory but "." and "..", in the
// kernel's order. The slice is only valid during the call.
func eachName(fd int, buf []byte, f func(name []byte) error) error {
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n <= 0 {
			return nil
		}
		for b := buf[:n]; len(b) >= 19; {
			// struct linux_dirent64, getdents64(2): d_ino, d_off, d_reclen, d_type, d_name.
			size := int(binary.NativeEndian.Uint16(b[16:18]))
			if size < 20 || size > len(b) {
				return unix.EIO
			}
			name := b[19:size]
			if i := bytes.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			b = b[size:]
			if len(name) == 0 || string(name) == "." || string(name) == ".." {
				continue
			}
			if err := f(name); err != nil {
				return err
			}
		}
	}
}

// rewind sets a directory back to its first entry.
func rewind(fd int) error {
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	return err
}

// fdPath names an open file for calls that take no descriptor, or none that
// was opened with O_PATH. The kernel follows it to that very inode.
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// beneath opens path below dirfd without following any link or leaving the
// mount. It needs openat2(2), Linux 5.6.
func beneath(dirfd int, path string, flags uint64) (int, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	for tries := 0; ; {
		fd, err := unix.Openat2(dirfd, path, &how)
		// EAGAIN: something was renamed meanwhile, openat2(2).
		if err == unix.EINTR || err == unix.EAGAIN && tries < 64 {
			if err == unix.EAGAIN {
				tries++
			}
			continue
		}
		return fd, err
	}
}

// pathMax is the longest path, less its NUL, that one call takes: PATH_MAX.
const pathMax = 4095

// openDirBeneath opens the directory at path below root, however long path is.
func openDirBeneath(root int, path string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	if path == "" {
		path = "."
	}
	at := root
	for len(path) > pathMax {
		cut := lastSlash(path[:pathMax+1])
		if cut <= 0 {
			return -1, unix.ENAMETOOLONG
		}
		fd, err := beneath(at, path[:cut], flags)
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at, path = fd, path[cut+1:]
	}
	fd, err := beneath(at, path, flags)
	if at != root {
		_ = unix.Close(at)
	}
	return fd, err
}

func lastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return i
		}
	}
	return -1
}

// split cuts a path into its directory and its last component.
func split(path string) (dir, name string) {
	if i := lastSlash(path); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// join is the reverse of split.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// kernelSince says whether the running kernel is that version or newer; no if
// it can't be told.
func kernelSince(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var x, y int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &x, &y); n != 2 {
		return false
	}
	return x > major || x == major && y >= minor
}

// gone says whether an error means that a name vanished or became something
// else since it was listed.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ESTALE)
}

// denied says whether an error means that the caller lacks a right.
func denied(err error) bool { return errors.Is(err, os.ErrPermission) }
