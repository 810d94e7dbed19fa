// Package restore puts the merged view of an overlay back to a checkpoint while
// the mount stays in use. NewPlan works out, as plain data, how to get there from
// another one; Execute carries that out below a directory descriptor of the
// merged view, as root of the sandbox's user namespace, while the sandbox is
// frozen. A Source brings the contents, through a pipe if need be.
//
// Execute trusts its Plan and its Source, and nothing below the merged root.
package restore

import (
	"maps"
	"slices"
	"strings"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

// OpKind is what one step of a Plan does.
type OpKind uint8

const (
	OpRemove  OpKind = iota + 1 // take a name away, with all below it
	OpMkdir                     // make a directory of mode 0700, or keep the one there
	OpFile                      // write a file and put it in the name's place
	OpLink                      // give the name to the file at Source
	OpSymlink                   // make a link
	OpFIFO                      // make a FIFO
	OpSocket                    // make the node of a socket; nothing listens on it
	OpMeta                      // set owner, mode, attributes and times of what is there
	opEnd
)

var opNames = [...]string{"none", "remove", "mkdir", "file", "link", "symlink", "fifo", "socket", "meta"}

// String is the step's name for messages.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return "unknown"
}

// Op is one step. Paths are relative to the merged root; "" is the root.
type Op struct {
	Kind          OpKind
	Path          string
	What          manifest.Kind // what the path is afterwards, but for OpRemove
	Source        string        // of OpLink: a path that an earlier step, or nothing, touched
	Target        string        // of OpSymlink
	manifest.Meta               // in the sandbox's user namespace
	Content       Blob          // of OpFile
	InPlace       bool          // of OpFile: write into the inode that is there
	SameAttr      bool          // of OpMeta, and of OpFile with InPlace: its extended attributes stay
}

// Blob names the bytes that an OpFile writes.
type Blob struct {
	Size  int64
	Hash  content.Hash // zero when Lower and not known
	Lower bool         // the host's file of the same path instead of a stored body
}

// Plan says how to get from one state of the files to another. It is plain
// data; gob keeps it byte for byte.
type Plan struct {
	Ops      []Op               // in order: removals first, directories' own attributes last
	Problems []manifest.Problem // what can't be restored, and why; the rest can
	Lost     []string           // those of its paths that don't become what they were; not encoded
}

// Options are for one NewPlan.
type Options struct {
	// Replace says which files get another inode when their content is put
	// back: programs and libraries that run are better off with the old one.
	// All others that the upper has keep theirs and are written over, so that
	// what a living process appends lands in the file and not in one that has
	// no name any more; and it is quicker. Nil replaces none.
	Replace func(path string) bool
	// Only says which of the paths that cur's upper hasn't got may be written, which
	// are the host's as they are by now; a directory that leads to one is among them.
	// Nil is all.
	Only func(path string) bool
	// Leave are paths that stay as they are, whatever the target has: each by
	// itself, and not what is below it.
	Leave []string
	// Whole has a folder that hides the lower's in the target made anew where it is the
	// lower's by now, with all that is in it: a mount to come shows nothing else of it.
	Whole bool
	// Up says which files the upper is to have though the lower has them as they are in the
	// target, for the same reason. Nil is none.
	Up func(path string) bool
}

// Paths are what the plan touches, sorted, each once.
func (p *Plan) Paths() []string {
	set := map[string]bool{}
	for i := range p.Ops {
		set[p.Ops[i].Path] = true
	}
	return slices.SortedFunc(maps.Keys(set), strings.Compare)
}
