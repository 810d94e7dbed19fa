package lower

import (
	"context"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

// Dir is a directory of what is below an upper: the host's own, or what a
// Base keeps of it. It belongs to one goroutine.
type Dir interface {
	Below(name string) Dir
	// Find gives nil when there is nothing of that name.
	Find(ctx context.Context, name string) (*Entry, error)
	Names(ctx context.Context) ([]string, error) // sorted
	Complete(ctx context.Context, e *Entry) error
	Hash(ctx context.Context, e *Entry) error
	Close()
}

// OfBase is the top directory of what a Base knows.
func OfBase(b *manifest.Base) Dir { return &baseDir{b.Root.Sub} }

// baseDir is a directory of a Base; with a nil dir, one that it doesn't know.
type baseDir struct{ d *manifest.Dir }

func (b *baseDir) Below(name string) Dir {
	if n := b.d.Find(name); n != nil {
		return &baseDir{n.Sub}
	}
	return &baseDir{}
}

func (b *baseDir) Find(_ context.Context, name string) (*Entry, error) {
	n := b.d.Find(name)
	if n == nil || n.Kind == manifest.KindWhiteout {
		return nil, nil
	}
	e := &Entry{Entry: n.Entry, Kept: true}
	e.Opaque = false
	return e, nil
}

func (b *baseDir) Names(context.Context) ([]string, error) {
	var names []string
	for n := range b.d.All() {
		if n.Kind != manifest.KindWhiteout {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

func (*baseDir) Complete(context.Context, *Entry) error { return nil }
func (*baseDir) Hash(context.Context, *Entry) error     { return nil }
func (*baseDir) Close()                                 {}

// unknownDir stands for a lower of which nothing was kept: whatever one of the
// two uppers covers is taken to have been something of the same kind.
type unknownDir struct {
	why string
	ups [2]*manifest.Dir
}

// Unknown is the top directory of what is below two uppers when nothing of
// it was kept, for that reason.
func Unknown(why string, a, b *manifest.Manifest) Dir {
	return &unknownDir{why: why, ups: [2]*manifest.Dir{a.RootDir(), b.RootDir()}}
}

func (u *unknownDir) Below(name string) Dir {
	out := &unknownDir{why: u.why}
	for i, up := range u.ups {
		if n := up.Find(name); n != nil {
			out.ups[i] = n.Sub
		}
	}
	return out
}

func (u *unknownDir) Find(_ context.Context, name string) (*Entry, error) {
	for _, up := range u.ups {
		n := up.Find(name)
		if n == nil {
			continue
		}
		e := &Entry{Entry: n.Entry, Kept: true}
		e.Opaque, e.Links = false, 0
		switch n.Kind {
		case manifest.KindWhiteout:
			e.Kind, e.Unsaved = manifest.KindFile, u.why
		case manifest.KindFile:
			e.Hash, e.Size, e.MTime, e.Unsaved = content.Hash{}, 0, manifest.Time{}, u.why
		}
		return e, nil
	}
	return nil, nil
}

func (*unknownDir) Names(context.Context) ([]string, error) { return nil, nil }
func (*unknownDir) Complete(context.Context, *Entry) error  { return nil }
func (*unknownDir) Hash(context.Context, *Entry) error      { return nil }
func (*unknownDir) Close()                                  {}
