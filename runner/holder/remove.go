package holder

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// removeAll removes what is at path. A folder in a folder is moved up to the top
// before it is emptied, so that no path gets longer and two folders are open at most,
// whatever is in it. Others may remove it too, but not write to it; no link is followed.
func removeAll(path string) error {
	err := emptied(path)
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// emptied removes what is in a folder; what isn't one it leaves alone.
func emptied(path string) error {
	top, err := openOwn(unix.AT_FDCWD, path)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		return nil
	}
	if err != nil {
		return err
	}
	defer top.Close()
	r := remover{top: top}
	for {
		names, err := list(top)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := r.remove(name); err != nil && err != unix.ENOENT {
				return fmt.Errorf("%q: %w", name, err)
			}
		}
	}
}

// remover empties a folder.
type remover struct {
	top   *os.File
	moved int // folders, up to it
}

// remove removes a name of the top: of a folder, what is in it may be there afterwards.
func (r *remover) remove(name string) error {
	if unlink(r.top, name) == nil {
		return nil
	}
	dir, err := openOwn(int(r.top.Fd()), name)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := list(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if unlink(dir, name) == nil {
			continue
		}
		if err := r.up(dir, name); err != nil && err != unix.ENOENT {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return unlink(r.top, name)
}

// up moves a folder to the top, under a name that is free there.
func (r *remover) up(dir *os.File, name string) error {
	folder, err := openOwn(int(dir.Fd()), name) // moving it takes a right to write to it
	if err != nil {
		return err
	}
	_ = folder.Close()
	for {
		r.moved++
		err := unix.Renameat2(int(dir.Fd()), name, int(r.top.Fd()), strconv.Itoa(r.moved), unix.RENAME_NOREPLACE)
		if err != unix.EEXIST {
			return err
		}
	}
}

// unlink removes a file, a link or an empty folder.
func unlink(dir *os.File, name string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err == unix.EISDIR || err == unix.EPERM || err == unix.EACCES {
		err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	}
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// openOwn opens a folder of the caller's, whom its mode may have kept out.
func openOwn(at int, name string) (*os.File, error) {
	by, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(by)
	var st unix.Stat_t
	if err := unix.Fstat(by, &st); err != nil {
		return nil, err
	}
	if st.Mode&0o700 != 0o700 {
		_ = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", by), 0o700) // opening or moving it tells
	}
	fd, err := unix.Openat(by, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// list gives the names in a folder.
func list(dir *os.File) ([]string, error) {
	if _, err := dir.Seek(0, 0); err != nil {
		return nil, err
	}
	return dir.Readdirnames(-1)
}
