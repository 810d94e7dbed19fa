// Package inode looks at, opens and reads files that a sandbox made or may be
// changing, and says what they are in a manifest's words.
//
// Such files are hostile: they are reached by directory descriptors only,
// symbolic links are never followed, nothing that could block is opened without
// O_NONBLOCK, and sizes are bounded. An Opener opens what the caller may not.
package inode

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/manifest"
)

// Key says whether an inode moved since it was last read. On whiteouts
// only the kind counts: they are mostly hard links of one shared inode.
type Key struct {
	Ino, Nlink, dev, rdev uint64
	size                  int64
	mtime, Ctime          unix.Timespec
	mode, uid, gid        uint32
}

// KeyOf is the key of what was looked at.
func KeyOf(st *unix.Stat_t) Key {
	return Key{
		Ino: st.Ino, dev: uint64(st.Dev), rdev: uint64(st.Rdev), Nlink: uint64(st.Nlink), size: st.Size,
		mtime: st.Mtim, Ctime: st.Ctim, mode: st.Mode, uid: st.Uid, gid: st.Gid,
	}
}

// KindOf is what it is.
func KindOf(st *unix.Stat_t) manifest.Kind {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return manifest.KindFile
	case unix.S_IFDIR:
		return manifest.KindDir
	case unix.S_IFLNK:
		return manifest.KindSymlink
	case unix.S_IFIFO:
		return manifest.KindFIFO
	case unix.S_IFSOCK:
		return manifest.KindSocket
	case unix.S_IFCHR:
		if st.Rdev == 0 {
			return manifest.KindWhiteout
		}
	}
	return manifest.KindDevice
}

// EntryOf fills in what a stat knows.
func EntryOf(name string, st *unix.Stat_t) manifest.Entry {
	e := manifest.Entry{Name: name, Kind: KindOf(st)}
	if e.Kind == manifest.KindWhiteout {
		return e // its owner, mode and times mean nothing
	}
	e.Meta = statMeta(st)
	if e.Kind == manifest.KindFile {
		e.Size = st.Size
		if st.Nlink > 1 {
			e.Links = st.Ino
		}
	}
	return e
}

// Retry calls f until it isn't interrupted.
func Retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// Lstat looks at a name below dirfd without following it.
func Lstat(dirfd int, name string, st *unix.Stat_t) error {
	return Retry(func() error { return unix.Fstatat(dirfd, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

// LstatRaw is lstatAt for a name as getdents64(2) gave it: the byte after it
// is NUL, so that it needn't be copied. A scan is mostly this call.
func LstatRaw(dirfd int, name []byte, st *unix.Stat_t) error {
	for {
		_, _, no := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(dirfd), uintptr(unsafe.Pointer(unsafe.SliceData(name))),
			uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
		switch no {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return no
		}
	}
}

// Fstat looks at an open file.
func Fstat(fd int, st *unix.Stat_t) error {
	return Retry(func() error { return unix.Fstat(fd, st) })
}

// OpenAt opens one name below dirfd. It never follows a link and never blocks
// on a FIFO.
func OpenAt(dirfd int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dirfd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// Readlink reads a link's whole target.
func Readlink(dirfd int, name string) (string, error) {
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

// EachName calls f with each name in a directory but "." and "..", in the
// kernel's order. The slice is only valid during the call.
func EachName(fd int, buf []byte, f func(name []byte) error) error {
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

// Rewind sets a directory back to its first entry.
func Rewind(fd int) error {
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	return err
}

// FDPath names an open file for calls that take no descriptor, or none that
// was opened with O_PATH. The kernel follows it to that very inode.
func FDPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Beneath opens path below dirfd without following any link or leaving the
// mount. It needs openat2(2), Linux 5.6.
func Beneath(dirfd int, path string, flags uint64) (int, error) {
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

// OpenDirBeneath opens the directory at path below root, however long path is.
func OpenDirBeneath(root int, path string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	path = cmp.Or(path, ".")
	at := root
	for len(path) > pathMax {
		cut := strings.LastIndexByte(path[:pathMax+1], '/')
		if cut <= 0 {
			return -1, unix.ENAMETOOLONG
		}
		fd, err := Beneath(at, path[:cut], flags)
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at, path = fd, path[cut+1:]
	}
	fd, err := Beneath(at, path, flags)
	if at != root {
		_ = unix.Close(at)
	}
	return fd, err
}

// Kernel is the running kernel's release; "" when that can't be told.
func Kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// KernelSince says whether the running kernel is that version or newer; no if
// it can't be told.
func KernelSince(major, minor int) bool { return AtLeast(Kernel(), major, minor) }

// AtLeast compares the first two numbers of a kernel's release.
func AtLeast(release string, major, minor int) bool {
	var x, y int
	n, _ := fmt.Sscanf(release, "%d.%d", &x, &y)
	return n == 2 && (x > major || x == major && y >= minor)
}

// Gone says whether an error means that a name vanished or became something
// else since it was listed.
func Gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ESTALE)
}

// Denied says whether an error means that the caller lacks a right.
func Denied(err error) bool { return errors.Is(err, os.ErrPermission) }
