package files

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/merge"
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
	only     func(path string) bool       // the paths of it that are meant; nil: all
	hunks    map[string]*diff.File        // paths that become something else than to has: with some hunks of the change only
	resolve  map[string]api.Resolution    // of conflicts, by path
	why      func(path string) string     // who else changed a path, in words
	base     *manifest.Base               //
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

// differs lists all that differs between two states, or says that it is too much.
func (f *Files) differs(ctx context.Context, from, to *manifest.Manifest) ([]diff.Change, error) {
	c, err := f.compare(ctx, from, to)
	if err == nil && c.More > 0 {
		err = api.Problemf(api.CodeInvalid, "cannot choose among so many changes: %d paths differ, and %d is the most", len(c.Changes)+c.More, maxCompared)
	}
	if err != nil {
		return nil, err
	}
	return c.Changes, nil
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

// meet merges two changes of one path. Put takes nil for what is wanted itself.
func (c *carrying) meet(ctx context.Context, path string, base, there, want *diff.File, put func(*manifest.Entry)) error {
	are := func(k manifest.Kind) bool {
		return !slices.ContainsFunc([]*diff.File{base, there, want}, func(f *diff.File) bool { return f == nil || f.Kind != k })
	}
	if !are(manifest.KindFile) && !are(manifest.KindDir) {
		c.conflict(path, met(base, there, want), nil, put)
		return nil
	}
	out, why := attributes(&base.Entry, &there.Entry, &want.Entry)
	if why != "" {
		c.conflict(path, why, nil, put)
		return nil
	}
	same := func(a, b *diff.File) bool { return a.Hash == b.Hash && a.Size == b.Size && !a.Hash.IsZero() }
	switch {
	case isFolder(there), same(base, want), same(there, want): // what is there is it
	case same(base, there):
		out.Hash, out.Size, out.Unsaved, out.MTime = want.Hash, want.Size, want.Unsaved, want.MTime
	default:
		return c.texts(ctx, path, out, [3]*diff.File{base, there, want}, put)
	}
	c.done.merged[path] = true
	put(&out)
	return nil
}

// texts merges the contents of three files into one that is otherwise made.
func (c *carrying) texts(ctx context.Context, path string, out manifest.Entry, of [3]*diff.File, put func(*manifest.Entry)) error {
	var in [3][]byte
	for i, f := range of {
		var err error
		switch in[i], err = c.Read(ctx, f, content.ChunkedAbove); {
		case errors.Is(err, errTooLarge) || errors.Is(err, errNotKept):
			c.conflict(path, "both changed it, and it is "+err.Error(), nil, put)
			return nil
		case err != nil:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.problem(path, "%s", err.Error())
			return nil
		}
		c.merged += len(in[i])
	}
	if c.merged > maxMerged {
		c.conflict(path, "both changed it, and there is too much to be merged at once", nil, put)
		return nil
	}
	m := merge.Three(in[0], in[1], in[2])
	store := func(text []byte) error {
		e := out
		if err := c.keep(ctx, &e, text); err != nil {
			return err
		}
		put(&e)
		c.done.merged[path] = true
		return nil
	}
	switch r := c.resolve[path]; {
	case m.Clean && r.Way != api.WayWanted && r.Way != api.WayThere:
		return store(m.Text)
	case len(m.Clashes) > 0 && r.Way == api.WayMerge:
		text, err := m.Resolve(r.Sides)
		if err != nil {
			return err
		}
		return store(text)
	}
	why := "both changed the same lines"
	if m.Why != "" {
		why = "both changed it, and it is " + m.Why
	}
	c.conflict(path, why, m.Clashes, put)
	return nil
}

// conflict notes that a path is in conflict, and what was said of that.
func (c *carrying) conflict(path, why string, clashes []api.Clash, put func(*manifest.Entry)) {
	switch c.resolve[path].Way {
	case api.WayWanted:
		if c.to.Has(c.base, path) != nil && c.inTheWay(path) {
			c.blocked(path)
			return
		}
		put(nil)
		return
	case api.WayThere:
		c.whole = false
		return
	}
	c.whole = false
	if c.why != nil {
		if who := c.why(path); who != "" {
			why += "; " + who
		}
	}
	c.done.conflicts = append(c.done.conflicts, api.Conflict{Key: key(path), Path: api.Escape(path), Why: why, Clashes: clashes})
}

// met says in words how two changes meet that can't be merged.
func met(base, there, want *diff.File) string {
	is := func(f *diff.File) string {
		if f == nil {
			return "gone"
		}
		return "a " + f.Kind.String()
	}
	switch {
	case there == nil:
		return "it isn't there"
	case base == nil:
		return "there is " + is(there) + " in its place"
	case there.Kind != base.Kind:
		return "it has become " + is(there)
	case want == nil:
		return "it was changed, and would go"
	case there.Kind == manifest.KindSymlink:
		return "it points to " + api.Escape(there.Target)
	}
	return "it was changed, and would be " + is(want)
}

// attributes merges what of three files isn't content, over what is there.
func attributes(base, there, want *manifest.Entry) (out manifest.Entry, why string) {
	out = *there
	switch {
	case there.Mode == base.Mode:
		out.Mode = want.Mode
	case want.Mode != base.Mode && want.Mode != there.Mode:
		why = fmt.Sprintf("its mode has become %04o", there.Mode)
	}
	switch there, base, want := [2]uint32{there.UID, there.GID}, [2]uint32{base.UID, base.GID}, [2]uint32{want.UID, want.GID}; {
	case there == base:
		out.UID, out.GID = want[0], want[1]
	case want != base && want != there:
		why = "it has another owner"
	}
	switch {
	case there.SameXattrs(base):
		out.Xattrs = want.Xattrs
	case !want.SameXattrs(base) && !want.SameXattrs(there):
		why = "its extended attributes were changed"
	}
	return out, why
}

// stays notes what isn't put in place as open, from the path on that from gives.
func (c *carrying) stays(from func(path string) string) {
	for path := range c.apart {
		if c.pieces[path] == nil {
			for dir := from(path); dir != "" && !c.open[dir]; dir = parent(dir) {
				c.open[dir] = true
			}
		}
	}
}

// settle takes back what would take others' files with it: a directory goes only
// when nothing of theirs is in it.
func (c *carrying) settle(wanted map[string]shownPath) {
	c.stays(parent)
	said := make(map[string]bool)
	for _, path := range slices.Sorted(maps.Keys(c.pieces)) {
		then, p := wanted[path].then, c.pieces[path]
		folder := p.Entry == nil && then != nil && isFolder(then) || p.Entry != nil && p.Entry.Kind == manifest.KindDir
		if !folder && c.open[path] {
			delete(c.pieces, path)
			c.problem(path, "this folder stays, since it holds what came later")
			said[path] = true
		}
		for dir := parent(path); then == nil && dir != ""; dir = parent(dir) {
			if c.open[dir] && !said[dir] && c.shape(dir)[1] == manifest.ShapeNone {
				said[dir] = true
				if c.to.Has(c.base, dir) == nil {
					c.done.problems = append(c.done.problems, manifest.Problem{Path: dir, Text: "this folder stays, since it holds what came later"})
				}
			}
		}
	}
}

func (c *carrying) shape(dir string) [2]manifest.Shape {
	s, known := c.shapes[dir]
	if !known {
		s = [2]manifest.Shape{c.onto.Shape(c.base, dir), c.to.Shape(c.base, dir)}
		c.shapes[dir] = s
	}
	return s
}

// linked looks after files with several names.
func (c *carrying) linked() {
	if len(c.pieces) == 0 || !links(c.onto) && !links(c.to) {
		return
	}
	there, names := c.onto.LinkGroups()
	was, wasNames := c.from.LinkGroups()
	want, wantNames := c.to.LinkGroups()
	for _, path := range slices.Sorted(maps.Keys(c.pieces)) {
		p := c.pieces[path]
		if now := c.to.Has(c.base, path); p.Entry != nil || now == nil {
			continue
		}
		if g := there[path]; g != 0 && !slices.Equal(names[g], wasNames[was[path]]) {
			other := slices.IndexFunc(names[g], func(name string) bool { return c.pieces[name] == nil })
			if other >= 0 {
				delete(c.pieces, path)
				c.conflict(path, "it has the name "+api.Escape(names[g][other])+" too by now, which keeps what it is", nil, func(*manifest.Entry) { c.pieces[path] = p })
				continue
			}
		}
		for _, name := range wantNames[want[path]] {
			if c.pieces[name] != nil {
				continue
			}
			if _, differs := c.apart[name]; differs {
				c.problem(path, "it was one file with %s, which has changed since: they are two now", api.Escape(name))
				break
			}
			c.pieces[name] = &manifest.Piece{Path: name, From: c.to}
		}
	}
}

func links(m *manifest.Manifest) bool { return m != nil && m.Root.Sub.Links }

// lifted are the pieces, with directories as a whole where the two states are
// directories of different kinds and nothing of others is in them.
func (c *carrying) lifted() []manifest.Piece {
	c.stays(func(path string) string { return path }) // conflicts and links may have changed what is in place
	var out []manifest.Piece
	wholes := make(map[string]bool)
	for _, path := range slices.Sorted(maps.Keys(c.pieces)) {
		p := c.pieces[path]
		top := ""
		for dir := path; dir != ""; dir = parent(dir) {
			if s := c.shape(dir); s[0] != s[1] && !c.open[dir] {
				top = dir
			}
		}
		if top != "" && !wholes[top] {
			wholes[top] = true
			out = append(out, manifest.Piece{Path: top, From: c.to, Whole: true})
		}
		if top == "" || p.Entry != nil {
			out = append(out, *p)
		}
	}
	return out
}
