// Package codec reads and writes the binary forms in which checkpoints, plans
// and records are stored and sent. A form is canonical: a value has one
// encoding, and anything else is refused. What is read may be hostile; nothing
// is allocated for more than a multiple of its length.
package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Decoder reads the package's binary forms. They are canonical: a value has
// one encoding, and anything else is refused. After the first fault it gives
// zero values; end reports the fault.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder reads b, which must stay as it is meanwhile.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

var ErrForm = errors.New("malformed")

// Fail notes a fault, unless there was one.
func (d *Decoder) Fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrForm, what)
	}
	d.b = nil
}

// End is the first fault, or that something is left.
func (d *Decoder) End() error {
	if d.err == nil && len(d.b) > 0 {
		d.Fail("bytes after its end")
	}
	return d.err
}

// More says whether something is left, and no fault so far.
func (d *Decoder) More() bool { return len(d.b) > 0 }

// Magic reads what a form begins with.
func (d *Decoder) Magic(m string) {
	if !bytes.HasPrefix(d.b, []byte(m)) {
		d.Fail("it doesn't begin with " + m)
		return
	}
	d.Take(len(m))
}

// Byte reads one.
func (d *Decoder) Byte() byte {
	if b := d.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// Uvarint reads a number of at most limit in its shortest form.
func (d *Decoder) Uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > limit || n > 1 && d.b[n-1] == 0 {
		d.Fail("a number that is too large or not minimal")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Varint reads what AppendVarint wrote.
func (d *Decoder) Varint() int64 {
	v := d.Uvarint(1<<64 - 1)
	return int64(v>>1) ^ -int64(v&1)
}

// Failed gives the first fault so far.
func (d *Decoder) Failed() error { return d.err }

// Count reads a number of things that take at least size bytes each, so that a
// lie can't make the caller allocate more than a multiple of its input.
func (d *Decoder) Count(size int) int {
	n := d.Uvarint(1<<64 - 1)
	if n > uint64(len(d.b)/size) {
		d.Fail("a count larger than what follows")
		return 0
	}
	return int(n)
}

// Take gives the next n bytes. The result is part of the input.
func (d *Decoder) Take(n int) []byte {
	if n > len(d.b) {
		d.Fail("cut short")
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

// Bytes reads a length and that many bytes. The result is part of the input.
func (d *Decoder) Bytes() []byte {
	return d.Take(d.Count(1))
}

// AppendBytes writes a length and that many bytes.
func AppendBytes[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendVarint writes a number that may be negative.
func AppendVarint(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(v)<<1^uint64(v>>63))
}
