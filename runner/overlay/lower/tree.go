package lower

import (
	"context"

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
