package base

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"stepbox/runner/overlay/manifest"
)

// decoder reads what encode wrote, and nothing else. After the first fault it
// gives zero values.
type decoder struct {
	b     []byte
	err   error
	paths int // bytes of the paths so far, which take less where they stand
}

// decode reads a record's one form.
func decode(b []byte) (*Record, error) {
	d := &decoder{b: b}
	if string(d.take(len(magic))) != magic {
		d.fail("it doesn't begin with " + magic)
	}
	r := &Record{Missing: d.text()}
	for range d.count(6) {
		r.Repositories = append(r.Repositories, d.repository())
		if n := len(r.Repositories); n > 1 && r.Repositories[n-2].Path >= r.Repositories[n-1].Path {
			d.fail("repositories out of order")
		}
		if d.err != nil {
			return nil, d.err
		}
	}
	last := ""
	n := d.count(3)
	r.Entries = make([]Entry, 0, min(n, 1<<16))
	for range n {
		e := d.entry(last)
		if d.err != nil {
			return nil, d.err
		}
		if e.Path <= last {
			d.fail("paths out of order")
		}
		last = e.Path
		r.Entries = append(r.Entries, e)
	}
	if len(d.b) > 0 {
		d.fail("bytes after its end")
	}
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}

func (d *decoder) repository() Repository {
	r := Repository{Path: d.text(), Prefix: d.text()}
	commit := d.text()
	r.Commit, r.Branch, r.Unread = hex.EncodeToString([]byte(commit)), d.text(), d.text()
	for _, p := range []string{r.Path, r.Prefix} {
		if p != "" && !validPath(p) {
			d.fail("an invalid path")
		}
	}
	if !hashLength(len(commit)) {
		d.fail("a commit of the wrong length")
	}
	n := d.count(5)
	r.Tracked = make([]Tracked, 0, min(n, 1<<16))
	last := Tracked{Stage: -1}
	for range n {
		t := Tracked{Path: d.path(last.Path)}
		flags := d.byte()
		t.Stage, t.Sparse = int(flags&3), flags&flagSparse != 0
		t.Mode = uint32(d.uvarint(1<<32 - 1))
		if h := d.text(); h != "" {
			t.Hash = []byte(h)
		}
		if flags > flagSparse|3 || !hashLength(len(t.Hash)) || t.Path < last.Path || t.Path == last.Path && t.Stage <= last.Stage {
			d.fail("a tracked path that is malformed or out of order")
		}
		if d.err != nil {
			return r
		}
		r.Tracked = append(r.Tracked, t)
		last = t
	}
	return r
}

func hashLength(n int) bool { return n == 0 || n == 20 || n == 32 }

func (d *decoder) entry(last string) Entry {
	e := Entry{Path: d.path(last), Kind: manifest.Kind(d.byte())}
	if e.Kind == 0 || e.Kind > manifest.KindWhiteout {
		d.fail("an unknown kind")
	}
	if d.err != nil || e.Kind == manifest.KindWhiteout {
		return e
	}
	flags := d.byte()
	if flags > flagHash|flagUnsaved || flags&flagHash != 0 && e.Kind != manifest.KindFile {
		d.fail("unknown flags")
	}
	e.Mode = uint32(d.uvarint(07777))
	e.MTime.Sec = d.varint()
	e.MTime.Nsec = uint32(d.uvarint(999_999_999))
	switch e.Kind {
	case manifest.KindFile:
		e.Size = int64(d.uvarint(1<<63 - 1))
	case manifest.KindSymlink:
		if e.Target = d.text(); strings.IndexByte(e.Target, 0) >= 0 {
			d.fail("a link's target with NUL")
		}
	}
	if flags&flagHash != 0 {
		if copy(e.Hash[:], d.take(len(e.Hash))); e.Hash.IsZero() {
			d.fail("an empty hash")
		}
	}
	if flags&flagUnsaved != 0 {
		if e.Unsaved = d.text(); e.Unsaved == "" {
			d.fail("an empty reason")
		}
	}
	return e
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", errForm, what)
	}
	d.b = nil
}

// take gives the next n bytes.
func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.fail("cut short")
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
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
// lie can't make more room than a multiple of what is there.
func (d *decoder) count(size int) int {
	n := d.uvarint(1<<64 - 1)
	if n > uint64(len(d.b)/size) {
		d.fail("a count larger than what follows")
		return 0
	}
	return int(n)
}

func (d *decoder) text() string { return string(d.take(d.count(1))) }

// path reads what appendPath wrote.
func (d *decoder) path(last string) string {
	n := d.uvarint(uint64(len(last)))
	rest := d.text()
	if d.err != nil {
		return ""
	}
	p := last[:n] + rest
	if d.paths += len(p); d.paths > maxPlain {
		d.fail("paths that are too long together")
	}
	if !validPath(p) || shared(last, p) != int(n) {
		d.fail("an invalid path")
	}
	return p
}
