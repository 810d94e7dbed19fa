package inode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/manifest"
)

// OpenUpper opens what an Opener is asked for: the entry at path below the
// directory root, which may be an O_PATH descriptor, without following links
// or blocking. Files and directories come open for reading, links, FIFOs and
// sockets as O_PATH descriptors. A path may also ask for an inode's extended
// attributes, which come as a file of this package's own form. It is for the
// process that may read what the scanner can't.
func OpenUpper(root *os.File, path string) (*os.File, error) {
	path, attrs := strings.CutSuffix(path, attrsSuffix)
	if !manifest.ValidPath(path) {
		return nil, fmt.Errorf("cannot open %q: %w", path, unix.EINVAL)
	}
	fd, err := openEntry(int(root.Fd()), path)
	if err != nil {
		return nil, fmt.Errorf("cannot open %q: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	if !attrs {
		return f, nil
	}
	defer f.Close()
	a, err := sendAttrs(fd)
	if err != nil {
		return nil, fmt.Errorf("cannot read the attributes of %q: %w", path, err)
	}
	return a, nil
}

func openEntry(root int, path string) (int, error) {
	if path == "" {
		return OpenDirBeneath(root, "")
	}
	dirPath, name := manifest.Split(path)
	dirfd := root
	if dirPath != "" {
		fd, err := OpenDirBeneath(root, dirPath)
		if err != nil {
			return -1, err
		}
		defer unix.Close(fd)
		dirfd = fd
	}
	var st unix.Stat_t
	if err := Lstat(dirfd, name, &st); err != nil {
		return -1, err
	}
	flags := uint64(unix.O_PATH)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	case unix.S_IFDIR:
		flags = unix.O_RDONLY | unix.O_DIRECTORY
	}
	return Beneath(dirfd, name, flags)
}

// Opener opens what the calling process can't: a file of mode 000, say. The
// path, any bytes, is to be handed to OpenUpper in a process that can. It must
// be safe for concurrent use. The caller closes the file.
type Opener func(ctx context.Context, path string) (*os.File, error)

// openerError is what an Opener failed with. Whatever it was: what can't be
// opened isn't in the checkpoint, and that is said of the path.
type openerError struct{ error }

func (e openerError) Unwrap() error { return e.error }

// Is makes every such error one of missing rights, but for those that say
// that the name is gone.
func (e openerError) Is(target error) bool { return target == os.ErrPermission && !Gone(e.error) }

// ask calls the opener unless there is none.
func (o Opener) ask(ctx context.Context, path string) (*os.File, error) {
	if o == nil {
		return nil, unix.EACCES
	}
	f, err := o(ctx, path)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, openerError{err}
	}
	return f, nil
}

// Open gives a descriptor of what the opener opens.
func (o Opener) Open(ctx context.Context, path string) (int, error) {
	f, err := o.ask(ctx, path)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// OpenAt opens the name that the opener knows as path, below dirfd where the
// caller's own rights reach.
func (o Opener) OpenAt(ctx context.Context, dirfd int, name, path string, flags int) (int, error) {
	fd, err := OpenAt(dirfd, name, flags)
	if Denied(err) {
		return o.Open(ctx, path)
	}
	return fd, err
}

// Lstat looks at it in the same way.
func (o Opener) Lstat(ctx context.Context, dirfd int, name, path string, st *unix.Stat_t) error {
	err := Lstat(dirfd, name, st)
	if !Denied(err) {
		return err
	}
	fd, err := o.Open(ctx, path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return Fstat(fd, st)
}

// Readlink reads a link in the same way.
func (o Opener) Readlink(ctx context.Context, dirfd int, name, path string) (string, error) {
	target, err := Readlink(dirfd, name)
	if !Denied(err) {
		return target, err
	}
	fd, err := o.Open(ctx, path)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return Readlink(fd, "")
}

// Attrs is what ReadAttrs asks for an inode at that path.
func (o Opener) Attrs(ctx context.Context, path string) func() (*os.File, error) {
	if o == nil {
		return nil
	}
	return func() (*os.File, error) { return o.ask(ctx, path+attrsSuffix) }
}

// attrsSuffix after an Opener's path asks for the inode's user attributes, raw,
// instead of its content. No path has a NUL.
const attrsSuffix = "\x00attributes"

// sendAttrs is the other end of receiveAttrs: an anonymous file with the user
// attributes of an open inode.
func sendAttrs(fd int) (*os.File, error) {
	xs, err := rawXattrs(fd, func(name string) bool { return strings.HasPrefix(name, "user.") })
	if err != nil {
		return nil, err
	}
	mem, err := unix.MemfdCreate("attributes", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(mem), "attributes")
	if _, err := f.WriteAt(manifest.AppendXattrs(nil, xs), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func receiveAttrs(ask func() (*os.File, error)) (map[string][]byte, error) {
	f, err := ask()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 2*maxXattrs))
	if err != nil {
		return nil, err
	}
	d := codec.NewDecoder(raw)
	values := map[string][]byte{}
	for _, x := range manifest.ReadXattrs(d) {
		values[x.Name] = x.Value
	}
	return values, d.End()
}
