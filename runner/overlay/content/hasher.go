package content

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	// ChunkedAbove is the length in bytes above which a file's content is kept
	// as a list of chunks, so that an edit stores the chunks that it touched.
	ChunkedAbove = 4 << 20
	// chunkSize is the length of every chunk but the last.
	chunkSize = 1 << 20
	// maxList is the longest chunk list that is read back: 2 TiB of data.
	maxList = 64 << 20
)

var (
	ErrMoved   = errors.New("it changed while it was read")
	ErrTooMuch = errors.New("its data are more than the limit")
)

var zeros [64 << 10]byte

// IsZero says whether b is zeros.
func IsZero(b []byte) bool {
	for len(b) > len(zeros) {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
		b = b[len(zeros):]
	}
	return bytes.Equal(b, zeros[:len(b)])
}

// Hasher hashes contents and queues for storing what isn't stored yet.
// With a nil queue it only hashes. It isn't safe for concurrent use.
type Hasher struct {
	Queue func(ctx context.Context, h Hash, body []byte) error // takes over body
	Limit int64                                                // bytes of data of one file
	buf   []byte
	Bytes int64 // read so far
}

// File hashes the size bytes of an open file. prior is the list that the file
// had before, if any: its chunks are stored already. It fails with errMoved
// when the file isn't size bytes long, and with errTooMuch at the limit.
func (c *Hasher) File(ctx context.Context, fd int, size int64, prior *List) (Hash, *List, error) {
	if size <= ChunkedAbove {
		h, err := c.small(ctx, fd, int(size))
		return h, nil, err
	}
	return c.large(ctx, fd, size, prior)
}

func (c *Hasher) space(n int) []byte {
	if cap(c.buf) < n {
		c.buf = make([]byte, max(n, 64<<10))
	}
	return c.buf[:n]
}

func (c *Hasher) small(ctx context.Context, fd, size int) (Hash, error) {
	if int64(size) > c.Limit {
		return Hash{}, ErrTooMuch
	}
	buf := c.space(size + 1) // one more, to see that it ends there
	n, err := readFull(fd, buf, 0)
	if err != nil {
		return Hash{}, err
	}
	c.Bytes += int64(n)
	if n != size {
		return Hash{}, ErrMoved
	}
	h := Sum(buf[:n])
	if c.Queue == nil {
		return h, nil
	}
	return h, c.Queue(ctx, h, slices.Clone(buf[:n]))
}

func (c *Hasher) large(ctx context.Context, fd int, size int64, prior *List) (Hash, *List, error) {
	known, l := prior.has(), &List{size: size}
	var data, read int64 // data: where the next data begin
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return Hash{}, nil, err
		}
		if data <= off {
			data = nextData(fd, off, size)
		}
		if skip := (data - off) / chunkSize; skip > 0 || data >= size {
			if data >= size {
				skip = (size - off + chunkSize - 1) / chunkSize
			}
			l.addHoles(skip)
			if off += skip * chunkSize; off >= size || off < 0 {
				break
			}
			continue
		}
		want := int(min(chunkSize, size-off))
		if read += int64(want); read > c.Limit {
			return Hash{}, nil, ErrTooMuch
		}
		buf := c.space(want)
		n, err := readFull(fd, buf, off)
		if err != nil {
			return Hash{}, nil, err
		}
		c.Bytes += int64(n)
		if n != want {
			return Hash{}, nil, ErrMoved
		}
		off += int64(want)
		data = off
		if IsZero(buf) {
			l.addHoles(1)
			continue
		}
		h := Sum(buf)
		l.addData(h)
		if c.Queue != nil && !known[h] {
			c.buf = nil // given away
			if err := c.Queue(ctx, h, buf); err != nil {
				return Hash{}, nil, err
			}
		}
	}
	list := l.encode()
	h := Sum(list)
	if c.Queue != nil {
		if err := c.Queue(ctx, h, list); err != nil {
			return Hash{}, nil, err
		}
	}
	return h, l, nil
}

// nextData is the offset of the first data at or after off, or size. File
// systems that can't tell count everything as data (lseek(2), SEEK_DATA).
func nextData(fd int, off, size int64) int64 {
	at, err := unix.Seek(fd, off, unix.SEEK_DATA)
	switch {
	case err == unix.ENXIO:
		return size
	case err != nil || at < off:
		return off
	}
	return min(at, size)
}

// readFull reads into buf from off until it is full or the file ends.
func readFull(fd int, buf []byte, off int64) (int, error) {
	n := 0
	for n < len(buf) {
		k, err := unix.Pread(fd, buf[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		if k == 0 {
			break
		}
		n += k
	}
	return n, nil
}
