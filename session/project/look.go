package project

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// maxData is how many bytes of data a file may have to be read at all.
const maxData = 1 << 40

// Look says what is at path. Nothing is there when its folder is missing, or is
// no folder, or a link. Contents are read and hashed.
func (f *Folder) Look(ctx context.Context, path string) (State, error) { return f.Keep(ctx, path, nil) }

// Keep is Look, and stores a file's content in b.
func (f *Folder) Keep(ctx context.Context, path string, b content.Bodies) (State, error) {
	if err := f.here(); err != nil {
		return State{}, err
	}
	q := content.NewQueue(b)
	l := looker{ctx: ctx, hash: content.Hasher{Limit: maxData}}
	if b != nil {
		l.hash.Queue = q.Add
	}
	if !manifest.ValidPath(path) {
		return State{}, fmt.Errorf("cannot look at %q: it isn't a path inside the project", path)
	}
	dir, name := manifest.Split(path)
	if path == "" {
		name = "."
	}
	fd, err := inode.OpenDirBeneath(f.fd, dir)
	if inode.Gone(err) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("cannot look at %q: %w", path, explain(err))
	}
	defer unix.Close(fd)
	s, _, err := l.look(fd, name)
	if err == nil {
		err = q.Flush(ctx)
	}
	if err != nil {
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
	s := State{Kind: inode.KindOf(&st), Mode: st.Mode & 0o7777, MTime: manifest.TimeOf(st.Mtim)}
	switch s.Kind {
	case manifest.KindSymlink:
		if s.Target, err = inode.Readlink(dirfd, name); err == unix.EINVAL || inode.Gone(err) {
			err = content.ErrMoved
		}
	case manifest.KindFile:
		s.Size = st.Size
		s.Hash, err = l.read(dirfd, name, &st)
	case manifest.KindWhiteout:
		s.Kind = manifest.KindDevice // outside an overlay it is just that
	}
	return s, st, err
}

// read hashes the very file that st says, or fails with content.ErrMoved.
func (l *looker) read(dirfd int, name string, want *unix.Stat_t) (content.Hash, error) {
	fd, err := inode.Beneath(dirfd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if inode.Gone(err) {
		return content.Hash{}, content.ErrMoved
	}
	if err != nil {
		return content.Hash{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := inode.Fstat(fd, &st); err != nil {
		return content.Hash{}, err
	}
	if inode.KeyOf(&st) != inode.KeyOf(want) {
		return content.Hash{}, content.ErrMoved
	}
	h, _, err := l.hash.File(l.ctx, fd, st.Size, nil)
	if err != nil {
		return content.Hash{}, err
	}
	if err := inode.Fstat(fd, &st); err != nil {
		return content.Hash{}, err
	}
	if inode.KeyOf(&st) != inode.KeyOf(want) {
		return content.Hash{}, content.ErrMoved
	}
	return h, nil
}
