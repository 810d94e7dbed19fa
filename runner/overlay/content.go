package overlay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	errMoved   = errors.New("it changed while it was read")
	errTooMuch = errors.New("its data are more than the limit")
)

var zeros [64 << 10]byte

func isZero(b []byte) bool {
	for len(b) > len(zeros) {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
		b = b[len(zeros):]
	}
	return bytes.Equal(b, zeros[:len(b)])
}

// chunkList is the content of a file above ChunkedAbove. Chunks of nothing but
// zeros aren't stored, whether they are holes on disk or not, so that equal
// contents have equal lists.
type chunkList struct {
	size int64
	runs []chunkRun
}

// chunkRun is a number of zero chunks followed by chunks with data.
type chunkRun struct {
	holes int64
	data  []Hash
}

func (l *chunkList) addHoles(n int64) {
	if n == 0 {
		return
	}
	if k := len(l.runs); k > 0 && len(l.runs[k-1].data) == 0 {
		l.runs[k-1].holes += n
		return
	}
	l.runs = append(l.runs, chunkRun{holes: n})
}

func (l *chunkList) addData(h Hash) {
	if len(l.runs) == 0 {
		l.runs = append(l.runs, chunkRun{})
	}
	r := &l.runs[len(l.runs)-1]
	r.data = append(r.data, h)
}

func (l *chunkList) has() map[Hash]bool {
	if l == nil {
		return nil
	}
	m := map[Hash]bool{}
	for _, r := range l.runs {
		for _, h := range r.data {
			m[h] = true
		}
	}
	return m
}

const listMagic = "sbc1"

func (l *chunkList) encode() []byte {
	b := append([]byte(nil), listMagic...)
	b = binary.AppendUvarint(b, uint64(l.size))
	b = binary.AppendUvarint(b, uint64(len(l.runs)))
	for _, r := range l.runs {
		b = binary.AppendUvarint(b, uint64(r.holes))
		b = binary.AppendUvarint(b, uint64(len(r.data)))
		for _, h := range r.data {
			b = append(b, h[:]...)
		}
	}
	return b
}

func decodeList(b []byte) (*chunkList, error) {
	d := decoder{b: b}
	d.magic(listMagic)
	l := &chunkList{size: int64(d.uvarint(1<<63 - 1))}
	want := (l.size + chunkSize - 1) / chunkSize
	if l.size > 1<<63-1-chunkSize {
		want = l.size/chunkSize + 1
	}
	n := d.count(2)
	for i := range n {
		r := chunkRun{holes: int64(d.uvarint(1 << 43))}
		k := d.count(len(Hash{}))
		for range k {
			r.data = append(r.data, d.hash())
		}
		if (i > 0 && r.holes == 0) || (i < n-1 && k == 0) || (r.holes == 0 && k == 0) {
			d.fail("a run that isn't minimal")
		}
		want -= r.holes + int64(k)
		l.runs = append(l.runs, r)
	}
	if want != 0 {
		d.fail("chunks that don't add up to its size")
	}
	return l, d.end()
}

// contentHasher hashes contents and queues for storing what isn't stored yet.
// With a nil queue it only hashes. It isn't safe for concurrent use.
type contentHasher struct {
	queue func(ctx context.Context, h Hash, body []byte) error // takes over body
	limit int64                                                // bytes of data of one file
	buf   []byte
	bytes int64 // read so far
}

// file hashes the size bytes of an open file. prior is the list that the file
// had before, if any: its chunks are stored already. It fails with errMoved
// when the file isn't size bytes long, and with errTooMuch at the limit.
func (c *contentHasher) file(ctx context.Context, fd int, size int64, prior *chunkList) (Hash, *chunkList, error) {
	if size <= ChunkedAbove {
		h, err := c.small(ctx, fd, int(size))
		return h, nil, err
	}
	return c.large(ctx, fd, size, prior)
}

func (c *contentHasher) space(n int) []byte {
	if cap(c.buf) < n {
		c.buf = make([]byte, max(n, 64<<10))
	}
	return c.buf[:n]
}

func (c *contentHasher) small(ctx context.Context, fd, size int) (Hash, error) {
	if int64(size) > c.limit {
		return Hash{}, errTooMuch
	}
	buf := c.space(size + 1) // one more, to see that it ends there
	n, err := readFull(fd, buf, 0)
	if err != nil {
		return Hash{}, err
	}
	c.bytes += int64(n)
	if n != size {
		return Hash{}, errMoved
	}
	h := hashOf(buf[:n])
	if c.queue == nil {
		return h, nil
	}
	return h, c.queue(ctx, h, slices.Clone(buf[:n]))
}

func (c *contentHasher) large(ctx context.Context, fd int, size int64, prior *chunkList) (Hash, *chunkList, error) {
	known, l := prior.has(), &chunkList{size: size}
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
		if read += int64(want); read > c.limit {
			return Hash{}, nil, errTooMuch
		}
		buf := c.space(want)
		n, err := readFull(fd, buf, off)
		if err != nil {
			return Hash{}, nil, err
		}
		c.bytes += int64(n)
		if n != want {
			return Hash{}, nil, errMoved
		}
		off += int64(want)
		data = off
		if isZero(buf) {
			l.addHoles(1)
			continue
		}
		h := hashOf(buf)
		l.addData(h)
		if c.queue != nil && !known[h] {
			c.buf = nil // given away
			if err := c.queue(ctx, h, buf); err != nil {
				return Hash{}, nil, err
			}
		}
	}
	list := l.encode()
	h := hashOf(list)
	if c.queue != nil {
		if err := c.queue(ctx, h, list); err != nil {
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

// holeSkipper is a reader that knows where its zeros are.
type holeSkipper interface {
	// skipHole moves over the zeros at the current position and says how many
	// there were; 0 when data come next.
	skipHole() int64
}

// openStored gives the content of size bytes that is kept under h.
func openStored(ctx context.Context, b Bodies, h Hash, size int64) (io.ReadCloser, error) {
	if size <= ChunkedAbove {
		r, n, err := b.Open(ctx, h)
		if err != nil {
			return nil, fmt.Errorf("cannot open body %s: %w", h, err)
		}
		if n != size {
			_ = r.Close()
			return nil, fmt.Errorf("cannot use body %s: it has %d bytes instead of %d", h, n, size)
		}
		return r, nil
	}
	raw, err := readBody(ctx, b, h, maxList)
	if err != nil {
		return nil, err
	}
	l, err := decodeList(raw)
	if err != nil {
		return nil, fmt.Errorf("cannot read chunk list %s: %w", h, err)
	}
	if l.size != size {
		return nil, fmt.Errorf("cannot use chunk list %s: it is for %d bytes instead of %d", h, l.size, size)
	}
	return &chunkReader{ctx: ctx, b: b, left: size, runs: l.runs}, nil
}

// chunkReader reads a chunked content. It keeps its caller's context because
// io.Reader has no place for one.
type chunkReader struct {
	ctx  context.Context
	b    Bodies
	runs []chunkRun
	left int64  // bytes not yet read
	hole int64  // zeros to give before anything else
	cur  []byte // rest of the current chunk
}

// fill makes hole or cur hold something, unless the content has ended.
func (r *chunkReader) fill() error {
	for r.hole == 0 && len(r.cur) == 0 {
		if r.left == 0 {
			return io.EOF
		}
		run := &r.runs[0] // the list was checked to add up
		switch {
		case run.holes > 0:
			if run.holes > r.left/chunkSize {
				r.hole = r.left
			} else {
				r.hole = run.holes * chunkSize
			}
			run.holes = 0
		case len(run.data) > 0:
			want := min(chunkSize, r.left)
			body, err := readBody(r.ctx, r.b, run.data[0], chunkSize)
			if err != nil {
				return err
			}
			if int64(len(body)) != want {
				return fmt.Errorf("cannot use chunk %s: it has %d bytes instead of %d", run.data[0], len(body), want)
			}
			r.cur, run.data = body, run.data[1:]
		default:
			r.runs = r.runs[1:]
		}
	}
	return nil
}

func (r *chunkReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.fill(); err != nil {
		return 0, err
	}
	var n int
	if r.hole > 0 {
		n = int(min(int64(len(p)), r.hole))
		clear(p[:n])
		r.hole -= int64(n)
	} else {
		n = copy(p, r.cur)
		r.cur = r.cur[n:]
	}
	r.left -= int64(n)
	return n, nil
}

func (r *chunkReader) skipHole() int64 {
	if err := r.fill(); err != nil {
		return 0 // the next Read says it
	}
	n := r.hole
	r.hole, r.left = 0, r.left-n
	return n
}

func (r *chunkReader) Close() error { return nil }
