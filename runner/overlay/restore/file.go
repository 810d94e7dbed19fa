package restore

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
)

// file writes a file and puts it in the name's place, or writes it in place.
func (x *executor) file(dirfd int, name string, i int, op *Op) error {
	body, err := x.open(i, op)
	if err != nil {
		return err
	}
	defer body.Close()
	if op.InPlace {
		err := x.overwrite(dirfd, name, op, body)
		if !errors.Is(err, errNotOpened) {
			x.overwritten[op.Path] = err == nil
			return err
		}
	}
	return x.write(dirfd, name, op, body)
}

// write makes the file under a temporary name and puts it in the name's place.
func (x *executor) write(dirfd int, name string, op *Op, body *payload) error {
	var fd int
	temp, err := withTemp(func(temp string) error {
		var err error
		fd, err = unix.Openat(dirfd, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	err = body.write(x, fd)
	if err == nil {
		err = inode.SetMeta(fd, op.What, &op.Meta, false)
	}
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err == nil {
		err = rename(dirfd, temp, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dirfd, temp, 0)
		return err
	}
	return nil
}

// errNotOpened says that nothing could be written into what is there: it is a
// program that runs, it is no file any more, or a frozen process holds a lease on
// it (fcntl(2), F_SETLEASE). It is replaced then.
var errNotOpened = errors.New("it cannot be opened for writing")

// overwrite writes into the inode that is there. Should that end half-way, the
// file is neither what it was nor what it shall be; the next scan finds it by its
// times, and what it was is in the checkpoint that the plan began from. A file is
// never truncated to nothing where that can be helped: ext4 writes one that was
// to the disk when it is closed (auto_da_alloc, ext4(5)).
func (x *executor) overwrite(dirfd int, name string, op *Op, body *payload) error {
	fd, err := inode.Beneath(dirfd, name, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return errNotOpened
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := inode.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errNotOpened
	}
	size := int64(0)
	if body.solid() {
		size = op.Content.Size
	}
	if st.Size > size {
		if err := inode.Retry(func() error { return unix.Ftruncate(fd, size) }); err != nil {
			return err
		}
	}
	if err := body.write(x, fd); err != nil {
		return err
	}
	if err := inode.SetMeta(fd, op.What, &op.Meta, op.SameAttr); err != nil {
		return err
	}
	return nil
}

// payload is what a file shall hold: small contents in memory, checked; large
// ones as a stream whose Source checks each chunk.
type payload struct {
	size  int64
	small []byte
	r     io.ReadCloser // of large ones
}

func (x *executor) open(i int, op *Op) (*payload, error) {
	p := &payload{size: op.Content.Size}
	if p.size < 0 {
		return nil, unix.EINVAL
	}
	if p.size == 0 {
		return p, nil
	}
	r, err := x.src.Open(x.ctx, x.plan, i)
	if err != nil {
		return nil, err
	}
	p.r = r
	if p.size > content.ChunkedAbove {
		return p, nil
	}
	defer p.Close()
	x.space(int(p.size))
	p.small = x.buf[:p.size]
	if _, err := io.ReadFull(r, p.small); err != nil {
		return nil, fmt.Errorf("cannot read its content: %w", noEOF(err))
	}
	if err := atEnd(r); err != nil {
		return nil, err
	}
	if !op.Content.Hash.IsZero() && content.Sum(p.small) != op.Content.Hash {
		return nil, errors.New("its content isn't what the checkpoint had")
	}
	return p, nil
}

func (x *executor) space(n int) {
	if cap(x.buf) < n {
		x.buf = make([]byte, max(n, 256<<10))
	}
}

func (p *payload) Close() {
	if p.r != nil {
		_ = p.r.Close()
		p.r = nil
	}
}

// atEnd fails unless r has nothing more to give.
func atEnd(r io.Reader) error {
	var one [1]byte
	switch n, err := io.ReadFull(r, one[:]); {
	case n > 0:
		return errors.New("its content is longer than it was")
	case err != io.EOF:
		return fmt.Errorf("cannot read its content: %w", err)
	}
	return nil
}

// solid says whether write leaves nothing of the file as it was.
func (p *payload) solid() bool {
	if p.size > content.ChunkedAbove {
		return false
	}
	for b := p.small; len(b) > 0; b = b[min(content.HoleUnit, len(b)):] {
		if len(b) >= content.HoleUnit && content.IsZero(b[:content.HoleUnit]) {
			return false
		}
	}
	return true
}

// write fills an empty file. Runs of zeros become holes.
func (p *payload) write(x *executor, fd int) error {
	if p.size <= content.ChunkedAbove {
		err := content.WriteData(fd, p.small, 0)
		if err == nil && p.size > 0 && p.small[p.size-1] == 0 { // the end may be a hole
			err = p.setSize(fd)
		}
		return err
	}
	x.space(256 << 10)
	buf := x.buf[:256<<10]
	skip, _ := p.r.(content.HoleSkipper)
	for off := int64(0); ; {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		if skip != nil {
			off += skip.SkipHole()
		}
		if off < 0 || off > p.size {
			return errors.New("its content is longer than it was")
		}
		n, err := p.r.Read(buf[:min(int64(len(buf)), p.size-off+1)])
		if int64(n) > p.size-off {
			return errors.New("its content is longer than it was")
		}
		if werr := content.WriteData(fd, buf[:n], off); werr != nil {
			return werr
		}
		off += int64(n)
		if err == io.EOF {
			if off != p.size {
				return errors.New("its content is shorter than it was")
			}
			return p.setSize(fd)
		}
		if err != nil {
			return fmt.Errorf("cannot read its content: %w", err)
		}
	}
}

func (p *payload) setSize(fd int) error {
	var st unix.Stat_t
	if err := inode.Fstat(fd, &st); err != nil || st.Size == p.size {
		return err
	}
	return inode.Retry(func() error { return unix.Ftruncate(fd, p.size) })
}
