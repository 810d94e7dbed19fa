package content

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"stepbox/runner/overlay/codec"
)

// List is the content of a file above ChunkedAbove. Chunks of nothing but
// zeros aren't stored, whether they are holes on disk or not, so that equal
// contents have equal lists.
type List struct {
	size int64
	runs []chunkRun
}

// chunkRun is a number of zero chunks followed by chunks with data.
type chunkRun struct {
	holes int64
	data  []Hash
}

func (l *List) addHoles(n int64) {
	if n == 0 {
		return
	}
	if k := len(l.runs); k > 0 && len(l.runs[k-1].data) == 0 {
		l.runs[k-1].holes += n
		return
	}
	l.runs = append(l.runs, chunkRun{holes: n})
}

func (l *List) addData(h Hash) {
	if len(l.runs) == 0 {
		l.runs = append(l.runs, chunkRun{})
	}
	r := &l.runs[len(l.runs)-1]
	r.data = append(r.data, h)
}

func (l *List) has() map[Hash]bool {
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

func (l *List) encode() []byte {
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

func decodeList(b []byte) (*List, error) {
	d := codec.NewDecoder(b)
	d.Magic(listMagic)
	l := &List{size: int64(d.Uvarint(1<<63 - 1))}
	want := (l.size + chunkSize - 1) / chunkSize
	if l.size > 1<<63-1-chunkSize {
		want = l.size/chunkSize + 1
	}
	n := d.Count(2)
	for i := range n {
		r := chunkRun{holes: int64(d.Uvarint(1 << 43))}
		k := d.Count(len(Hash{}))
		for range k {
			r.data = append(r.data, ReadHash(d))
		}
		if (i > 0 && r.holes == 0) || (i < n-1 && k == 0) || (r.holes == 0 && k == 0) {
			d.Fail("a run that isn't minimal")
		}
		want -= r.holes + int64(k)
		l.runs = append(l.runs, r)
	}
	if want != 0 {
		d.Fail("chunks that don't add up to its size")
	}
	return l, d.End()
}

// HoleSkipper is a reader that knows where its zeros are.
type HoleSkipper interface {
	// skipHole moves over the zeros at the current position and says how many
	// there were; 0 when data come next.
	SkipHole() int64
}

// Open opens the content of size bytes that is kept under h.
func Open(ctx context.Context, b Bodies, h Hash, size int64) (io.ReadCloser, error) {
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
	raw, err := ReadBody(ctx, b, h, maxList)
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
			body, err := ReadBody(r.ctx, r.b, run.data[0], chunkSize)
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

func (r *chunkReader) SkipHole() int64 {
	if err := r.fill(); err != nil {
		return 0 // the next Read says it
	}
	n := r.hole
	r.hole, r.left = 0, r.left-n
	return n
}

func (r *chunkReader) Close() error { return nil }

// Refs gives the hash of every body that the content of a kept file consists
// of: one, or above ChunkedAbove its chunk list and the chunks.
func Refs(ctx context.Context, b Bodies, h Hash, size int64) ([]Hash, error) {
	out := []Hash{h}
	if size <= ChunkedAbove {
		return out, nil
	}
	raw, err := ReadBody(ctx, b, h, maxList)
	if err != nil {
		return out, err
	}
	list, err := decodeList(raw)
	if err != nil {
		return out, fmt.Errorf("cannot read chunk list %s: %w", h, err)
	}
	for _, r := range list.runs {
		out = append(out, r.data...)
	}
	return out, nil
}
