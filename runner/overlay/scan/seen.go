package scan

import (
	"reflect"
	"slices"

	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// A mount doesn't show all that happens to the lower below it, nor does the upper say all
// that the sandbox sees. A folder that the sandbox made is the upper's alone, even when
// the host gets one of that name; and where the lower has nothing a deletion leaves no
// whiteout, even when the lower had something. The manifest says what is seen.

// closed is a directory that the sandbox made where the lower had none. The mount goes
// on showing the upper's alone when the host gets one of that name, as by an apply. What
// goes from it then is hidden for a mount to come.
func (x *extender) closed(path string, n, was *manifest.Node, low *lower.Folder) (*manifest.Node, error) {
	out := &manifest.Node{Entry: n.Entry, Sub: n.Sub}
	out.Opaque = true
	if was == nil || was.Kind != manifest.KindDir || n.Sub.Same(was.Sub) {
		return again(was, out), nil
	}
	if e, err := low.Find(x.ctx, n.Name); err != nil || e == nil || e.Kind != manifest.KindDir {
		return again(was, out), x.ctx.Err()
	}
	sub := low.Sub(n.Name)
	defer sub.Close()
	var err error
	if out.Sub, err = x.vanished(path, n.Sub, was.Sub, sub); out.Sub != n.Sub && !n.Opaque {
		x.shut = append(x.shut, path)
	}
	return again(was, out), err
}

// uncovers says whether n is a directory that lets the lower's show, in place of what hid
// all of it.
func uncovers(was, n *manifest.Node) bool {
	return was != nil && (was.Kind != manifest.KindDir || was.Opaque) && n.Kind == manifest.KindDir && !n.Opaque
}

// alone is a directory that the sandbox made where something of the upper hid the lower's,
// but the mount found nothing in the lower any more: only for what is there a new one is
// marked as opaque. So the upper doesn't say that this one shows nothing of the lower. The
// manifest does, and from the next mount on the directory itself, should the lower have
// the lost one again.
func (x *extender) alone(path string, n *manifest.Node) *manifest.Node {
	x.shut = append(x.shut, path)
	out := &manifest.Node{Entry: n.Entry, Sub: n.Sub}
	out.Opaque = true
	return out
}

// whole is what is known of a directory that the lower had, as all of it: what the lower
// has there by now came later, and nobody deleted it.
func whole(base *manifest.Node) *manifest.Node {
	if base.Opaque {
		return base
	}
	out := &manifest.Node{Entry: base.Entry, Sub: base.Sub}
	out.Opaque = true
	return out
}

// vanished is a directory of the upper with whiteouts for what was there before and the
// lower has. What took the place of such hides all of it.
func (x *extender) vanished(path string, up, before *manifest.Dir, low *lower.Folder) (*manifest.Dir, error) {
	others := map[string]*manifest.Node{}
	gone, here := unshared(before, up)
	for _, n := range gone {
		if up.Find(n.Name) != nil {
			continue
		}
		if e, err := low.Find(x.ctx, n.Name); err == nil && e != nil {
			others[n.Name] = whiteout(n)
		}
	}
	for _, n := range here {
		was := before.Find(n.Name)
		hid := uncovers(was, n) && (!x.goesOn || was.Kind == manifest.KindWhiteout) // else it was laid out so
		if was == nil || n.Kind != manifest.KindDir || !hid && (was.Kind != manifest.KindDir || n.Sub.Same(was.Sub)) {
			continue
		}
		if e, err := low.Find(x.ctx, n.Name); was.Kind != manifest.KindWhiteout && (err != nil || e == nil || e.Kind != manifest.KindDir) {
			continue
		}
		if hid {
			others[n.Name] = x.alone(manifest.Join(path, n.Name), n)
			continue
		}
		sub := low.Sub(n.Name)
		below, err := x.vanished(manifest.Join(path, n.Name), n.Sub, was.Sub, sub)
		sub.Close()
		if err != nil {
			return nil, err
		}
		if below != n.Sub {
			others[n.Name] = again(was, &manifest.Node{Entry: n.Entry, Sub: below})
		}
	}
	if len(others) == 0 {
		return up, x.ctx.Err()
	}
	return amended(up, before, others), x.ctx.Err()
}

// shows says what the lower has where it shows through again, base is what it had. A
// sandbox that deletes what it has in place of a file which the host has no more leaves
// nothing that would hide it: hidden says that it isn't there all the same.
func (x *extender) shows(path string, base *manifest.Node, low *lower.Folder) (extended *manifest.Node, hidden bool, err error) {
	if base == nil {
		return nil, false, nil
	}
	e, err := low.Find(x.ctx, base.Name)
	if err != nil {
		return base, false, x.ctx.Err()
	}
	if e == nil {
		return base, base.Kind != manifest.KindWhiteout, nil
	}
	if err := low.Complete(x.ctx, e); err != nil || same(&base.Entry, &e.Entry) {
		return base, false, x.ctx.Err()
	}
	x.turned = true
	extended, err = x.entry(path, e, low, true, nil)
	return extended, false, err
}

// through says what the lower has by now where it shows through a directory of the
// upper, and something is known.
func (x *extender) through(path string, up, base *manifest.Node, low *lower.Folder) (*manifest.Node, error) {
	fresh := map[string]*manifest.Node{}
	for b := range base.Sub.All() {
		n := up.Sub.Find(b.Name)
		got := b
		var err error
		switch {
		case n == nil:
			var gone bool
			if got, gone, err = x.shows(manifest.Join(path, b.Name), b, low); gone {
				got, x.turned = whiteout(b), true
			}
		case n.Kind == manifest.KindDir && !n.Opaque && b.Kind == manifest.KindDir:
			sub := low.Sub(b.Name)
			got, err = x.through(manifest.Join(path, b.Name), n, b, sub)
			sub.Close()
		}
		if err != nil {
			return nil, err
		}
		if got != b {
			fresh[b.Name] = got
		}
	}
	return base.With(fresh), nil
}

// unshared lists the entries of pages that two directories don't share.
func unshared(before, up *manifest.Dir) (gone, here []*manifest.Node) {
	var pages []*manifest.Page
	if before != nil {
		pages = before.Pages
	}
	onlyBefore, onlyUp := manifest.UnsharedPages(pages, up.Pages)
	for _, p := range onlyBefore {
		gone = append(gone, p.Nodes...)
	}
	for _, p := range onlyUp {
		here = append(here, p.Nodes...)
	}
	return gone, here
}

// whiteout is a node that says that there is nothing where n was.
func whiteout(n *manifest.Node) *manifest.Node {
	if n.Kind == manifest.KindWhiteout {
		return n
	}
	return &manifest.Node{Entry: manifest.Entry{Name: n.Name, Kind: manifest.KindWhiteout}}
}

// again is a node, or the one of before if that is the same.
func again(was, is *manifest.Node) *manifest.Node {
	if was != nil && was.Sub == is.Sub && reflect.DeepEqual(was.Entry, is.Entry) {
		return was
	}
	return is
}

// amended is a directory of the upper with some names otherwise, which shares what it
// can with the one before.
func amended(up, before *manifest.Dir, others map[string]*manifest.Node) *manifest.Dir {
	return manifest.NewDir(slices.Collect(up.With(others).All()), before)
}
