package manifest

import (
	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
)

// Kind is what a directory entry is.
type Kind uint8

const (
	KindFile Kind = iota + 1
	KindDir
	KindSymlink
	KindFIFO
	KindSocket
	KindDevice   // only ever in a lower: the sandbox can't make one
	KindWhiteout // the upper says that the lower's entry of that name is gone
	kindEnd
)

var kindNames = [...]string{"none", "file", "dir", "symlink", "fifo", "socket", "device", "whiteout"}

// String is the kind's name as the API writes it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Time is a time stamp as the kernel keeps it. Sandboxes can set any, so that
// nanoseconds in an int64 wouldn't hold them all.
type Time struct {
	Sec  int64
	Nsec uint32
}

func TimeOf(t unix.Timespec) Time { return Time{Sec: t.Sec, Nsec: uint32(t.Nsec)} }

// Before orders time stamps.
func (t Time) Before(u Time) bool {
	return t.Sec < u.Sec || t.Sec == u.Sec && t.Nsec < u.Nsec
}

// Entry is one name in an upper or a lower. It is immutable.
type Entry struct {
	Name    string // the last component, exact bytes; "" for the project itself
	Kind    Kind
	Meta                 // as the scanning process sees it
	Size    int64        // bytes; of files only
	Hash    content.Hash // of files: of the content, or above ChunkedAbove of the chunk list
	Target  string       // of symlinks
	Opaque  bool         // of directories in an upper: nothing of the lower shows through
	Links   uint64       // of files with more than one name: the upper's inode, the same for all names; else 0
	Unsaved string       // why the content (or what is below a directory) isn't in the manifest; "" when it is
}

// Absent says whether the merged view has nothing there.
func (e *Entry) Absent() bool { return e == nil || e.Kind == KindWhiteout }

// Same compares what version control would: kind, permissions, content and target. Nil
// is nothing there.
func (e *Entry) Same(o *Entry) bool {
	return e == o || e != nil && o != nil && e.Kind == o.Kind && e.Mode == o.Mode && e.Hash == o.Hash && e.Size == o.Size && e.Target == o.Target
}

// Node is an Entry in a manifest's tree, with what is below it.
type Node struct {
	Entry
	Sub *Dir // of directories; never nil for them
}

// Equal says whether two nodes mean the same and lead to the same objects.
func (n *Node) Equal(o *Node) bool {
	return n == o || n.Sub == o.Sub && n.Name == o.Name && n.Kind == o.Kind && n.Size == o.Size && n.Hash == o.Hash &&
		n.Target == o.Target && n.Opaque == o.Opaque && n.Links == o.Links && n.Unsaved == o.Unsaved && n.SameMeta(&o.Meta)
}
