package base

import (
	"encoding/hex"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

// decoder reads what encode wrote, and nothing else.
type decoder struct {
	*codec.Decoder
	paths int // bytes of the paths so far, which take less where they stand
}

// decode reads a record's one form.
func decode(b []byte) (*Record, error) {
	d := &decoder{Decoder: codec.NewDecoder(b)}
	d.Magic(magic)
	r := &Record{Missing: d.text()}
	for range d.Count(6) {
		r.Repositories = append(r.Repositories, d.repository())
		if n := len(r.Repositories); n > 1 && r.Repositories[n-2].Path >= r.Repositories[n-1].Path {
			d.Fail("repositories out of order")
		}
		if err := d.Failed(); err != nil {
			return nil, err
		}
	}
	last := ""
	n := d.Count(3)
	r.Entries = make([]Entry, 0, min(n, 1<<16))
	for range n {
		e := d.entry(last)
		if err := d.Failed(); err != nil {
			return nil, err
		}
		if e.Path <= last {
			d.Fail("paths out of order")
		}
		last = e.Path
		r.Entries = append(r.Entries, e)
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	return r, nil
}

func (d *decoder) repository() Repository {
	r := Repository{Path: d.text(), Prefix: d.text()}
	commit := d.text()
	r.Commit, r.Branch, r.Unread = hex.EncodeToString([]byte(commit)), d.text(), d.text()
	for _, p := range []string{r.Path, r.Prefix} {
		if p != "" && !validPath(p) {
			d.Fail("an invalid path")
		}
	}
	if !hashLength(len(commit)) {
		d.Fail("a commit of the wrong length")
	}
	n := d.Count(5)
	r.Tracked = make([]Tracked, 0, min(n, 1<<16))
	last := Tracked{Stage: -1}
	for range n {
		t := Tracked{Path: d.path(last.Path)}
		flags := d.Byte()
		t.Stage, t.Sparse = int(flags&3), flags&flagSparse != 0
		t.Mode = uint32(d.Uvarint(1<<32 - 1))
		if h := d.text(); h != "" {
			t.Hash = []byte(h)
		}
		if flags > flagSparse|3 || !hashLength(len(t.Hash)) || t.Path < last.Path || t.Path == last.Path && t.Stage <= last.Stage {
			d.Fail("a tracked path that is malformed or out of order")
		}
		if d.Failed() != nil {
			return r
		}
		r.Tracked = append(r.Tracked, t)
		last = t
	}
	return r
}

func hashLength(n int) bool { return n == 0 || n == 20 || n == 32 }

func (d *decoder) entry(last string) Entry {
	e := Entry{Path: d.path(last)}
	var below content.Hash
	if e.Entry, below = manifest.ReadEntry(d.Decoder); e.Name != "" || !below.IsZero() {
		d.Fail("an entry that is of a checkpoint's")
	}
	return e
}

func (d *decoder) text() string { return string(d.Bytes()) }

// path reads what appendPath wrote.
func (d *decoder) path(last string) string {
	n := d.Uvarint(uint64(len(last)))
	rest := d.text()
	if d.Failed() != nil {
		return ""
	}
	p := last[:n] + rest
	if d.paths += len(p); d.paths > maxPlain {
		d.Fail("paths that are too long together")
	}
	if !validPath(p) || shared(last, p) != int(n) {
		d.Fail("an invalid path")
	}
	return p
}
