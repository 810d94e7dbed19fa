package files

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/merge"
)

// Where a change that is carried over and others' changes are of the same path, they
// are merged, or in conflict.

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
	case there.SameXattrs(&base.Meta):
		out.Xattrs = want.Xattrs
	case !want.SameXattrs(&base.Meta) && !want.SameXattrs(&there.Meta):
		why = "its extended attributes were changed"
	}
	return out, why
}
