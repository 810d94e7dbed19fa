package inode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/manifest"
)

// What overlayfs keeps for itself in a mount with userxattr, and how it
// escapes names of that kind when the sandbox sets them: see "Nesting
// overlayfs mounts" in the kernel's Documentation/filesystems/overlayfs.rst.
const (
	ovlPrefix   = "user.overlay."
	ovlEscape   = "user.overlay.overlay."
	Opaque      = "user.overlay.opaque" // "y": the directory hides the lower's
	ovlWhiteout = "user.overlay.whiteout"
	ovlRedirect = "user.overlay.redirect"
	ovlMetacopy = "user.overlay.metacopy"
	maxXattrs   = 1 << 20 // bytes of names and values of one inode
)

// attrs is what the extended attributes of an inode say.
type attrs struct {
	Kept     []manifest.Xattr
	Opaque   bool
	Whiteout bool
	Foreign  string // an attribute that this package's mounts never make
}

var ErrXattrs = fmt.Errorf("its extended attributes take more than %d bytes", maxXattrs)

// mergedName is the name under which the merged view shows an attribute that
// is stored as name, and whether a checkpoint keeps it.
func mergedName(name string) (string, bool) {
	switch {
	case strings.HasPrefix(name, ovlEscape):
		return ovlPrefix + name[len(ovlEscape):], true
	case strings.HasPrefix(name, ovlPrefix):
		return "", false
	case strings.HasPrefix(name, "user."):
		return name, true
	}
	return name, name == manifest.Capability || name == manifest.ACLAccess || name == manifest.ACLDefault
}

// ReadAttrs reads the attributes of an open file or directory. A descriptor
// from O_PATH works too. The values of user attributes take the right to read
// the inode, not just a descriptor of it; where the caller hasn't got that, ask
// gives them. A nil ask gives nothing.
func ReadAttrs(fd int, ask func() (*os.File, error)) (attrs, error) {
	var a attrs
	names, err := ListXattr(fd)
	if err != nil || len(names) == 0 {
		return a, err
	}
	var asked map[string][]byte
	get := func(name string) ([]byte, error) {
		value, err := GetXattr(fd, name)
		if err != unix.EACCES || ask == nil {
			return value, err
		}
		if asked == nil {
			if asked, err = receiveAttrs(ask); err != nil {
				return nil, err
			}
		}
		if value, ok := asked[name]; ok {
			return value, nil
		}
		return nil, unix.ENODATA
	}
	total := len(names)
	for raw := range bytes.SplitSeq(names, []byte{0}) {
		if len(raw) == 0 {
			continue
		}
		name := string(raw)
		shown, keep := mergedName(name)
		if !keep && !strings.HasPrefix(name, ovlPrefix) {
			continue
		}
		switch name {
		case ovlWhiteout:
			a.Whiteout = true
			continue
		case ovlRedirect, ovlMetacopy:
			a.Foreign = name
			continue
		}
		if !keep && name != Opaque {
			continue
		}
		value, err := get(name)
		if errors.Is(err, unix.ENODATA) {
			continue // removed meanwhile; the inode's ctime says so
		}
		if err != nil {
			return a, err
		}
		if name == Opaque {
			a.Opaque = string(value) == "y"
			continue
		}
		if total += len(value); total > maxXattrs {
			return a, ErrXattrs
		}
		if name == manifest.Capability {
			value = plainCapability(value)
		}
		a.Kept = append(a.Kept, manifest.Xattr{Name: shown, Value: value})
	}
	slices.SortFunc(a.Kept, func(x, y manifest.Xattr) int { return strings.Compare(x.Name, y.Name) })
	return a, nil
}

// ListXattr gives the names of an open inode's attributes, each with a NUL.
func ListXattr(fd int) ([]byte, error) {
	var small [512]byte
	list := func(b []byte) (int, error) {
		n, err := unix.Flistxattr(fd, b)
		if err == unix.EBADF {
			n, err = unix.Listxattr(FDPath(fd), b)
		}
		return n, err
	}
	for buf := small[:]; ; {
		n, err := list(buf)
		switch {
		case err == unix.ERANGE:
			if len(buf) >= maxXattrs {
				return nil, ErrXattrs
			}
			buf = make([]byte, len(buf)*8)
		case err == unix.EOPNOTSUPP:
			return nil, nil
		case err != nil:
			return nil, err
		default:
			return slices.Clone(buf[:n]), nil
		}
	}
}

// GetXattr gives one attribute of an open inode.
func GetXattr(fd int, name string) ([]byte, error) {
	for size := 256; ; size *= 8 {
		buf := make([]byte, size)
		n, err := unix.Fgetxattr(fd, name, buf)
		if err == unix.EBADF {
			n, err = unix.Getxattr(FDPath(fd), name, buf)
		}
		if err == unix.ERANGE && size < maxXattrs {
			continue
		}
		if err != nil {
			return nil, err
		}
		return buf[:n:n], nil
	}
}

// plainCapability turns capabilities bound to a user namespace's root
// (VFS_CAP_REVISION_3) into the form that the same namespace sees and sets
// (revision 2), see capabilities(7): outside, the same file reads otherwise
// than inside.
func plainCapability(v []byte) []byte {
	const rev2, rev3, mask = 0x02000000, 0x03000000, 0xff000000
	if len(v) != 24 {
		return v
	}
	magic := binary.LittleEndian.Uint32(v)
	if magic&mask != rev3 {
		return v
	}
	out := slices.Clone(v[:20])
	binary.LittleEndian.PutUint32(out, magic&^uint32(mask)|rev2)
	return out
}
