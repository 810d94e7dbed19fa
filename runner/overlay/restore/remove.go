package restore

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
)

const (
	// removeDepth is how many directories below each other are open at once
	// while a tree is removed; what is deeper is moved up first.
	removeDepth = 128
	// removeRounds is how often a directory is emptied before giving up on
	// one that something else keeps filling.
	removeRounds = 8
)

// remove takes a name away with everything below it. It never follows a link: a
// directory is opened below its parent only, and anything else is unlinked.
func (x *executor) remove(dirfd int, name string) error {
	r := remover{x: x, top: dirfd, buf: make([]byte, 32<<10)}
	err := r.remove(dirfd, name, 0)
	for len(r.deep) > 0 && err == nil {
		next := r.deep[len(r.deep)-1]
		r.deep = r.deep[:len(r.deep)-1]
		err = r.remove(dirfd, next, 0)
	}
	return err
}

type remover struct {
	x    *executor
	top  int
	buf  []byte
	deep []string // directories moved up into top
}

func (r *remover) remove(dirfd int, name string, depth int) error {
	if err := r.x.ctx.Err(); err != nil {
		return err
	}
	err := inode.Retry(func() error { return unix.Unlinkat(dirfd, name, 0) })
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.EISDIR, unix.EPERM: // EPERM: POSIX' word for it
	default:
		return err
	}
	if depth >= removeDepth {
		temp, err := withTemp(func(temp string) error {
			return unix.Renameat2(dirfd, name, r.top, temp, unix.RENAME_NOREPLACE)
		})
		if err == nil {
			r.deep = append(r.deep, temp)
		}
		return err
	}
	for range removeRounds {
		if err := r.empty(dirfd, name, depth); err != nil {
			if err == unix.ENOENT {
				return nil
			}
			return err
		}
		err = inode.Retry(func() error { return unix.Unlinkat(dirfd, name, unix.AT_REMOVEDIR) })
		switch err {
		case nil, unix.ENOENT:
			return nil
		case unix.ENOTEMPTY, unix.EEXIST:
			continue
		default:
			return err
		}
	}
	return fmt.Errorf("something keeps filling it: %w", err)
}

// empty removes what is in a directory.
func (r *remover) empty(dirfd int, name string, depth int) error {
	fd, err := inode.Beneath(dirfd, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		// Names first: what a directory lists while it is emptied isn't defined.
		var names []string
		err := inode.EachName(fd, r.buf, func(n []byte) error {
			names = append(names, string(n))
			if len(names) >= removeBatch {
				return errEnough
			}
			return nil
		})
		if err != nil && err != errEnough {
			return err
		}
		for _, n := range names {
			if err := r.remove(fd, n, depth+1); err != nil {
				return err
			}
		}
		if err == nil {
			return nil
		}
		if err := inode.Rewind(fd); err != nil {
			return err
		}
	}
}

var errEnough = errors.New("enough names")

// removeBatch is how many names of a directory are held in memory.
const removeBatch = 1 << 16
