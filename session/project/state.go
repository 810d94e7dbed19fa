package project

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// State is what a path has, or shall have. The zero State is nothing.
type State struct {
	Kind          manifest.Kind // KindFile, KindDir, KindSymlink; Look also finds others, which are never written
	manifest.Meta               // of what is only wanted, no more than the mode
	Size          int64         // of files, in bytes
	Hash          content.Hash  // of files: as in a manifest, above content.ChunkedAbove that of the chunk list
	Target        string        // of links
	Links         uint64        // of files with more than one name: the inode
	Found         bool          // it was like that in the project, with all of Meta, which is what comes back
}

// name is a path of a file that has others.
type name struct {
	file uint64 // State.Links
	path string
}

// Of is an entry as a state to be compared or written; of nil, nothing.
func Of(e *manifest.Entry) State {
	if e == nil {
		return State{}
	}
	return State{Kind: e.Kind, Meta: manifest.Meta{Mode: carried(e.Kind, e.Mode)}, Size: e.Size, Hash: e.Hash, Target: e.Target, Links: e.Links}
}

// carried is what of a mode is compared and written. A setuid or setgid bit is never an
// agent's to give, and the owner can read all that is new, else nobody could look at it
// again.
func carried(kind manifest.Kind, mode uint32) uint32 {
	switch kind {
	case manifest.KindFile:
		return mode&0o777 | 0o400
	case manifest.KindDir:
		return mode&0o1777 | 0o500
	}
	return 0
}

// Absent says whether nothing is there.
func (s State) Absent() bool { return s.Kind == 0 }

// Same says whether two states are one to a step: kind, permissions, content,
// target. A link has no permissions.
func (s State) Same(o State) bool {
	if s.Kind != o.Kind || carried(s.Kind, s.Mode) != carried(o.Kind, o.Mode) {
		return false
	}
	switch s.Kind {
	case manifest.KindFile:
		return s.Size == o.Size && s.Hash == o.Hash
	case manifest.KindSymlink:
		return s.Target == o.Target
	case manifest.KindDir, 0:
		return true
	}
	return false // nobody can tell two devices, or what was said into a FIFO
}

// Step is one path's way from a state to another. A path has at most one step.
// A new folder needs a step of its own before anything can be in it, and a folder
// that goes or becomes something else needs one for each thing known in it.
type Step struct {
	Path     string // below the project, exact bytes
	Old, New State
}

// Written is all that is written of the inode: what was found once, as it was. What takes
// the place of something of its kind goes on with what is the person's: owner, access list
// and user attributes, and of a folder its setgid bit.
func (s *Step) Written() manifest.Meta {
	if s.New.Found {
		return s.New.Meta
	}
	m := manifest.Meta{UID: manifest.NoID, GID: manifest.NoID, Mode: carried(s.New.Kind, s.New.Mode), MTime: manifest.NoTime}
	if s.Old.Kind != s.New.Kind {
		return m
	}
	if s.Old.Kind == manifest.KindDir {
		m.Mode |= s.Old.Mode & (unix.S_ISUID | unix.S_ISGID)
	}
	if s.Old.Found {
		m.UID, m.GID = s.Old.UID, s.Old.GID
		m.Xattrs = slices.DeleteFunc(slices.Clone(s.Old.Xattrs), func(x manifest.Xattr) bool { return x.Name == manifest.Capability })
	}
	return m
}

// Beyond says in words what of a step this process can't bring back, "" for nothing.
func (s *Step) Beyond() string {
	switch {
	case s.New.Absent(), s.New.Kind == s.Old.Kind && s.New.SameMeta(&s.Old.Meta):
		return ""
	case !s.New.Found:
		return "its times, attributes and owner weren't noted"
	}
	return inode.Beyond(&s.New.Meta)
}

func appendState(b []byte, s *State) []byte {
	b = append(b, byte(s.Kind))
	if s.Absent() {
		return b
	}
	found := byte(0)
	if s.Found {
		found = 1
	}
	b = manifest.AppendMeta(append(b, found), &s.Meta)
	switch s.Kind {
	case manifest.KindFile:
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(s.Size)), s.Links)
		b = append(b, s.Hash[:]...)
	case manifest.KindSymlink:
		b = codec.AppendBytes(b, s.Target)
	}
	return b
}

func readState(d *codec.Decoder) State {
	s := State{Kind: manifest.Kind(d.Byte())}
	if s.Absent() {
		return s
	}
	s.Found = d.Byte() == 1
	s.Meta = manifest.ReadMeta(d)
	switch s.Kind {
	case manifest.KindFile:
		s.Size, s.Links = int64(d.Uvarint(1<<63-1)), d.Uvarint(1<<64-1)
		s.Hash = content.ReadHash(d)
	case manifest.KindSymlink:
		s.Target = string(d.Bytes())
	}
	return s
}
