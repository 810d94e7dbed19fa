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
	flagXattrs
	flagLinks
	flagEnd
)

const MaxNsec = 999_999_999

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
	b = codec.AppendVarint(b, e.MTime.Sec)
	b = binary.AppendUvarint(b, uint64(e.MTime.Nsec))
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
	if len(e.Xattrs) > 0 {
		b = AppendXattrs(b, e.Xattrs)
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
	e.Mode = uint32(d.Uvarint(07777))
	e.UID = uint32(d.Uvarint(1<<32 - 1))
	e.GID = uint32(d.Uvarint(1<<32 - 1))
	e.MTime.Sec = d.Varint()
	e.MTime.Nsec = uint32(d.Uvarint(MaxNsec))
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
	if flags&flagXattrs != 0 {
		if e.Xattrs = ReadXattrs(d); len(e.Xattrs) == 0 {
			d.Fail("an empty list of attributes")
		}
	}
	if flags&flagLinks != 0 {
		if e.Links = d.Uvarint(1<<64 - 1); e.Links == 0 {
			d.Fail("an empty link group")
		}
	}
	return e, sub
}

func AppendXattrs(b []byte, xs []Xattr) []byte {
	b = binary.AppendUvarint(b, uint64(len(xs)))
	for _, x := range xs {
		b = codec.AppendBytes(codec.AppendBytes(b, x.Name), x.Value)
	}
	return b
}

func ReadXattrs(d *codec.Decoder) []Xattr {
	n := d.Count(2)
	var xs []Xattr
	for i := range n {
		x := Xattr{Name: string(d.Bytes()), Value: append([]byte(nil), d.Bytes()...)}
		if !Kept(x.Name) || len(x.Name) > maxXattrName || strings.IndexByte(x.Name, 0) >= 0 || i > 0 && xs[i-1].Name >= x.Name {
			d.Fail("an attribute out of order or of a foreign kind")
		}
		if d.Failed() != nil {
			return nil
		}
		xs = append(xs, x)
	}
	return xs
}

// The attributes that a checkpoint keeps beside those of users.
const (
	Capability = "security.capability"
	ACLAccess  = "system.posix_acl_access"
	ACLDefault = "system.posix_acl_default"

	maxXattrName = 255
)

// Kept says whether restoring may set or remove an attribute of that name.
func Kept(name string) bool {
	return strings.HasPrefix(name, "user.") || name == Capability || name == ACLAccess || name == ACLDefault
}
