package overlay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// decoder reads the package's binary forms. They are canonical: a value has
// one encoding, and anything else is refused. After the first fault it gives
// zero values; end reports the fault.
type decoder struct {
	b   []byte
	err error
}

var errForm = errors.New("malformed")

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", errForm, what)
	}
	d.b = nil
}

func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail("bytes after its end")
	}
	return d.err
}

func (d *decoder) magic(m string) {
	if len(d.b) < len(m) || string(d.b[:len(m)]) != m {
		d.fail("it doesn't begin with " + m)
		return
	}
	d.b = d.b[len(m):]
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail("cut short")
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

// uvarint reads a number of at most limit in its shortest form.
func (d *decoder) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > limit || n > 1 && d.b[n-1] == 0 {
		d.fail("a number that is too large or not minimal")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v := d.uvarint(1<<64 - 1)
	return int64(v>>1) ^ -int64(v&1)
}

// count reads a number of things that take at least size bytes each, so that a
// lie can't make the caller allocate more than a multiple of its input.
func (d *decoder) count(size int) int {
	n := d.uvarint(1<<64 - 1)
	if n > uint64(len(d.b)/size) {
		d.fail("a count larger than what follows")
		return 0
	}
	return int(n)
}

func (d *decoder) hash() (h Hash) {
	if len(d.b) < len(h) {
		d.fail("cut short")
		return h
	}
	copy(h[:], d.b)
	d.b = d.b[len(h):]
	return h
}

// bytes reads a length and that many bytes. The result is part of the input.
func (d *decoder) bytes() []byte {
	n := d.count(1)
	if d.err != nil {
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func appendBytes[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendVarint(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(v)<<1^uint64(v>>63))
}

// maxName is the longest name of the file systems that overlayfs runs on.
const maxName = 255

// validName says whether s can be one component of a path.
func validName(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= maxName && strings.IndexByte(s, '/') < 0 && strings.IndexByte(s, 0) < 0
}

// validPath says whether s is "" or names joined by slashes.
func validPath(s string) bool {
	if s == "" {
		return true
	}
	for name := range strings.SplitSeq(s, "/") {
		if !validName(name) {
			return false
		}
	}
	return true
}

const (
	flagOpaque = 1 << iota
	flagUnsaved
	flagXattrs
	flagLinks
	flagEnd
)

const maxNsec = 999_999_999

// appendEntry writes an entry as it stands in a directory object. sub is the
// hash of the directory below it.
func appendEntry(b []byte, e *Entry, sub Hash) []byte {
	b = appendBytes(b, e.Name)
	var flags byte
	if e.Opaque {
		flags |= flagOpaque
	}
	if e.Unsaved != "" {
		flags |= flagUnsaved
	}
	if len(e.Xattrs) > 0 {
		flags |= flagXattrs
	}
	if e.Links != 0 {
		flags |= flagLinks
	}
	b = append(b, byte(e.Kind), flags)
	if e.Kind == KindWhiteout {
		return b
	}
	b = binary.AppendUvarint(b, uint64(e.Mode))
	b = binary.AppendUvarint(b, uint64(e.UID))
	b = binary.AppendUvarint(b, uint64(e.GID))
	b = appendVarint(b, e.MTime.Sec)
	b = binary.AppendUvarint(b, uint64(e.MTime.Nsec))
	switch e.Kind {
	case KindFile:
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = append(b, e.Hash[:]...)
	case KindSymlink:
		b = appendBytes(b, e.Target)
	case KindDir:
		b = append(b, sub[:]...)
	}
	if e.Unsaved != "" {
		b = appendBytes(b, e.Unsaved)
	}
	if len(e.Xattrs) > 0 {
		b = appendXattrs(b, e.Xattrs)
	}
	if e.Links != 0 {
		b = binary.AppendUvarint(b, e.Links)
	}
	return b
}

// entry reads what appendEntry wrote.
func (d *decoder) entry() (e Entry, sub Hash) {
	e.Name = string(d.bytes())
	e.Kind = Kind(d.byte())
	flags := d.byte()
	if e.Kind == 0 || e.Kind >= kindEnd || flags >= flagEnd {
		d.fail("an unknown kind or flag")
		return e, sub
	}
	if e.Kind == KindWhiteout {
		if flags != 0 {
			d.fail("a whiteout with flags")
		}
		return e, sub
	}
	if flags&flagOpaque != 0 && e.Kind != KindDir || flags&flagLinks != 0 && e.Kind != KindFile {
		d.fail("a flag on the wrong kind")
	}
	e.Opaque = flags&flagOpaque != 0
	e.Mode = uint32(d.uvarint(07777))
	e.UID = uint32(d.uvarint(1<<32 - 1))
	e.GID = uint32(d.uvarint(1<<32 - 1))
	e.MTime.Sec = d.varint()
	e.MTime.Nsec = uint32(d.uvarint(maxNsec))
	switch e.Kind {
	case KindFile:
		e.Size = int64(d.uvarint(1<<63 - 1))
		e.Hash = d.hash()
	case KindSymlink:
		if e.Target = string(d.bytes()); strings.IndexByte(e.Target, 0) >= 0 {
			d.fail("a link target with NUL")
		}
	case KindDir:
		sub = d.hash()
	}
	if flags&flagUnsaved != 0 {
		if e.Unsaved = string(d.bytes()); e.Unsaved == "" {
			d.fail("an empty reason")
		}
	}
	if flags&flagXattrs != 0 {
		if e.Xattrs = d.xattrs(); len(e.Xattrs) == 0 {
			d.fail("an empty list of attributes")
		}
	}
	if flags&flagLinks != 0 {
		if e.Links = d.uvarint(1<<64 - 1); e.Links == 0 {
			d.fail("an empty link group")
		}
	}
	return e, sub
}

func appendXattrs(b []byte, xs []Xattr) []byte {
	b = binary.AppendUvarint(b, uint64(len(xs)))
	for _, x := range xs {
		b = appendBytes(appendBytes(b, x.Name), x.Value)
	}
	return b
}

func (d *decoder) xattrs() []Xattr {
	n := d.count(2)
	var xs []Xattr
	for i := range n {
		x := Xattr{Name: string(d.bytes()), Value: append([]byte(nil), d.bytes()...)}
		if !ours(x.Name) || len(x.Name) > maxXattrName || strings.IndexByte(x.Name, 0) >= 0 || i > 0 && xs[i-1].Name >= x.Name {
			d.fail("an attribute out of order or of a foreign kind")
		}
		if d.err != nil {
			return nil
		}
		xs = append(xs, x)
	}
	return xs
}
