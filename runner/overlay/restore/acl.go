package restore

import (
	"bytes"
	"encoding/binary"
	"slices"

	"stepbox/runner/overlay/manifest"
)

// mapACL rewrites the ids that a POSIX ACL names. The layout is that of
// include/uapi/linux/posix_acl_xattr.h: version 2, then tag, perm, id. It says
// false when an id has no counterpart or the value isn't an ACL.
func mapACL(v []byte, uid, gid func(uint32) (uint32, bool)) ([]byte, bool) {
	const user, group = 0x02, 0x08
	if len(v) < 4 || (len(v)-4)%8 != 0 || binary.LittleEndian.Uint32(v) != 2 {
		return nil, false
	}
	out := slices.Clone(v)
	for b := out[4:]; len(b) > 0; b = b[8:] {
		id, ok := binary.LittleEndian.Uint32(b[4:]), true
		switch binary.LittleEndian.Uint16(b) {
		case user:
			id, ok = uid(id)
		case group:
			id, ok = gid(id)
		}
		if !ok {
			return nil, false
		}
		binary.LittleEndian.PutUint32(b[4:], id)
	}
	return out, true
}

// sameAttrs says whether want's extended attributes are cur's, but for what of an access
// list the mode says: setting that sets them.
func sameAttrs(cur, want *manifest.Meta) bool {
	return slices.EqualFunc(cur.Xattrs, want.Xattrs, func(a, b manifest.Xattr) bool {
		return a.Name == b.Name && (bytes.Equal(a.Value, b.Value) || a.Name == manifest.ACLAccess && bytes.Equal(namedOf(a.Value), namedOf(b.Value)))
	})
}

// namedOf is an access list without the permissions that the mode has: those of the
// owner, of others, and the mask.
func namedOf(v []byte) []byte {
	const owner, mask, other = 0x01, 0x10, 0x20
	out, ok := mapACL(v, func(id uint32) (uint32, bool) { return id, true }, func(id uint32) (uint32, bool) { return id, true })
	if !ok {
		return v
	}
	masked := false
	for b := out[4:]; len(b) > 0; b = b[8:] {
		switch binary.LittleEndian.Uint16(b) {
		case mask:
			masked = true
			fallthrough
		case owner, other:
			binary.LittleEndian.PutUint16(b[2:], 0)
		}
	}
	if !masked { // the mode's bits of the group are the owning group's then
		return v
	}
	return out
}
