package restore

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/lower"
)

// Source gives Execute the bytes of the files it writes. Execute asks in the
// order of the plan, at most once for each step, and closes one before it
// asks for the next.
type Source interface {
	// Open opens the content of the step p.Ops[i], which is an OpFile.
	Open(ctx context.Context, p *Plan, i int) (io.ReadCloser, error)
}

// NewSource takes contents from Bodies and from the host's files.
func NewSource(lower *lower.Lower, b content.Bodies) Source { return &bodySource{lower, b} }

type bodySource struct {
	lower *lower.Lower
	b     content.Bodies
}

func (s *bodySource) Open(ctx context.Context, p *Plan, i int) (io.ReadCloser, error) {
	op := &p.Ops[i]
	if !op.Content.Lower {
		return content.Open(ctx, s.b, op.Content.Hash, op.Content.Size)
	}
	if s.lower == nil {
		return nil, fmt.Errorf("cannot open the host's %q: there is no lower", op.Path)
	}
	r, _, err := s.lower.Open(ctx, op.Path)
	return r, err
}

// The stream between SendContents and ReceiveContents: frames of a byte, a
// number, and for data and faults that many bytes.
const (
	frameFile  = 'f' // the step's index; its content follows
	frameData  = 'd'
	frameHole  = 'h' // that many zeros
	frameEnd   = 'e' // of this content
	frameFault = 'x' // this content can't be had, and why
	frameDone  = 'z' // of all

	maxFrame = 1 << 20
)

// SendContents writes the contents of all of the plan's files to w, in order,
// for a ReceiveContents in the process that runs Execute. A content that can't
// be had fails its own step there and nothing else. It returns early when w
// fails, as it does when the other side is done with the plan or gave up.
func SendContents(ctx context.Context, w io.Writer, p *Plan, src Source) error {
	s := sender{w: bufio.NewWriterSize(w, 64<<10), buf: make([]byte, 256<<10)}
	for i := range p.Ops {
		if p.Ops[i].Kind != OpFile || p.Ops[i].Content.Size == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		s.frame(frameFile, uint64(i))
		r, err := src.Open(ctx, p, i)
		if err == nil {
			err = s.content(r)
			if cerr := r.Close(); err == nil {
				err = cerr
			}
		}
		if s.err != nil {
			break
		}
		if err != nil {
			text := err.Error()
			text = text[:min(len(text), 4096)]
			s.frame(frameFault, uint64(len(text)))
			s.write([]byte(text))
			continue
		}
		s.frame(frameEnd, 0)
	}
	s.frame(frameDone, 0)
	if s.err == nil {
		s.err = s.w.Flush()
	}
	if s.err != nil {
		return fmt.Errorf("cannot send contents: %w", s.err)
	}
	return nil
}

type sender struct {
	w   *bufio.Writer
	buf []byte
	err error // of w
}

func (s *sender) write(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
}

func (s *sender) frame(kind byte, n uint64) {
	var b [1 + binary.MaxVarintLen64]byte
	b[0] = kind
	s.write(b[:1+binary.PutUvarint(b[1:], n)])
}

func (s *sender) content(r io.Reader) error {
	skip, _ := r.(content.HoleSkipper)
	for s.err == nil {
		if skip != nil {
			if n := skip.SkipHole(); n > 0 {
				s.frame(frameHole, uint64(n))
			}
		}
		n, err := r.Read(s.buf)
		if n > 0 {
			s.frame(frameData, uint64(n))
			s.write(s.buf[:n])
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReceiveContents is the Source at the other end of SendContents. It belongs
// to one Execute.
func ReceiveContents(r io.Reader) Source { return &receiver{r: bufio.NewReaderSize(r, 64<<10)} }

type receiver struct {
	r   *bufio.Reader
	cur *received // not yet read to its end
}

// frame reads the next frame's head.
func (s *receiver) frame() (byte, uint64, error) {
	kind, err := s.r.ReadByte()
	if err != nil {
		return 0, 0, fmt.Errorf("cannot receive contents: %w", noEOF(err))
	}
	n, err := binary.ReadUvarint(s.r)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot receive contents: %w", noEOF(err))
	}
	if (kind == frameData || kind == frameFault) && n > maxFrame || n > 1<<63-1 {
		return 0, 0, fmt.Errorf("cannot receive contents: %w: a frame of %d bytes", codec.ErrForm, n)
	}
	return kind, n, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *receiver) Open(ctx context.Context, p *Plan, i int) (io.ReadCloser, error) {
	for {
		if s.cur != nil {
			if err := s.cur.drain(); err != nil {
				return nil, err
			}
		}
		kind, n, err := s.frame()
		if err != nil {
			return nil, err
		}
		if kind != frameFile || n > uint64(i) {
			return nil, fmt.Errorf("cannot receive contents: %w: step %d isn't next", codec.ErrForm, i)
		}
		s.cur = &received{s: s}
		if n == uint64(i) {
			return s.cur, nil
		}
	}
}

// received is one content as it comes.
type received struct {
	s    *receiver
	data uint64 // left of the current frame
	hole uint64
	err  error // io.EOF at its end
	dead error // the stream itself is over
}

func (r *received) fill() error {
	for r.err == nil && r.data == 0 && r.hole == 0 {
		kind, n, err := r.s.frame()
		if err != nil {
			r.err, r.dead = err, err
			break
		}
		switch kind {
		case frameData:
			r.data = n
		case frameHole:
			r.hole = n
		case frameEnd:
			r.err = io.EOF
		case frameFault:
			text := make([]byte, n)
			if _, err := io.ReadFull(r.s.r, text); err != nil {
				r.err, r.dead = noEOF(err), noEOF(err)
				break
			}
			r.err = errors.New(string(text))
		default:
			r.err = fmt.Errorf("cannot receive contents: %w: an unknown frame", codec.ErrForm)
			r.dead = r.err
		}
	}
	return r.err
}

func (r *received) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.fill(); err != nil {
		return 0, err
	}
	if r.hole > 0 {
		n := int(min(uint64(len(p)), r.hole))
		clear(p[:n])
		r.hole -= uint64(n)
		return n, nil
	}
	n, err := r.s.r.Read(p[:min(uint64(len(p)), r.data)])
	r.data -= uint64(n)
	if err != nil {
		r.err, r.dead = noEOF(err), noEOF(err)
	}
	return n, r.err
}

func (r *received) SkipHole() int64 {
	if r.fill() != nil {
		return 0
	}
	n := r.hole
	r.hole = 0
	return int64(n)
}

// drain reads to the end of this content, to where the next one begins.
func (r *received) drain() error {
	for r.fill() == nil {
		r.hole = 0
		n, err := r.s.r.Discard(int(r.data))
		r.data -= uint64(n)
		if err != nil {
			r.err, r.dead = noEOF(err), noEOF(err)
		}
	}
	return r.dead
}

func (r *received) Close() error { return nil }
