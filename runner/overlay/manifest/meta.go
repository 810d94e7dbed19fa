package manifest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/codec"
)

// Meta is what an inode has beside its kind and content. Package inode reads and
// writes it.
type Meta struct {
	Mode     uint32  // permission bits and setuid, setgid, sticky: 07777
	UID, GID uint32  // NoID to be written is as the kernel makes it
	MTime    Time    // NoTime to be written is as it is
	Xattrs   []Xattr // sorted by name; in an upper without overlayfs' own, escaped ones as the sandbox named them
}

// Xattr is one extended attribute.
type Xattr struct {
	Name  string
	Value []byte
}

// NoID is no owner.
const NoID = 1<<32 - 1

// NoTime is no time stamp: utimensat(2) leaves what is there.
var NoTime = Time{Nsec: unix.UTIME_OMIT}

// SameXattrs compares extended attributes.
func (m *Meta) SameXattrs(o *Meta) bool {
	return slices.EqualFunc(m.Xattrs, o.Xattrs, func(a, b Xattr) bool {
		return a.Name == b.Name && bytes.Equal(a.Value, b.Value)
	})
}

// SameMeta compares all of it.
func (m *Meta) SameMeta(o *Meta) bool {
	return m.Mode == o.Mode && m.UID == o.UID && m.GID == o.GID && m.MTime == o.MTime && m.SameXattrs(o)
}

// AppendMeta writes it in its one stored form.
func AppendMeta(b []byte, m *Meta) []byte {
	for _, n := range []uint32{m.Mode, m.UID, m.GID} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = AppendTime(b, m.MTime)
	return AppendXattrs(b, m.Xattrs)
}

// ReadMeta reads what AppendMeta wrote.
func ReadMeta(d *codec.Decoder) Meta {
	m := Meta{Mode: uint32(d.Uvarint(07777)), UID: uint32(d.Uvarint(NoID)), GID: uint32(d.Uvarint(NoID)), MTime: ReadTime(d)}
	m.Xattrs = ReadXattrs(d)
	return m
}

// AppendTime writes a time stamp.
func AppendTime(b []byte, t Time) []byte {
	return binary.AppendUvarint(codec.AppendVarint(b, t.Sec), uint64(t.Nsec))
}

// ReadTime reads what AppendTime wrote.
func ReadTime(d *codec.Decoder) Time {
	t := Time{Sec: d.Varint(), Nsec: uint32(d.Uvarint(unix.UTIME_OMIT))}
	if t.Nsec > maxNsec && t != NoTime {
		d.Fail("a time stamp that no clock shows")
	}
	return t
}

const maxNsec = 999_999_999

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
