package scan

import (
	"bytes"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// An overlay remembers which inode of the lower a name led to. Most editors save by
// renaming a new file over the old one: a sandbox that has looked at the name goes on
// seeing the old one, and what it writes is made out of that. The lower has the new
// one by then, which mustn't be taken for what the sandbox began with.
//
// Which inode it was can't be asked for: overlayfs notes the handle of the inode in
// user.overlay.origin (fs/overlayfs/copy_up.c, ovl_set_origin) only where the mounter
// may decode handles, which takes CAP_DAC_READ_SEARCH outside of all user namespaces
// (fs/overlayfs/util.c, ovl_can_decode_fh). Elsewhere the attribute is there and
// empty, and it is missing on a copy of a file that hadn't exactly one name any
// more. So it tells that a file was copied from one which still had a name.

// ovlOrigin is on what overlayfs copied up. Sandboxes can't set it: overlayfs escapes
// the names that they give.
const ovlOrigin = "user.overlay.origin"

const replaced = "the project's file was replaced while the agent could still see the one before"

// replacedSince says whether the lower's file e took another's place since the mount, so
// that n may have been made out of that other one. A file that was written in place,
// or that was new then and was copied up as it is now, is the one that the sandbox saw.
func (x *extender) replacedSince(path string, n *manifest.Node, e *lower.Entry, low *lower.Folder) bool {
	if x.Mounted.IsZero() || e.Kind != manifest.KindFile && e.Kind != manifest.KindSymlink || !x.came(low, e) {
		return false
	}
	if n.Kind != manifest.KindFile || !x.copied(path) {
		return true
	}
	// Copied, but perhaps from the file before, which some keep beside it as a backup.
	names, err := low.Names(x.ctx)
	if err != nil {
		return true
	}
	for _, name := range names {
		if old, err := low.Find(x.ctx, name); err != nil || old != nil && name != e.Name && old.Kind == manifest.KindFile && x.renamed(low, old) {
			return true
		}
	}
	return false
}

// renamed says whether a file may have got its name since the mount, and is older.
func (x *extender) renamed(low *lower.Folder, e *lower.Entry) bool {
	at := low.Came(e)
	return e.MTime.Before(at) && !time.Unix(at.Sec, int64(at.Nsec)).Before(x.Mounted)
}

// unseen is what a Base has where the lower has something that the sandbox may not have
// seen: a file of which nothing is known.
func unseen(e *lower.Entry) *manifest.Node {
	return &manifest.Node{Entry: manifest.Entry{Name: e.Name, Kind: manifest.KindFile, Meta: manifest.Meta{Mode: e.Mode, UID: e.UID, GID: e.GID}, Unsaved: lower.NotKept(replaced)}}
}

// came says whether a file got its name since the mount.
func (x *extender) came(low *lower.Folder, e *lower.Entry) bool {
	at := low.Came(e)
	return !time.Unix(at.Sec, int64(at.Nsec)).Before(x.Mounted)
}

// copied says whether a file of the upper is known to be a copy of one that had a name.
func (x *extender) copied(path string) bool {
	fd, err := inode.Beneath(x.upper, path, unix.O_PATH)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	names, err := inode.ListXattr(fd)
	return err == nil && bytes.Contains(append([]byte{0}, names...), []byte("\x00"+ovlOrigin+"\x00"))
}
