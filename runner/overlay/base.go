package overlay

import "context"

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
// A Base is immutable. The later of two knows all that the other does.
type Base struct {
	root  *node
	steps uint64 // how often it was extended: the later one has more
}

// laterBase is the Base that knows what lies below both manifests; nil when
// neither has one.
func laterBase(a, b *Manifest) *Base {
	switch {
	case a == nil || a.base == nil:
		if b == nil {
			return nil
		}
		return b.base
	case b == nil || b.base == nil || b.base.steps < a.base.steps:
		return a.base
	}
	return b.base
}

func (b *Base) dirs() lowDir { return &baseDir{b.root.sub} }

// baseDir is a directory of a Base; with a nil dir, one that it doesn't know.
type baseDir struct{ d *dir }

func (b *baseDir) below(name string) lowDir {
	if n := b.d.find(name); n != nil {
		return &baseDir{n.sub}
	}
	return &baseDir{}
}

func (b *baseDir) find(_ context.Context, name string) (*lowerEntry, error) {
	n := b.d.find(name)
	if n == nil || n.Kind == KindWhiteout {
		return nil, nil
	}
	e := &lowerEntry{Entry: n.Entry, kept: true}
	e.Opaque = false
	return e, nil
}

func (b *baseDir) names(context.Context) ([]string, error) {
	var names []string
	for n := range b.d.all() {
		if n.Kind != KindWhiteout {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

func (*baseDir) complete(context.Context, *lowerEntry) error { return nil }
func (*baseDir) hash(context.Context, *lowerEntry) error     { return nil }
func (*baseDir) close()                                      {}

// unknownDir stands for a lower of which nothing was kept: whatever one of the
// two uppers covers is taken to have been something of the same kind.
type unknownDir struct {
	why string
	ups [2]*dir
}

func (u *unknownDir) below(name string) lowDir {
	out := &unknownDir{why: u.why}
	for i, up := range u.ups {
		if n := up.find(name); n != nil {
			out.ups[i] = n.sub
		}
	}
	return out
}

func (u *unknownDir) find(_ context.Context, name string) (*lowerEntry, error) {
	for _, up := range u.ups {
		n := up.find(name)
		if n == nil {
			continue
		}
		e := &lowerEntry{Entry: n.Entry, kept: true}
		e.Opaque, e.Links = false, 0
		switch n.Kind {
		case KindWhiteout:
			e.Kind, e.Unsaved = KindFile, u.why
		case KindFile:
			e.Hash, e.Size, e.MTime, e.Unsaved = Hash{}, 0, Time{}, u.why
		}
		return e, nil
	}
	return nil, nil
}

func (*unknownDir) names(context.Context) ([]string, error)     { return nil, nil }
func (*unknownDir) complete(context.Context, *lowerEntry) error { return nil }
func (*unknownDir) hash(context.Context, *lowerEntry) error     { return nil }
func (*unknownDir) close()                                      {}
