package diff

import (
	"context"

	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// Side is what one state of the files has for a directory: the upper's part,
// and the lower's where it shows through. The zero side has nothing.
type Side struct {
	up  *manifest.Dir
	low lower.Dir
}

// Open says whether the lower shows through in the directory.
func (s Side) Open() bool { return s.low != nil }

// Version is what one state has under one name.
type Version struct {
	*manifest.Entry
	node *manifest.Node // when it comes from the upper
	Low  *lower.Entry   // when it comes from the lower
	in   lower.Dir      // the directory that low is in
	Sub  Side           // of directories
}

// Absent says whether there is nothing.
func (v *Version) Absent() bool { return v == nil }

// Is says whether it is of that kind; nothing is of none.
func (v *Version) Is(k manifest.Kind) bool { return v != nil && v.Kind == k }

// listed says whether a directory can be looked into. Of a Base's, what is known
// is better than nothing.
func (v *Version) listed() bool { return v.Unsaved == "" || v.Low != nil && v.Low.Kept }

// Load makes everything but the content's hash of a lower entry known.
func (v *Version) Load(ctx context.Context) error {
	if v == nil || v.Low == nil {
		return nil
	}
	return v.in.Complete(ctx, v.Low)
}

// SameContent compares two files by content. Where a content isn't known it
// says false, unless both were left out of their manifests and look the same.
func SameContent(ctx context.Context, a, b *Version) (bool, error) {
	if a.Low != nil && b.Low != nil {
		return true, nil // the lower is the same for both
	}
	if a.Size != b.Size {
		return false, nil
	}
	if a.Unsaved != "" && b.Unsaved != "" && a.MTime == b.MTime {
		return true, nil
	}
	for _, v := range []*Version{a, b} {
		if v.Low != nil {
			if err := v.in.Hash(ctx, v.Low); err != nil {
				return false, err
			}
		}
		if v.Unsaved != "" && v.Hash.IsZero() {
			return false, nil
		}
	}
	return a.Hash == b.Hash && a.Size == b.Size, nil
}

// Walker walks two states of the same files side by side and leaves out what
// they are known to share.
type Walker struct {
	// forced are directories that mustn't be left out; nil for none.
	Forced map[string]bool
	Visit  func(path string, a, b *Version) error
}

// Sides are the project folders of two manifests over the same lower.
func Sides(low lower.Dir, a, b *manifest.Manifest) (Side, Side) {
	pa, pb := Side{up: a.RootDir(), low: low}, Side{up: b.RootDir(), low: low}
	if a != nil && a.Root.Opaque {
		pa.low = nil
	}
	if b != nil && b.Root.Opaque {
		pb.low = nil
	}
	return pa, pb
}

func (p *Walker) shared(path string, a, b Side) bool {
	return a.low == b.low && a.up.Same(b.up) && !p.Forced[path]
}

// Dir visits the names of one directory in order.
func (p *Walker) Dir(ctx context.Context, path string, a, b Side) error {
	if p.shared(path, a, b) {
		return nil
	}
	for _, low := range []lower.Dir{a.low, b.low} {
		if low != nil {
			defer low.Close()
		}
	}
	var lowNames []string
	if a.low != b.low {
		for _, low := range []lower.Dir{a.low, b.low} {
			if low == nil {
				continue
			}
			names, err := low.Names(ctx)
			if err != nil {
				return err
			}
			lowNames = append(lowNames, names...)
		}
	}
	skip := a.low == b.low && !p.Forced[path]
	for _, name := range manifest.UnionNames(a.up, b.up, lowNames, skip) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.name(ctx, path, name, a, b); err != nil {
			return err
		}
	}
	return nil
}

func (p *Walker) name(ctx context.Context, path, name string, a, b Side) error {
	var entries [2]*lower.Entry // shared when both look into the same directory
	var subs [2]lower.Dir
	defer func() {
		for _, s := range subs {
			if s != nil {
				s.Close()
			}
		}
	}()
	versions := [2]*Version{}
	for i, at := range []Side{a, b} {
		shared := i == 1 && a.low == b.low
		lowSub := func() lower.Dir {
			if at.low == nil {
				return nil
			}
			if shared && subs[0] != nil {
				return subs[0]
			}
			subs[i] = at.low.Below(name)
			return subs[i]
		}
		if n := at.up.Find(name); n != nil {
			if n.Kind == manifest.KindWhiteout {
				continue
			}
			v := &Version{Entry: &n.Entry, node: n}
			if n.Kind == manifest.KindDir {
				v.Sub.up = n.Sub
				if !n.Opaque {
					v.Sub.low = lowSub()
				}
			}
			versions[i] = v
			continue
		}
		if at.low == nil {
			continue
		}
		if shared && entries[0] != nil {
			entries[1] = entries[0]
		} else {
			e, err := at.low.Find(ctx, name)
			if err != nil {
				return err
			}
			entries[i] = e
		}
		if e := entries[i]; e != nil {
			v := &Version{Entry: &e.Entry, Low: e, in: at.low}
			if e.Kind == manifest.KindDir {
				v.Sub.low = lowSub()
			}
			versions[i] = v
		}
	}
	if versions[0] == nil && versions[1] == nil {
		return nil
	}
	return p.Visit(manifest.Join(path, name), versions[0], versions[1])
}
