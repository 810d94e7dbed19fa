package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// few is up to how many steps what they write goes to disk one by one.
const few = 32

// make makes what is new beside where it shall be, whole and on disk. Folders
// that can't be written to and have a step are opened for it.
func (x *executor) make() error {
	p := Progress{Stage: "write"}
	for i := range x.steps {
		s := &x.steps[i]
		p.Whole += s.New.Size
		if s.Old.Kind == manifest.KindDir && s.Old.Mode&0o700 != 0o700 {
			dir, name := manifest.Split(s.Path)
			fd, err := x.dir(dir)
			if err == nil {
				err = chmodDir(fd, name, s.Old.Mode|0o700)
			}
			if err != nil {
				return fmt.Errorf("cannot open folder %q for writing: %w", s.Path, explain(err))
			}
		}
	}
	refused := &RefusedError{}
	for k := range x.moves {
		m := &x.moves[k]
		if m.how == moveOut {
			continue
		}
		fd, err := x.dir(m.dir)
		for _, i := range m.tree {
			if err == nil {
				err = x.ctx.Err()
			}
			if err == nil {
				err = x.inTree(m, fd, m.temp, i, func(fd int, name string) error {
					return x.one(fd, name, m.beside(&x.steps[m.step], &x.steps[i]), &x.steps[i], func(n int64) { p.Part += n; x.told(p) })
				})
			}
			if body := (bodyError{}); errors.As(err, &body) && x.ctx.Err() == nil {
				refused.add(x.steps[i].Path, "can't be written: "+err.Error())
				err = nil
			}
			if inode.Gone(err) {
				return refuse(x.steps[i].Path, "can't be written: its folder was moved away meanwhile")
			}
			if err != nil {
				return fmt.Errorf("cannot write %q: %w", x.steps[i].Path, explain(err))
			}
		}
		for _, i := range slices.Backward(m.tree) {
			if x.steps[i].New.Kind == manifest.KindDir {
				if err := x.inTree(m, fd, m.temp, i, func(fd int, name string) error { return x.dressName(fd, name, &x.steps[i]) }); err != nil {
					return fmt.Errorf("cannot write %q: %w", x.steps[i].Path, explain(err))
				}
			}
		}
	}
	if len(refused.Conflicts) > 0 {
		return refused
	}
	return x.sync()
}

// one makes a file, link or folder at path.
func (x *executor) one(dirfd int, name, path string, s *Step, told func(int64)) error {
	switch s.New.Kind {
	case manifest.KindDir:
		return change(func() error { return unix.Mkdirat(dirfd, name, 0o700) })
	case manifest.KindSymlink:
		if err := change(func() error { return unix.Symlinkat(s.New.Target, dirfd, name) }); err != nil {
			return err
		}
		return x.dressName(dirfd, name, s)
	}
	if x.link(dirfd, name, s) {
		told(s.New.Size)
		return nil
	}
	fd := -1
	err := change(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := x.fill(x.ctx, fd, s.New, told); err != nil {
		return err
	}
	x.dress(fd, s)
	x.made(path, s.New.Links, s.New)
	if x.many() {
		return nil
	}
	return fsync(fd)
}

// dressName is dress for a name below dirfd.
func (x *executor) dressName(dirfd int, name string, s *Step) error {
	return open(dirfd, name, unix.O_PATH, func(fd int) error {
		x.dress(fd, s)
		return nil
	})
}

// fill writes a content into an empty file. Runs of zeros become holes.
func (x *executor) fill(ctx context.Context, fd int, s State, told func(int64)) error {
	body, err := content.Open(ctx, x.r.in.Bodies, s.Hash, s.Size)
	if err != nil {
		return bodyError{err}
	}
	defer body.Close()
	if x.buf == nil {
		x.buf = make([]byte, content.ChunkedAbove+1)
	}
	buf, whole := x.buf[:256<<10], s.Size <= content.ChunkedAbove
	if whole {
		buf = x.buf[:s.Size+1]
	}
	skip, _ := body.(content.HoleSkipper)
	for off := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		was := off
		if skip != nil {
			off += skip.SkipHole()
		}
		n, err := io.ReadFull(body, buf[:min(int64(len(buf)), s.Size-off+1)])
		end := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !end {
			return bodyError{err}
		}
		if off+int64(n) > s.Size || end && off+int64(n) < s.Size || whole && content.Sum(buf[:n]) != s.Hash {
			return bodyError{fmt.Errorf("cannot use body %s: it isn't what was stored", s.Hash)}
		}
		crashPoint()
		if err := content.WriteData(fd, buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
		told(off - was)
		if end && n > 0 && buf[n-1] != 0 {
			return nil
		}
		if end { // it may end in a hole
			return change(func() error { return unix.Ftruncate(fd, s.Size) })
		}
	}
}

// bodyError says that a content can't be had from the bodies.
type bodyError struct{ error }

func (e bodyError) Unwrap() error { return e.error }

// many says whether what the steps write goes to disk together with whatever else
// that file system has to write, rather than one by one.
func (x *executor) many() bool {
	return len(x.steps) > few || slices.ContainsFunc(x.moves, func(m move) bool { return len(m.tree) > 1 })
}

// sync writes to disk what the folders with steps list.
func (x *executor) sync() error {
	if x.many() {
		if err := change(func() error { return unix.Syncfs(x.f.fd) }); err != nil {
			return fmt.Errorf("cannot write to disk: %w", explain(err))
		}
		return nil
	}
	dirs := map[string]bool{}
	for _, m := range x.moves {
		dirs[m.dir], dirs[m.at] = true, true
	}
	for _, s := range x.steps {
		if s.Old.Kind == manifest.KindDir {
			dirs[s.Path] = true
		}
	}
	for dir := range dirs {
		fd, err := x.dir(dir)
		if err == nil {
			err = fsync(fd)
		}
		if err != nil && !inode.Gone(err) && !inode.Denied(err) {
			return fmt.Errorf("cannot write folder %q to disk: %w", dir, explain(err))
		}
	}
	return nil
}

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
	return open(dirfd, name, unix.O_PATH|unix.O_DIRECTORY, func(fd int) error { // its owner needn't be able to read it
		var st unix.Stat_t
		if err := inode.Fstat(fd, &st); err != nil || st.Mode&0o777 == mode&0o777 {
			return err
		}
		return change(func() error { return unix.Chmod(inode.FDPath(fd), mode&0o777|st.Mode&0o7000) })
	})
}

// written says whether some process has the file of that name open for writing, or
// mapped so: then no lease on reading it can be had (fcntl(2), F_SETLEASE). Where
// leases aren't kept, or the file is another user's, it can't be told, and is no.
func written(dirfd int, name string) bool {
	busy := false
	_ = open(dirfd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		busy = err == unix.EAGAIN
		return err // closed, the file has no lease of ours any more
	})
	return busy
}
