package gate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links a lookup follows, MAXSYMLINKS in
// linux/namei.h.
const maxLinks = 40

// view is how a held thread sees files: its root, its working directory and
// its descriptors, all by way of its folder in /proc. It is for one goroutine.
type view struct {
	proc procDir // of the thread
	root int
	cwd  int
	ids  status // read when needed
	base unix.Statx_t

	short error // why a lookup failed here that mightn't have for the thread

	programs *programs
}

// openView opens the root and the working directory of a thread.
func openView(proc procDir) (*view, error) {
	root, err := proc.open("root", unix.O_PATH)
	if err != nil {
		return nil, fmt.Errorf("cannot open the root of a process: %w", err)
	}
	cwd, err := proc.open("cwd", unix.O_PATH)
	if err != nil {
		_ = unix.Close(root)
		return nil, fmt.Errorf("cannot open the working directory of a process: %w", err)
	}
	return &view{proc: proc, root: root, cwd: cwd}, nil
}

// stands says that the working directory is in the sandbox.
func (v *view) stands() error {
	var x unix.Statx_t
	if err := unix.Statx(v.cwd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &x); err != nil {
		return err
	}
	return v.programs.belongs(v.proc, x.Mnt_id)
}

func (v *view) close() {
	_ = unix.Close(v.root)
	_ = unix.Close(v.cwd)
}

// descriptor opens, without its rights, what a descriptor of the thread
// refers to.
func (v *view) descriptor(fd int32) (int, error) {
	f, err := v.proc.open("fd/"+strconv.Itoa(int(fd)), unix.O_PATH)
	if errors.Is(err, unix.ENOENT) {
		return -1, unix.EBADF
	}
	return f, err
}

// lookup opens the file that a path leads to as the thread would find it,
// with O_PATH: nothing is opened that could block or have an effect. Relative
// paths begin at the folder from. Errors are what the thread would get.
func (v *view) lookup(from int, path string, noFollow bool) (found int, err error) {
	defer func() {
		if scarce(err) {
			v.short = err
		}
	}()
	if path == "" {
		return -1, unix.ENOENT
	}
	if noFollow {
		return v.walk(from, path, true)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_BENEATH}
	if strings.HasPrefix(path, "/") {
		from = v.root
		how.Resolve = unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_IN_ROOT
	}
	fd, err := unix.Openat2(from, path, &how)
	if err == nil || errors.Is(err, unix.ENAMETOOLONG) {
		return fd, err
	}
	if errors.Is(err, unix.ENOENT) { // mostly there is no link on the way either, and that is it
		how.Resolve |= unix.RESOLVE_NO_SYMLINKS
		if fd, err := unix.Openat2(from, path, &how); err == nil || errors.Is(err, unix.ENOENT) {
			return fd, err
		}
	}
	// A link may lead out of the folder, or to /proc/self, which isn't the
	// thread when it is us who look.
	return v.walk(from, path, false)
}

// walk looks a path up one name at a time.
func (v *view) walk(from int, path string, noFollow bool) (int, error) {
	if strings.HasPrefix(path, "/") {
		from = v.root
	}
	at, err := unix.Openat(from, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	links := 0
	rest := path
	for rest != "" {
		name, tail, more := strings.Cut(rest, "/")
		rest = tail
		if name == "" && !more {
			break
		}
		last := strings.Trim(rest, "/") == ""
		next, target, err := v.step(at, name, more, last && noFollow && !more)
		if err != nil {
			_ = unix.Close(at)
			return -1, err
		}
		if target == "" {
			_ = unix.Close(at)
			at = next
			continue
		}
		if links++; links > maxLinks || len(target)+len(rest) > 2*unix.PathMax {
			_ = unix.Close(at)
			return -1, unix.ELOOP
		}
		if more {
			target += "/" + rest
		}
		rest = target
		if strings.HasPrefix(rest, "/") {
			_ = unix.Close(at)
			at, err = unix.Openat(v.root, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return -1, err
			}
		}
	}
	return at, nil
}

// step goes from an open folder to one name in it. It returns the file, or
// the target of a symbolic link that is still to be followed. A folder is
// needed where more of a path follows.
func (v *view) step(at int, name string, folder, noFollow bool) (next int, target string, err error) {
	flags := unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW
	if name == "" || name == "." {
		next, err = unix.Openat(at, ".", flags|unix.O_DIRECTORY, 0)
		return next, "", err
	}
	if name == ".." {
		if v.isRoot(at) {
			name = "."
		}
		next, err = unix.Openat(at, name, flags|unix.O_DIRECTORY, 0)
		return next, "", err
	}
	next, err = unix.Openat(at, name, flags, 0)
	if err != nil {
		return -1, "", err
	}
	var st unix.Stat_t
	if err = unix.Fstat(next, &st); err != nil {
		_ = unix.Close(next)
		return -1, "", err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return next, "", nil
	case unix.S_IFLNK:
	default:
		if folder {
			_ = unix.Close(next)
			return -1, "", unix.ENOTDIR
		}
		return next, "", nil
	}
	defer unix.Close(next)
	if noFollow {
		return -1, "", unix.ELOOP
	}
	return v.follow(at, next, name)
}

// procRoot is the inode number of the root of every proc filesystem.
const procRoot = 1

// follow reads a symbolic link, or goes where a link of /proc leads. Those
// mostly aren't paths: the kernel jumps to what they stand for.
func (v *view) follow(at, link int, name string) (next int, target string, err error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(link, &fs); err != nil {
		return -1, "", err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil {
			return -1, "", err
		}
		if st.Ino == procRoot && v.ids.group == 0 {
			if v.ids, err = v.proc.status(); err != nil {
				return -1, "", err
			}
		}
		switch {
		case st.Ino == procRoot && name == "self":
			return -1, strconv.Itoa(v.ids.group), nil
		case st.Ino == procRoot && name == "thread-self":
			return -1, strconv.Itoa(v.ids.group) + "/task/" + strconv.Itoa(v.ids.inner), nil
		case st.Ino != procRoot:
			next, err = unix.Openat(at, name, unix.O_PATH|unix.O_CLOEXEC, 0)
			return next, "", err
		}
	}
	target, err = readLink(link, "")
	if err == nil && target == "" {
		err = unix.ENOENT
	}
	return -1, target, err
}

// isRoot says whether an open folder is the thread's root, above which there
// is nothing.
func (v *view) isRoot(fd int) bool {
	var st unix.Statx_t
	const mask = unix.STATX_INO | unix.STATX_MNT_ID
	if v.base.Mask == 0 && unix.Statx(v.root, "", unix.AT_EMPTY_PATH, mask, &v.base) != nil {
		return true
	}
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, mask, &st) != nil {
		return true // stay rather than leave
	}
	return st.Ino == v.base.Ino && st.Mnt_id == v.base.Mnt_id && st.Dev_major == v.base.Dev_major && st.Dev_minor == v.base.Dev_minor
}
