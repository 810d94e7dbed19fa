package manifest

import (
	"encoding/binary"
	"strings"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
)

const (
	flagOpaque = 1 << iota
	flagUnsaved
	flagLinks
	flagEnd
)

// AppendEntry writes an entry as it stands in a directory object. sub is the
// hash of the directory below it.
func AppendEntry(b []byte, e *Entry, sub content.Hash) []byte {
	b = codec.AppendBytes(b, e.Name)
	var flags byte
	if e.Opaque {
		flags |= flagOpaque
	}
	if e.Unsaved != "" {
		flags |= flagUnsaved
	}
	if e.Links != 0 {
		flags |= flagLinks
	}
	b = append(b, byte(e.Kind), flags)
	if e.Kind == KindWhiteout {
		return b
	}
	b = AppendMeta(b, &e.Meta)
	switch e.Kind {
	case KindFile:
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = append(b, e.Hash[:]...)
	case KindSymlink:
		b = codec.AppendBytes(b, e.Target)
	case KindDir:
		b = append(b, sub[:]...)
	}
	if e.Unsaved != "" {
		b = codec.AppendBytes(b, e.Unsaved)
	}
	if e.Links != 0 {
		b = binary.AppendUvarint(b, e.Links)
	}
	return b
}

// ReadEntry reads what AppendEntry wrote.
func ReadEntry(d *codec.Decoder) (e Entry, sub content.Hash) {
	e.Name = string(d.Bytes())
	e.Kind = Kind(d.Byte())
	flags := d.Byte()
	if e.Kind == 0 || e.Kind >= kindEnd || flags >= flagEnd {
		d.Fail("an unknown kind or flag")
		return e, sub
	}
	if e.Kind == KindWhiteout {
		if flags != 0 {
			d.Fail("a whiteout with flags")
		}
		return e, sub
	}
	if flags&flagOpaque != 0 && e.Kind != KindDir || flags&flagLinks != 0 && e.Kind != KindFile {
		d.Fail("a flag on the wrong kind")
	}
	e.Opaque = flags&flagOpaque != 0
	e.Meta = ReadMeta(d)
	switch e.Kind {
	case KindFile:
		e.Size = int64(d.Uvarint(1<<63 - 1))
		e.Hash = content.ReadHash(d)
	case KindSymlink:
		if e.Target = string(d.Bytes()); strings.IndexByte(e.Target, 0) >= 0 {
			d.Fail("a link target with NUL")
		}
	case KindDir:
		sub = content.ReadHash(d)
	}
	if flags&flagUnsaved != 0 {
		if e.Unsaved = string(d.Bytes()); e.Unsaved == "" {
			d.Fail("an empty reason")
		}
	}
	if flags&flagLinks != 0 {
		if e.Links = d.Uvarint(1<<64 - 1); e.Links == 0 {
			d.Fail("an empty link group")
		}
	}
	return e, sub
}
