package restore

import (
	"encoding/binary"
	"slices"
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
