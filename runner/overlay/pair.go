package overlay

import (
	"context"
	"slices"
)

// lowDir is a directory of what is below an upper: the host's own, or what a
// Base keeps of it. It belongs to one goroutine.
type lowDir interface {
	below(name string) lowDir
	// find gives nil when there is nothing of that name.
	find(ctx context.Context, name string) (*lowerEntry, error)
	names(ctx context.Context) ([]string, error) // sorted
	complete(ctx context.Context, e *lowerEntry) error
	hash(ctx context.Context, e *lowerEntry) error
	close()
}

// place is what one state of the files has for a directory: the upper's part,
// and the lower's where it shows through. The zero place has nothing.
type place struct {
	up  *dir
	low lowDir
}

// version is what one state has under one name.
type version struct {
	*Entry
	node *node       // when it comes from the upper
	low  *lowerEntry // when it comes from the lower
	in   lowDir      // the directory that low is in
	sub  place       // of directories
}

func (v *version) absent() bool { return v == nil }

func (v *version) is(k Kind) bool { return v != nil && v.Kind == k }

// listed says whether a directory can be looked into. Of a Base's, what is known
// is better than nothing.
func (v *version) listed() bool { return v.Unsaved == "" || v.low != nil && v.low.kept }

// load makes everything but the content's hash of a lower entry known.
func (v *version) load(ctx context.Context) error {
	if v == nil || v.low == nil {
		return nil
	}
	return v.in.complete(ctx, v.low)
}

// sameContent compares two files by content. Where a content isn't known it
// says false, unless both were left out of their manifests and look the same.
func sameContent(ctx context.Context, a, b *version) (bool, error) {
	if a.low != nil && b.low != nil {
		return true, nil // the lower is the same for both
	}
	if a.Size != b.Size {
		return false, nil
	}
	if a.Unsaved != "" && b.Unsaved != "" && a.MTime == b.MTime {
		return true, nil
	}
	for _, v := range []*version{a, b} {
		if v.low != nil {
			if err := v.in.hash(ctx, v.low); err != nil {
				return false, err
			}
		}
		if v.Unsaved != "" && v.Hash.IsZero() {
			return false, nil
		}
	}
	return a.Hash == b.Hash && a.Size == b.Size, nil
}

// pair walks two states of the same files side by side and leaves out what
// they are known to share.
type pair struct {
	// forced are directories that mustn't be left out; nil for none.
	forced map[string]bool
	visit  func(path string, a, b *version) error
}

func startPlaces(low lowDir, a, b *Manifest) (place, place) {
	pa, pb := place{up: a.rootDir(), low: low}, place{up: b.rootDir(), low: low}
	if a != nil && a.root.Opaque {
		pa.low = nil
	}
	if b != nil && b.root.Opaque {
		pb.low = nil
	}
	return pa, pb
}

func (p *pair) shared(path string, a, b place) bool {
	return a.low == b.low && a.up.same(b.up) && !p.forced[path]
}

// dir visits the names of one directory in order.
func (p *pair) dir(ctx context.Context, path string, a, b place) error {
	if p.shared(path, a, b) {
		return nil
	}
	for _, low := range []lowDir{a.low, b.low} {
		if low != nil {
			defer low.close()
		}
	}
	var lowNames []string
	if a.low != b.low {
		for _, low := range []lowDir{a.low, b.low} {
			if low == nil {
				continue
			}
			names, err := low.names(ctx)
			if err != nil {
				return err
			}
			lowNames = append(lowNames, names...)
		}
	}
	skip := a.low == b.low && !p.forced[path]
	for _, name := range unionNames(a.up, b.up, lowNames, skip) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.name(ctx, path, name, a, b); err != nil {
			return err
		}
	}
	return nil
}

func (p *pair) name(ctx context.Context, path, name string, a, b place) error {
	var entries [2]*lowerEntry // shared when both look into the same directory
	var subs [2]lowDir
	defer func() {
		for _, s := range subs {
			if s != nil {
				s.close()
			}
		}
	}()
	versions := [2]*version{}
	for i, at := range []place{a, b} {
		shared := i == 1 && a.low == b.low
		lowSub := func() lowDir {
			if at.low == nil {
				return nil
			}
			if shared && subs[0] != nil {
				return subs[0]
			}
			subs[i] = at.low.below(name)
			return subs[i]
		}
		if n := at.up.find(name); n != nil {
			if n.Kind == KindWhiteout {
				continue
			}
			v := &version{Entry: &n.Entry, node: n}
			if n.Kind == KindDir {
				v.sub.up = n.sub
				if !n.Opaque {
					v.sub.low = lowSub()
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
			e, err := at.low.find(ctx, name)
			if err != nil {
				return err
			}
			entries[i] = e
		}
		if e := entries[i]; e != nil {
			v := &version{Entry: &e.Entry, low: e, in: at.low}
			if e.Kind == KindDir {
				v.sub.low = lowSub()
			}
			versions[i] = v
		}
	}
	if versions[0] == nil && versions[1] == nil {
		return nil
	}
	return p.visit(join(path, name), versions[0], versions[1])
}

// unionNames merges the names of two directories of uppers and those of the
// lower. With skip it leaves out what both uppers share.
func unionNames(a, b *dir, low []string, skip bool) []string {
	var names []string
	var pa, pb []*page
	if a != nil {
		pa = a.pages
	}
	if b != nil {
		pb = b.pages
	}
	if skip {
		pa, pb = unsharedPages(pa, pb)
	}
	add := func(pages []*page) {
		for _, p := range pages {
			for _, n := range p.nodes {
				names = append(names, n.Name)
			}
		}
	}
	add(pa)
	add(pb)
	names = append(names, low...)
	slices.Sort(names)
	return slices.Compact(names)
}

// unsharedPages leaves out the pages that both lists have.
func unsharedPages(a, b []*page) (onlyA, onlyB []*page) {
	ptrs, hashes := make(map[*page]bool, len(a)), make(map[Hash]bool, len(a))
	for _, p := range a {
		ptrs[p] = true
		if h, _ := p.known(); !h.IsZero() {
			hashes[h] = true
		}
	}
	inBoth, hashBoth := map[*page]bool{}, map[Hash]bool{}
	for _, p := range b {
		h, _ := p.known()
		switch {
		case ptrs[p]:
			inBoth[p] = true
		case !h.IsZero() && hashes[h]:
			hashBoth[h] = true
		default:
			onlyB = append(onlyB, p)
		}
	}
	for _, p := range a {
		if h, _ := p.known(); !inBoth[p] && !hashBoth[h] {
			onlyA = append(onlyA, p)
		}
	}
	return onlyA, onlyB
}
