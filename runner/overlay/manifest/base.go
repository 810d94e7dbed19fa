package manifest

// Base is what a session saw of the lower, kept with its manifests so that they
// can be compared when the host's files have changed or are gone. It knows the
// paths that an upper has covered at any time, each as the lower had it when
// that was first seen; of what the sandbox never touched it knows nothing.
//
// It is a tree like a manifest's, stored in the same objects, in which a
// whiteout means that the lower had nothing of that name, and an opaque
// directory that all of what the lower had in it is listed. Contents are in
// Bodies. Files whose content isn't there are Unsaved; their Hash may be known
// all the same.
//
// A Base is immutable. The later of two knows all that the other does, but where
// the host's files have come to show through again: there it has what they are by
// then, and Turns is another. What was there is in the Base of the manifest before,
// whose upper hid it: see Pin.
type Base struct {
	Root  *Node
	Steps uint64 // how often it was extended: the later one has more
	Turns uint64 // how often something else took the place of what it knew; not stored
}

// LaterBase is the Base that knows what lies below all of some manifests; nil when
// none has one.
func LaterBase(of ...*Manifest) (out *Base) {
	for _, m := range of {
		if m != nil && m.Base != nil && (out == nil || m.Base.Steps >= out.Steps) {
			out = m.Base
		}
	}
	return out
}
