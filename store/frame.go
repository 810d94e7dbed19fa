package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// FrameKind is what a frame of a terminal journal holds.
type FrameKind byte

const (
	FrameOutput FrameKind = 'o' // what the agent printed
	FrameResize FrameKind = 'r' // the terminal's size from here on
	FrameKey    FrameKind = 'k' // what the frames before it made of the terminal
)

// Frame is one thing that happened at the agent's terminal.
type Frame struct {
	Kind       FrameKind
	At         time.Duration // since the journal began, in whole milliseconds
	Data       []byte        // of FrameOutput and FrameKey; valid until the next frame is read
	Cols, Rows int           // of FrameResize and FrameKey
}

// The form of a journal's file: a header (magic, when the journal began as
// UTC nanoseconds, the file's number, a checksum) and frames (kind in one byte,
// milliseconds since the frame before, length, data, a checksum over all that
// and the file's number). The first frame counts from the beginning of the
// journal, so every file stands for itself. Lengths and times are uvarints,
// the rest is big-endian, checksums are CRC-32C: they find torn and
// overwritten frames; the chain's hashes find what was done on purpose.
//
// A file begins with a FrameKey, from which its frames can be read without the
// files before.
const (
	journalMagic = "sbxterm1"
	headerSize   = len(journalMagic) + 8 + 4 + 4
	frameMost    = 1 << 20 // data of one frame; longer output is split
	frameExtra   = 1 + 2*binary.MaxVarintLen64 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Faults of a journal's file. A torn one ends in the middle of a frame, which
// is what kill -9 may leave; a damaged one holds something that isn't a frame.
var (
	errTorn    = errors.New("it ends in the middle of a frame")
	errDamaged = errors.New("it is damaged")
)

func appendHeader(b []byte, began time.Time, number uint32) []byte {
	start := len(b)
	b = append(b, journalMagic...)
	b = binary.BigEndian.AppendUint64(b, uint64(began.UnixNano()))
	b = binary.BigEndian.AppendUint32(b, number)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// parseHeader reads the header of a file that should have the given number.
func parseHeader(b []byte, number uint32) (began time.Time, err error) {
	if len(b) < headerSize {
		return began, errTorn
	}
	h := b[:headerSize]
	sum := binary.BigEndian.Uint32(h[headerSize-4:])
	if string(h[:len(journalMagic)]) != journalMagic || crc32.Checksum(h[:headerSize-4], castagnoli) != sum {
		return began, fmt.Errorf("%w: it has no header", errDamaged)
	}
	if n := binary.BigEndian.Uint32(h[len(journalMagic)+8:]); n != number {
		return began, fmt.Errorf("%w: it is number %d in the place of %d", errDamaged, n, number)
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(h[len(journalMagic):]))).UTC(), nil
}

// appendFrame encodes a frame; delta is in milliseconds.
func appendFrame(b []byte, kind FrameKind, delta uint64, data []byte, number uint32) []byte {
	start := len(b)
	b = append(b, byte(kind))
	b = binary.AppendUvarint(b, delta)
	b = binary.AppendUvarint(b, uint64(len(data)))
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, frameSum(b[start:], number))
}

func frameSum(b []byte, number uint32) uint32 {
	return crc32.Update(number, castagnoli, b)
}

func appendResize(b []byte, cols, rows int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(cols)), uint64(rows))
}

// parser reads the frames of one file's bytes.
type parser struct {
	b      []byte // what is left
	off    int    // of b in the file
	number uint32
	ms     uint64 // of the last frame
	frames int

	printed []span // of the frames by then
}

// next is the next frame; io.EOF after the last, else errTorn or errDamaged, and
// off says where the good part ends.
func (p *parser) next() (Frame, error) {
	if len(p.b) == 0 {
		return Frame{}, io.EOF
	}
	f := Frame{Kind: FrameKind(p.b[0])}
	n := 1
	uvarint := func() (uint64, error) {
		v, k := binary.Uvarint(p.b[n:])
		switch {
		case k == 0:
			return 0, errTorn
		case k < 0:
			return 0, errDamaged
		}
		n += k
		return v, nil
	}
	if f.Kind != FrameOutput && f.Kind != FrameResize && f.Kind != FrameKey {
		return f, errDamaged
	}
	delta, err := uvarint()
	if err != nil {
		return f, err
	}
	size, err := uvarint()
	if err != nil {
		return f, err
	}
	const latest = uint64(math.MaxInt64 / int64(time.Millisecond))
	if size > frameMost || delta > latest-p.ms {
		return f, errDamaged
	}
	end := n + int(size) + 4
	if len(p.b) < end {
		return f, errTorn
	}
	if frameSum(p.b[:end-4], p.number) != binary.BigEndian.Uint32(p.b[end-4:end]) {
		return f, errDamaged
	}
	if err := f.fill(p.b[n : end-4]); err != nil {
		return f, err
	}
	p.ms += delta
	f.At = time.Duration(p.ms) * time.Millisecond
	p.b, p.off = p.b[end:], p.off+end
	p.frames++
	if f.Kind == FrameOutput {
		p.printed = joins(p.printed, span{int64(p.ms), int64(p.ms)}, pause)
	}
	return f, nil
}

// end reads all frames; nil at the end of the file.
func (p *parser) end() error {
	for {
		if _, err := p.next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// fill reads what a frame's data says.
func (f *Frame) fill(data []byte) error {
	if f.Kind == FrameOutput {
		f.Data = data
		return nil
	}
	cols, k := binary.Uvarint(data)
	if k <= 0 || cols > math.MaxInt32 {
		return errDamaged
	}
	rows, n := binary.Uvarint(data[k:])
	if n <= 0 || rows > math.MaxInt32 || f.Kind == FrameResize && k+n < len(data) {
		return errDamaged
	}
	f.Cols, f.Rows = int(cols), int(rows)
	if f.Kind == FrameKey {
		f.Data = data[k+n:]
	}
	return nil
}
