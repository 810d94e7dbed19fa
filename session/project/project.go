// Package project is the person's own project folder, and the only code of ours
// that writes it.
//
// A Folder looks at paths (Look, Keep), carries out Steps (Carry) and takes back
// what was carried out (Undo). A step names the state of a path before and after;
// contents are named by hash and come from the bodies of the session. What is
// written is journaled first: after a crash at any moment, Journals.Recover
// finishes it or takes all of it back, and says which.
//
// The project may be edited by its person meanwhile, and the steps come from what
// an agent made. So every path is reached from the folder's descriptor by
// openat2(2) without following links or crossing mounts, nothing is opened that
// could block, nothing below .git is ever written, and a file is only put in the
// place of another by exchanging them and looking at what came out: what isn't
// what was expected goes back.
//
// A Folder may be used by several goroutines. Carry, Undo and Recover of one
// project exclude each other, across processes.
package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// ErrMoved says that the project folder isn't what it was when it was opened.
var ErrMoved = errors.New("the project folder was renamed, replaced or unmounted meanwhile")

// Folder is an open project folder.
type Folder struct {
	path     string
	fd       int
	dev, ino uint64
}

// Open opens the project folder at an absolute path, which must not be a
// symbolic link. The caller closes it.
func Open(path string) (*Folder, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, fmt.Errorf("cannot open project folder %q: it isn't a plain absolute path", path)
	}
	fd, err := inode.OpenAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		var st unix.Stat_t
		if inode.Lstat(unix.AT_FDCWD, path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return nil, fmt.Errorf("cannot open project folder %q: it is a symbolic link; use the folder that it leads to", path)
		}
		return nil, fmt.Errorf("cannot open project folder %q: %w", path, err)
	}
	var st unix.Stat_t
	if err := inode.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("cannot look at project folder %q: %w", path, errors.Join(err, unix.Close(fd)))
	}
	return &Folder{path: path, fd: fd, dev: uint64(st.Dev), ino: st.Ino}, nil
}

// Close lets go of the folder. Nothing may use it any more.
func (f *Folder) Close() error { return unix.Close(f.fd) }

// here fails unless the folder still is at its path.
func (f *Folder) here() error {
	var st unix.Stat_t
	err := inode.Lstat(unix.AT_FDCWD, f.path, &st)
	if err != nil || uint64(st.Dev) != f.dev || st.Ino != f.ino {
		return fmt.Errorf("cannot use project folder %q: %w; nothing was done with it, open it where it is now", f.path, ErrMoved)
	}
	return nil
}

// open gives do what inode.Beneath opens, for as long as it takes.
func open(dirfd int, name string, flags uint64, do func(fd int) error) error {
	fd, err := inode.Beneath(dirfd, name, flags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

// openDir does so for a folder, however long its path is; "" for dirfd's own.
func openDir(dirfd int, path string, do func(fd int) error) error {
	fd, err := inode.OpenDirBeneath(dirfd, path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

// eachName calls f with a folder below dirfd and each name in it.
func eachName(dirfd int, path string, f func(fd int, name string) error) error {
	return openDir(dirfd, path, func(fd int) error {
		return inode.EachName(fd, make([]byte, 32<<10), func(name []byte) error { return f(fd, string(name)) })
	})
}

// Stat says what the kernel knows of a path, without reading it, and whether there is
// anything: nothing is when its folder is missing, or is no folder, or a link.
func (f *Folder) Stat(path string) (st unix.Stat_t, there bool, err error) {
	dir, name := manifest.Split(path)
	err = openDir(f.fd, dir, func(fd int) error { return inode.Lstat(fd, cmp.Or(name, "."), &st) })
	if inode.Gone(err) {
		return st, false, nil
	}
	return st, err == nil, err
}

// Names lists what is in a folder of the project, "" for itself; it is an error
// that it isn't there.
func (f *Folder) Names(ctx context.Context, path string) (names []string, err error) {
	err = eachName(f.fd, path, func(_ int, name string) error {
		names = append(names, name)
		return ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list %q: %w", path, explain(err))
	}
	slices.Sort(names)
	return names, nil
}

// maxData is how many bytes of data a file may have to be read at all.
const maxData = 1 << 40

// hashers are those that nobody uses: their buffers are large, and many paths are
// looked at.
var hashers sync.Pool

// Look says what is at path. Nothing is there when its folder is missing, or is
// no folder, or a link. Contents are read and hashed.
func (f *Folder) Look(ctx context.Context, path string) (State, error) { return f.Keep(ctx, path, nil) }

// Keep is Look, and stores a file's content in b.
func (f *Folder) Keep(ctx context.Context, path string, b content.Bodies) (State, error) {
	if err := f.here(); err != nil {
		return State{}, err
	}
	if !manifest.ValidPath(path) {
		return State{}, fmt.Errorf("cannot look at %q: it isn't a path inside the project", path)
	}
	q := content.NewQueue(b)
	h, ok := hashers.Get().(*content.Hasher)
	if !ok {
		h = &content.Hasher{Limit: maxData}
	}
	l := looker{ctx: ctx, hash: *h}
	defer func() {
		l.hash.Queue = nil
		*h = l.hash
		hashers.Put(h)
	}()
	if b != nil {
		l.hash.Queue = q.Add
	}
	dir, name := manifest.Split(path)
	var s State
	var failed error
	err := openDir(f.fd, dir, func(fd int) error {
		s, _, failed = l.look(fd, cmp.Or(name, "."))
		return nil
	})
	if inode.Gone(err) {
		err = nil
	}
	if err = errors.Join(err, failed, q.Flush(ctx)); err != nil {
		return State{}, fmt.Errorf("cannot look at %q: %w", path, explain(err))
	}
	return s, nil
}

// explain puts words to what the kernel only numbers.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("another file system is mounted there, which isn't part of the project: %w", err)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("the disk is full; make room on it: %w", err)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("its file system is mounted for reading alone; mount it for writing: %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("it or its folder is someone else's, or marked as immutable or append-only (lsattr shows it, chattr -i -a takes it away): %w", err)
	}
	return err
}

// looker looks at names. It belongs to one goroutine and one call.
type looker struct {
	ctx  context.Context
	hash content.Hasher
}

// tries is how often a file is read again that changes under the reader.
const tries = 3

// look says what a name below dirfd is, and gives the inode that it looked at.
func (l *looker) look(dirfd int, name string) (State, unix.Stat_t, error) {
	for n := 1; ; n++ {
		s, st, err := l.once(dirfd, name)
		if err != content.ErrMoved || n == tries {
			return s, st, err
		}
	}
}

func (l *looker) once(dirfd int, name string) (State, unix.Stat_t, error) {
	var st unix.Stat_t
	err := inode.Lstat(dirfd, name, &st)
	if inode.Gone(err) {
		return State{}, st, nil
	}
	if err != nil {
		return State{}, st, err
	}
	e := inode.EntryOf(name, &st)
	s := State{Kind: e.Kind, Meta: e.Meta, Size: e.Size, Links: e.Links}
	switch s.Kind {
	case manifest.KindSymlink:
		s.Found = true
		if s.Target, err = inode.Readlink(dirfd, name); err == unix.EINVAL || inode.Gone(err) {
			err = content.ErrMoved
		}
	case manifest.KindFile:
		err = l.read(dirfd, name, &s, &st, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	case manifest.KindDir:
		err = l.read(dirfd, name, &s, &st, unix.O_PATH|unix.O_DIRECTORY)
		if err == unix.EXDEV || inode.Denied(err) { // what it is is known all the same
			err = nil
		}
	case manifest.KindWhiteout:
		s.Kind = manifest.KindDevice // outside an overlay it is just that
	}
	return s, st, err
}

// read hashes the very file, or reads the attributes of the folder, that want says, or
// fails with content.ErrMoved. Attributes that can't be read are left out.
func (l *looker) read(dirfd int, name string, s *State, want *unix.Stat_t, flags uint64) error {
	fd, err := inode.Beneath(dirfd, name, flags)
	if inode.Gone(err) {
		err = content.ErrMoved
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	same := func() error {
		var st unix.Stat_t
		err := inode.Fstat(fd, &st)
		if err == nil && inode.KeyOf(&st) != inode.KeyOf(want) {
			err = content.ErrMoved
		}
		return err
	}
	err = same()
	if err == nil && s.Kind == manifest.KindFile {
		s.Hash, _, err = l.hash.File(l.ctx, fd, want.Size, nil)
	}
	if m, merr := inode.MetaOf(fd, want); merr == nil {
		s.Meta, s.Found = m, true
	}
	if err == nil && s.Kind == manifest.KindFile {
		err = same()
	}
	return err
}
