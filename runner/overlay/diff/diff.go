// Package diff says what differs between two checkpoints, or between one and the
// host's files: by content, so that a file that is in an upper but equals the
// host's is no change. A Walker walks two states side by side, also for a
// restore. All of it runs in the caller's goroutine.
package diff

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// Status is how a path differs, in git's letters.
type Status string

const (
	Added    Status = "A"
	Modified Status = "M"
	Deleted  Status = "D"
	Renamed  Status = "R" // same content under another name
	Retyped  Status = "T" // a file became a link, a directory a file and so on
)

// File is one side of a Change.
type File struct {
	manifest.Entry
	Path  string // where it is in that state
	Lower bool   // its content is the host's file, as it is now, and not in Bodies
}

// Change is one path that differs between two states of the files.
type Change struct {
	Path     string
	Status   Status
	From     string // of Renamed: the old path
	Old, New *File  // nil where the state has nothing

	// What differs of a Modified or Renamed path.
	Content, Mode, Owner, Xattrs bool
}

// Kind is what the path is now, or was if it is gone.
func (c *Change) Kind() manifest.Kind {
	if c.New != nil {
		return c.New.Kind
	}
	return c.Old.Kind
}

// Paths are those that a change is of: of a rename, both.
func (c *Change) Paths() []string {
	if c.From == "" {
		return []string{c.Path}
	}
	return []string{c.Path, c.From}
}

// renameData is how many bytes of deleted host files are read to recognise
// renames.
const renameData = 256 << 20

// Options bound a Diff. Zero fields have the default.
type Options struct {
	Max int // changes that are listed; further ones are counted. 20,000
}

// Difference is what Compare found, sorted by path.
type Difference struct {
	Changes []Change
	More    int // changes beyond those listed; renames aren't looked for then
}

// Search is the index of path among the changes and whether it is there, or else
// where it would be.
func (d *Difference) Search(path string) (int, bool) {
	return slices.BinarySearchFunc(d.Changes, path, func(c Change, path string) int { return ComparePaths(c.Path, path) })
}

// Compare says what differs between two states of the files by content, mode,
// owner, extended attributes, kind and link target. Time stamps, hard links
// and mere presence in an upper make no difference. A nil manifest is the
// plain lower. Directories are listed when they are empty on the side that has
// them, when they changed themselves, or when their kind changed.
//
// What is below the uppers is taken from the Base of the later manifest, if it
// has one. Else the host's files are read as they are now; a nil host has none.
func Compare(ctx context.Context, host *lower.Lower, from, to *manifest.Manifest, o Options) (Difference, error) {
	if o.Max <= 0 {
		o.Max = 20_000
	}
	d := &differ{ctx: ctx, max: o.Max}
	d.pair = Walker{Visit: d.visit}
	low := host.Dirs()
	if base := manifest.LaterBase(from, to); base != nil {
		low, host = lower.OfBase(base), nil
	}
	a, b := Sides(low, from, to)
	if from != nil && to != nil && from != to {
		if err := d.modified("", &Version{Entry: &from.Root.Entry, node: from.Root}, &Version{Entry: &to.Root.Entry, node: to.Root}); err != nil {
			return Difference{}, fmt.Errorf("cannot compare: %w", err)
		}
	}
	if err := d.pair.Dir(ctx, "", a, b); err != nil {
		return Difference{}, fmt.Errorf("cannot compare: %w", err)
	}
	if d.more == 0 {
		if err := d.renames(host, renameData); err != nil {
			return Difference{}, fmt.Errorf("cannot recognise renames: %w", err)
		}
	}
	slices.SortFunc(d.changes, func(x, y Change) int { return ComparePaths(x.Path, y.Path) })
	return Difference{Changes: d.changes, More: d.more}, nil
}

// ComparePaths orders a directory before what it holds, and that before
// anything else.
func ComparePaths(a, b string) int {
	for {
		x, restA, moreA := strings.Cut(a, "/")
		y, restB, moreB := strings.Cut(b, "/")
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		if !moreA || !moreB {
			return cmp.Compare(len(a), len(b))
		}
		a, b = restA, restB
	}
}

type differ struct {
	ctx     context.Context
	pair    Walker
	max     int
	changes []Change
	more    int
}

func (d *differ) emit(c Change) {
	if len(d.changes) >= d.max {
		d.more++
		return
	}
	d.changes = append(d.changes, c)
}

func (d *differ) found() int { return len(d.changes) + d.more }

func fileOf(path string, v *Version) *File {
	if v == nil {
		return nil
	}
	return &File{Entry: *v.Entry, Path: path, Lower: v.Low != nil && !v.Low.Kept}
}

func (d *differ) visit(path string, a, b *Version) error {
	aDir, bDir := a.Is(manifest.KindDir), b.Is(manifest.KindDir)
	if a != nil && b != nil && a.Kind == b.Kind {
		if err := d.modified(path, a, b); err != nil {
			return err
		}
		if aDir && a.listed() && b.listed() {
			return d.pair.Dir(d.ctx, path, a.Sub, b.Sub)
		}
		return nil
	}
	for _, v := range []*Version{a, b} {
		if err := v.Load(d.ctx); err != nil {
			return err
		}
	}
	before := d.found()
	if a != nil && b != nil {
		d.emit(Change{Path: path, Status: Retyped, Old: fileOf(path, a), New: fileOf(path, b), Content: true})
		before = -1
	}
	if aDir {
		if err := d.pair.Dir(d.ctx, path, a.Sub, Side{}); err != nil {
			return err
		}
	}
	if bDir {
		if err := d.pair.Dir(d.ctx, path, Side{}, b.Sub); err != nil {
			return err
		}
	}
	switch {
	case a == nil && (!bDir || d.found() == before):
		d.emit(Change{Path: path, Status: Added, New: fileOf(path, b), Content: true})
	case b == nil && (!aDir || d.found() == before || a.Unsaved != ""):
		d.emit(Change{Path: path, Status: Deleted, Old: fileOf(path, a), Content: true})
	}
	return nil
}

// modified compares two versions of the same kind.
func (d *differ) modified(path string, a, b *Version) error {
	if a.node != nil && a.node == b.node || a.Low != nil && b.Low != nil {
		return nil
	}
	for _, v := range []*Version{a, b} {
		if err := v.Load(d.ctx); err != nil {
			return err
		}
	}
	c := Change{Path: path, Status: Modified}
	switch a.Kind {
	case manifest.KindFile:
		same, err := SameContent(d.ctx, a, b)
		if err != nil {
			return err
		}
		c.Content = !same
	case manifest.KindSymlink:
		c.Content = a.Target != b.Target
	}
	c.Mode = a.Mode != b.Mode && a.Kind != manifest.KindSymlink
	c.Owner = a.UID != b.UID || a.GID != b.GID
	c.Xattrs = !a.SameXattrs(&b.Meta)
	if c.Content || c.Mode || c.Owner || c.Xattrs {
		c.Old, c.New = fileOf(path, a), fileOf(path, b)
		d.emit(c)
	}
	return nil
}

// renames joins deleted and added files of equal content. Host files are read
// for it only when one of their length is on the other side, and only as long
// as the budget of bytes lasts.
func (d *differ) renames(lower *lower.Lower, budget int64) error {
	type key struct {
		size int64
		Hash content.Hash
	}
	sizes := map[Status]map[int64]bool{Added: {}, Deleted: {}}
	side := func(c *Change) *File {
		f := c.New
		if c.Status == Deleted {
			f = c.Old
		}
		if c.Status != Added && c.Status != Deleted || f.Kind != manifest.KindFile || f.Size == 0 || f.Unsaved != "" {
			return nil
		}
		return f
	}
	for i := range d.changes {
		if f := side(&d.changes[i]); f != nil {
			sizes[d.changes[i].Status][f.Size] = true
		}
	}
	keys := make([]key, len(d.changes)) // the zero key for what has no counterpart
	added := map[key]*candidates{}
	for i := range d.changes {
		c := &d.changes[i]
		f := side(c)
		if f == nil || !sizes[Added][f.Size] || !sizes[Deleted][f.Size] {
			continue
		}
		if f.Hash.IsZero() {
			if lower == nil {
				continue
			}
			if budget -= f.Size; budget < 0 {
				continue
			}
			e, err := lower.Lookup(d.ctx, f.Path)
			if err != nil {
				return err
			}
			if e == nil || e.Kind != manifest.KindFile || e.Hash.IsZero() {
				continue
			}
			f.Hash, f.Size = e.Hash, e.Size
		}
		keys[i] = key{f.Size, f.Hash}
		if c.Status == Added {
			if added[keys[i]] == nil {
				added[keys[i]] = &candidates{named: map[string][]int{}, used: map[int]bool{}}
			}
			added[keys[i]].add(c.Path, i)
		}
	}
	drop := map[int]bool{}
	for i := range d.changes {
		c, from := &d.changes[i], added[keys[i]]
		if c.Status != Deleted || keys[i].Hash.IsZero() || from == nil {
			continue
		}
		at, ok := from.Take(c.Path)
		if !ok {
			continue
		}
		n := &d.changes[at]
		n.Status, n.From, n.Old, n.Content = Renamed, c.Path, c.Old, false
		n.Mode = c.Old.Mode != n.New.Mode
		n.Owner = c.Old.UID != n.New.UID || c.Old.GID != n.New.GID
		n.Xattrs = !c.Old.SameXattrs(&n.New.Meta)
		drop[i] = true
	}
	if len(drop) == 0 {
		return nil
	}
	kept := d.changes[:0]
	for i := range d.changes {
		if !drop[i] {
			kept = append(kept, d.changes[i])
		}
	}
	d.changes = kept
	return nil
}

// candidates are added files of one content, each the new name of at most one
// deleted file.
type candidates struct {
	all   []int            // indices of changes, in order; those used from the front are gone
	named map[string][]int // the same by the last component of the path
	used  map[int]bool
}

func (c *candidates) add(path string, i int) {
	_, name := manifest.Split(path)
	c.all, c.named[name] = append(c.all, i), append(c.named[name], i)
}

// Take picks the first one that has the same last component as path, else the first.
func (c *candidates) Take(path string) (int, bool) {
	_, name := manifest.Split(path)
	first := func(list []int) (int, []int) {
		for i, at := range list {
			if !c.used[at] {
				c.used[at] = true
				return at, list[i+1:]
			}
		}
		return -1, nil
	}
	at := -1
	if at, c.named[name] = first(c.named[name]); at < 0 {
		at, c.all = first(c.all)
	}
	return at, at >= 0
}

// Open opens one side of a change for reading and says how long it is: a
// file's bytes, or a link's target. The caller closes it.
func Open(ctx context.Context, lower *lower.Lower, b content.Bodies, f *File) (io.ReadCloser, int64, error) {
	switch {
	case f == nil || f.Kind == manifest.KindDir || f.Kind == manifest.KindFIFO || f.Kind == manifest.KindSocket || f.Kind == manifest.KindDevice:
		return io.NopCloser(strings.NewReader("")), 0, nil
	case f.Kind == manifest.KindSymlink:
		return io.NopCloser(strings.NewReader(f.Target)), int64(len(f.Target)), nil
	case f.Lower:
		return lower.Open(ctx, f.Path)
	case f.Unsaved != "":
		return nil, 0, fmt.Errorf("cannot open %q: %s", f.Path, f.Unsaved)
	}
	r, err := content.Open(ctx, b, f.Hash, f.Size)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot open %q: %w", f.Path, err)
	}
	return r, f.Size, nil
}
