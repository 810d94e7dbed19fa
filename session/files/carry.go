package files

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// A change is what leads from one state of the files to another. Carrying it over
// makes the same change to a third state, in which others changed things too: that
// is how an action is taken back (the change from after it to before it, on what
// there is now), how what was taken back comes again, and how chosen actions make
// a state of their own. Path by path: what the third state has as the change found
// it becomes what the change makes of it; what it has as wanted already stays; else
// both changes are merged, or are in conflict.

// maxMerged is how many bytes of texts one carrying over merges. Files beyond it
// are in conflict as a whole.
const maxMerged = 64 << 20

// carrying is a change that is carried over to a state.
type carrying struct {
	*Files
	from, to *manifest.Manifest           // the change
	onto     *manifest.Manifest           // what done has come to before
	turned   bool                         // what was below the two may be something else by now
	git      ofGit                        // what stays of it
	only     func(path string) bool       // the paths of it that are meant; nil: all
	hunks    map[string]*diff.File        // paths that become something else than to has: with some hunks of the change only
	resolve  map[string]api.Resolution    // of conflicts, by path
	why      func(path string) string     // who else changed a path, in words
	base     *manifest.Base               // what lies below all three states
	theirs   map[string]shownPath         // what others changed: from what the change found to what is there
	apart    map[string]shownPath         // what differs from what is wanted
	pieces   map[string]*manifest.Piece   // what is put in place
	merged   int                          // bytes
	open     map[string]bool              // directories with something below that isn't in place
	shapes   map[string][2]manifest.Shape // of directories, there and wanted
	whole    bool                         // all of the change is there
	done     *carried
}

// carried is what came of changes that were carried over one after the other.
type carried struct {
	to        *manifest.Manifest
	conflicts []api.Conflict     // by path; those that weren't resolved stay as they are
	problems  []manifest.Problem // what can't be had
	merged    map[string]bool    // paths that have others' changes too
}

// carry carries a change over to what there is, and says whether all of it is there
// then. It reads files.
func (d *carried) carry(ctx context.Context, c carrying) (whole bool, err error) {
	c.done, c.onto, c.whole = d, d.to, true
	before := len(d.conflicts)
	if d.merged == nil {
		d.merged = make(map[string]bool)
	}
	err = c.run(ctx)
	slices.SortFunc(d.conflicts[before:], func(a, b api.Conflict) int { return strings.Compare(a.Path, b.Path) })
	return c.whole, err
}

func (c *carrying) run(ctx context.Context) error {
	changes, err := c.differs(ctx, c.from, c.to)
	if err != nil {
		return err
	}
	if c.turned {
		c.from, c.to = manifest.Pin(c.from, c.to), manifest.Pin(c.to, c.from)
	}
	theirs, err := c.differs(ctx, c.from, c.onto)
	if err != nil {
		return err
	}
	apart, err := c.differs(ctx, c.to, c.onto)
	if err != nil {
		return err
	}
	c.theirs, c.apart = byPath(theirs), byPath(apart)
	c.base = manifest.LaterBase(c.from, c.to, c.onto)
	c.pieces, c.open, c.shapes = make(map[string]*manifest.Piece), make(map[string]bool), make(map[string][2]manifest.Shape)
	changes = slices.DeleteFunc(slices.Clone(changes), func(n diff.Change) bool { return c.leftToGit(&n) })
	wanted := byPath(changes)
	if err := c.renames(ctx, changes, wanted); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(wanted)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.path(ctx, path, wanted[path]); err != nil {
			return err
		}
	}
	c.settle(wanted)
	c.linked()
	c.done.to = manifest.Transplant(c.onto, c.lifted())
	return nil
}

// leftToGit says whether a change isn't carried over, since what git has stays.
func (c *carrying) leftToGit(n *diff.Change) bool {
	stays := c.meant(n.Path) && c.git.stays(n)
	if stays && c.git.past && c.whole {
		c.problem(".git", gitGoesOn)
	}
	return stays
}

// differs lists all that differs between two states, or says that it is too much.
func (f *Files) differs(ctx context.Context, from, to *manifest.Manifest) ([]diff.Change, error) {
	d, err := f.Difference(ctx, from, to)
	if d.More > 0 {
		return nil, api.Problemf(api.CodeInvalid, "cannot choose among so many changes: %d paths differ, and %d is the most", len(d.Changes)+d.More, maxCompared)
	}
	return d.Changes, err
}

func (c *carrying) meant(path string) bool { return c.only == nil || c.only(path) }

// renames carries renames over of files that others changed since under the name
// that they have: with those changes they get the other one.
func (c *carrying) renames(ctx context.Context, changes []diff.Change, wanted map[string]shownPath) error {
	for i := range changes {
		n := &changes[i]
		there, touched := c.theirs[n.From]
		if n.Status != diff.Renamed || !touched || there.then == nil || there.then.Kind != manifest.KindFile || !c.meant(n.From) || !c.meant(n.Path) {
			continue
		}
		if _, taken := c.theirs[n.Path]; taken || c.onto.Has(c.base, n.Path) != nil || c.inTheWay(n.Path) || c.removed(n.Path) != "" {
			continue // two paths of their own
		}
		delete(wanted, n.From)
		delete(wanted, n.Path)
		err := c.meet(ctx, n.From, n.Old, there.then, n.New, func(e *manifest.Entry) {
			c.pieces[n.From] = &manifest.Piece{Path: n.From, From: c.to}
			c.pieces[n.Path] = &manifest.Piece{Path: n.Path, From: c.to, Entry: e}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// path decides what becomes of one path of the change.
func (c *carrying) path(ctx context.Context, path string, w shownPath) error {
	if !c.meant(path) {
		return nil
	}
	want, some := c.hunks[path]
	if !some {
		want = w.then
	}
	put := func(e *manifest.Entry) {
		if e == nil && some {
			e = &want.Entry
		}
		c.pieces[path] = &manifest.Piece{Path: path, From: c.to, Entry: e}
	}
	there, touched := c.theirs[path]
	_, differs := c.apart[path]
	switch {
	case !touched:
		c.untouched(path, w, put)
		return nil
	case !differs && !some:
		return nil // it is so already
	}
	return c.meet(ctx, path, w.now, there.then, want, put)
}

// untouched puts a path in place that nobody else changed, unless its directory isn't
// there any more.
func (c *carrying) untouched(path string, w shownPath, put func(*manifest.Entry)) {
	if w.then != nil && !c.inTheWay(path) {
		if gone := c.removed(path); gone != "" {
			c.conflict(path, "the folder "+api.Escape(gone)+" was removed", nil, put)
			return
		}
	}
	if w.then == nil || !c.inTheWay(path) {
		put(nil)
		return
	}
	c.blocked(path)
}

// above is the nearest directory of a path that is there or comes first, or what
// is there in place of one.
func (c *carrying) above(path string) (dir string, at *manifest.Entry) {
	for dir = parent(path); dir != "" && c.pieces[dir] == nil; dir = parent(dir) {
		if at = c.onto.Has(c.base, dir); at != nil {
			return dir, at
		}
	}
	return dir, nil
}

func (c *carrying) inTheWay(path string) bool {
	_, at := c.above(path)
	return at != nil && at.Kind != manifest.KindDir
}

func (c *carrying) blocked(path string) {
	dir, at := c.above(path)
	c.problem(path, "%s is a %s by now, and would have to be moved away first", api.Escape(dir), at.Kind)
}

// removed is a directory of a path that the change found and that is gone.
func (c *carrying) removed(path string) string {
	there, _ := c.above(path)
	for dir := parent(path); dir != there && dir != ""; dir = parent(dir) {
		if was := c.from.Has(c.base, dir); was != nil && was.Kind == manifest.KindDir {
			return dir
		}
	}
	return ""
}

func (c *carrying) problem(path, format string, args ...any) {
	c.whole = false
	c.done.problems = append(c.done.problems, manifest.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}
