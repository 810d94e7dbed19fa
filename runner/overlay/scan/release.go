package scan

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// Release takes out of the upper what the lower has as well, so that an overlay
// which is mounted later shows the lower's own there, and what becomes of it.
// That is files with the same bytes, mode and attributes, links to the same,
// whiteouts of what the lower hasn't, and folders that hold nothing then. It gives
// their paths. From then on the Base has what the lower has there now.
//
// A directory that the sandbox made itself, and that the lower has as well by now,
// shows the lower's besides from then on; what went from it, and from elsewhere without
// a whiteout, gets one.
//
// Of a folder named .git, which is of one piece, goes only what drop says, whatever the
// lower has, and nothing below a folder that hides the lower's or that the sandbox made.
// Drop is asked of other files, too, that the lower has otherwise than the upper. A nil drop
// says nothing. The overlay must not be mounted, nor may anyone write to the upper. The last Scan says what is there. Keep is called with the
// state that will be left before anything goes, and an error of its keeps
// everything: who finds more in the upper after a crash finds what makes no
// difference.
func (s *Scanner) Release(ctx context.Context, drop Drop, keep func(left *manifest.Manifest) error) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.Base == nil || s.keep == nil || s.last.Root.Opaque {
		return nil, nil
	}
	r := &releaser{ctx: ctx, found: s.found, drop: drop}
	low := s.keep.Lower.Top()
	defer low.Close()
	up, base, err := r.dir("", s.last.Root, s.last.Base.Root, low)
	if err == nil && (len(r.list) > 0 || base != s.last.Base.Root) {
		left := &manifest.Manifest{Root: up, Base: &manifest.Base{Root: base, Steps: s.last.Base.Steps + 1, Turns: s.last.Base.Turns + 1}}
		if err = keep(left); err == nil {
			s.last, s.found = left, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot let go of what the project has: %w", err)
	}
	for _, path := range r.shut {
		s.setOpaque(path)
	}
	for _, e := range r.hidden {
		s.hide(e)
	}
	var gone []string
	for _, e := range r.list {
		if s.remove(e) {
			gone = append(gone, e.path)
		}
	}
	return gone, nil
}

// Drop says whether something of the upper goes though the lower hasn't got it; moved, whether
// that has something else there than when it was first seen.
type Drop func(path string, e *manifest.Entry, moved bool) bool

// releaser lists what can be released.
type releaser struct {
	ctx    context.Context
	found  *manifest.Node // the upper as it is
	drop   Drop
	list   []released // what is in a folder before it
	hidden []string   // what has to have a whiteout
	shut   []string   // directories that have to hide the lower's
}

type released struct {
	path string
	*manifest.Node
}

// dir says what is left of a directory of the upper, and what the base has there
// then.
func (r *releaser) dir(path string, up, base *manifest.Node, low *lower.Folder) (left, known *manifest.Node, err error) {
	fresh := map[string]*manifest.Node{}
	var stays []*manifest.Node
	for n := range up.Sub.All() {
		if err := r.ctx.Err(); err != nil {
			return nil, nil, err
		}
		was := base.Sub.Find(n.Name)
		if git := strings.EqualFold(n.Name, ".git"); git || was == nil && base != unknown {
			if git && base == unknown && n.Kind == manifest.KindDir {
				r.shut = append(r.shut, manifest.Join(path, n.Name)) // else it were of two pieces
			}
			rest, now, err := r.history(manifest.Join(path, n.Name), n, was, low)
			if err != nil {
				return nil, nil, err
			}
			if now != was {
				fresh[n.Name] = now
			}
			stays = append(stays, rest)
			continue
		}
		rest, now, err := r.name(manifest.Join(path, n.Name), n, was, low)
		if err != nil {
			return nil, nil, err
		}
		if now != was {
			fresh[n.Name] = now
		}
		if rest != nil {
			stays = append(stays, rest)
		} else {
			r.list = append(r.list, released{manifest.Join(path, n.Name), n})
		}
	}
	return &manifest.Node{Entry: up.Entry, Sub: manifest.NewDir(stays, up.Sub)}, base.With(fresh), nil
}

// history drops files of a repository's own folder.
func (r *releaser) history(path string, n, was *manifest.Node, low *lower.Folder) (left, known *manifest.Node, err error) {
	if r.drop == nil || n.Kind != manifest.KindDir || n.Opaque || was == nil || was.Kind != n.Kind {
		return n, was, nil
	}
	sub := low.Sub(n.Name)
	defer sub.Close()
	fresh := map[string]*manifest.Node{}
	var stays []*manifest.Node
	for c := range n.Sub.All() {
		at, old := manifest.Join(path, c.Name), was.Sub.Find(c.Name)
		if c.Kind == manifest.KindDir {
			rest, now, err := r.shared(at, c, old, sub)
			if err != nil {
				return nil, nil, err
			}
			if now != old {
				fresh[c.Name] = now
			}
			if rest != nil {
				stays = append(stays, rest)
			} else {
				r.list = append(r.list, released{at, c})
			}
			continue
		}
		if !r.drop(at, &c.Entry, true) {
			stays = append(stays, c)
			continue
		}
		e, err := sub.Find(r.ctx, c.Name)
		if err == nil && e != nil {
			err = sub.Complete(r.ctx, e)
		}
		if err != nil {
			return nil, nil, err
		}
		if fresh[c.Name] = whiteout(c); e != nil {
			fresh[c.Name] = &manifest.Node{Entry: e.Entry}
		}
		r.list = append(r.list, released{at, c})
	}
	if len(fresh) == 0 {
		return n, was, nil
	}
	return &manifest.Node{Entry: n.Entry, Sub: manifest.NewDir(stays, n.Sub)}, was.With(fresh), nil
}

// shared is history for a folder in a repository's own, which the lower may have by now, too:
// objects whose names begin alike are in one folder, whoever made them.
func (r *releaser) shared(path string, n, was *manifest.Node, low *lower.Folder) (left, known *manifest.Node, err error) {
	if was == nil || was.Kind == manifest.KindWhiteout {
		e, err := low.Find(r.ctx, n.Name)
		if err == nil && e != nil {
			err = low.Complete(r.ctx, e)
		}
		if err != nil {
			return nil, nil, err
		}
		if up := (&manifest.Manifest{Root: r.found}).Lookup(path); e != nil && e.Kind == n.Kind && up != nil && !up.Opaque {
			return r.own(path, n, e, low)
		}
	}
	return r.history(path, n, was, low)
}

// unknown stands for what the Base has in a directory that the sandbox made.
var unknown = &manifest.Node{Entry: manifest.Entry{Kind: manifest.KindDir}, Sub: manifest.NewDir(nil, nil)}

// own is name for a directory that the sandbox made and the lower has by now.
func (r *releaser) own(path string, n *manifest.Node, e *lower.Entry, low *lower.Folder) (left, known *manifest.Node, err error) {
	sub := low.Sub(n.Name)
	defer sub.Close()
	if left, known, err = r.dir(path, n, unknown, sub); err != nil {
		return nil, nil, err
	}
	left.Opaque = false
	known = &manifest.Node{Entry: e.Entry, Sub: known.Sub}
	if left.Sub.Count == 0 && e.Mode == n.Mode && e.SameXattrs(&n.Meta) {
		left = nil
	}
	return left, known, nil
}

// stays says what the Base has where something stays in the upper: in what the sandbox
// made there was nothing when it was first seen, whatever the host has by now.
func (r *releaser) stays(path string, n, base *manifest.Node) (left, known *manifest.Node) {
	if n.Kind == manifest.KindWhiteout {
		r.hidden = append(r.hidden, path)
	}
	if base == nil {
		base = &manifest.Node{Entry: manifest.Entry{Name: n.Name, Kind: manifest.KindWhiteout}}
	}
	return n, base
}

// name is dir for what the upper has under a name; left is nil when it goes.
func (r *releaser) name(path string, n, base *manifest.Node, low *lower.Folder) (left, known *manifest.Node, err error) {
	e, err := low.Find(r.ctx, n.Name)
	if err == nil && e != nil {
		err = low.Complete(r.ctx, e)
	}
	if err != nil { // what can't be read isn't the same
		return n, base, r.ctx.Err()
	}
	switch {
	case e == nil && n.Kind == manifest.KindWhiteout:
		return nil, whiteout(n), nil
	case e == nil && base == nil: // in what the sandbox made, and its own
		left = &manifest.Node{Entry: n.Entry, Sub: n.Sub}
		left.Opaque = n.Kind == manifest.KindDir
		return left, &manifest.Node{Entry: manifest.Entry{Name: n.Name, Kind: manifest.KindWhiteout}}, nil
	case r.superseded(path, n, base, e, low):
		if e == nil {
			return nil, whiteout(n), nil
		}
		return nil, &manifest.Node{Entry: e.Entry}, nil
	case e == nil:
		return n, base, nil
	}
	if n.Kind == manifest.KindDir && e.Kind == n.Kind && (base == nil || base.Kind == manifest.KindWhiteout) {
		if up := (&manifest.Manifest{Root: r.found}).Lookup(path); up == nil || up.Opaque { // something is hidden there
			left, known = r.stays(path, n, base)
			return left, known, nil
		}
		return r.own(path, n, e, low)
	}
	same := e.Kind == n.Kind && e.Unsaved == "" && n.Unsaved == "" && e.SameXattrs(&n.Meta)
	switch {
	case n.Kind == manifest.KindDir && e.Kind == n.Kind && !n.Opaque && base != nil && base.Kind == n.Kind:
		sub := low.Sub(n.Name)
		defer sub.Close()
		left, known, err := r.dir(path, n, base, sub)
		if err == nil && same && e.Mode == n.Mode && left.Sub.Count == 0 {
			left, known = nil, &manifest.Node{Entry: e.Entry, Sub: known.Sub}
			known.Opaque = base.Opaque
		}
		return left, known, err
	case !same:
		left, known = r.stays(path, n, base)
		return left, known, nil
	case n.Kind == manifest.KindSymlink:
		same = e.Target == n.Target
	case n.Kind == manifest.KindFile && e.Mode == n.Mode && e.Size == n.Size && e.Size <= maxKeptHash:
		err := low.Hash(r.ctx, e)
		same = err == nil && e.Unsaved == "" && e.Hash == n.Hash
	default:
		same = false
	}
	if !same {
		if err := r.ctx.Err(); err != nil {
			return nil, nil, err
		}
		left, known = r.stays(path, n, base)
		return left, known, nil
	}
	return nil, &manifest.Node{Entry: e.Entry}, nil
}

// hide puts a whiteout where the upper has nothing: a device with number 0, which
// everyone may make (mknod(2), Linux 5.8).
func (s *Scanner) hide(path string) {
	dir, name := manifest.Split(path)
	dir = cmp.Or(dir, ".")
	fd, err := inode.Beneath(s.root, dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	defer lend(fd)()
	_ = unix.Mknodat(fd, name, unix.S_IFCHR, 0) // it is there already, mostly
}

// lend lets the caller write to a directory of its own until what it gives is called. fd
// may be an O_PATH descriptor, since not even opening it may be allowed.
func lend(fd int) (end func()) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o300 == 0o300 {
		return func() {}
	}
	_ = unix.Chmod(inode.FDPath(fd), st.Mode&0o7777|0o300)
	return func() { _ = unix.Chmod(inode.FDPath(fd), st.Mode&0o7777) }
}

// remove takes something out of the upper, unless it isn't what was scanned any
// more. What can't be taken out stays, and makes no difference.
func (s *Scanner) remove(e released) bool {
	at, name := s.root, e.path
	if dir, last := manifest.Split(e.path); dir != "" {
		fd, err := inode.Beneath(s.root, dir, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return false
		}
		defer unix.Close(fd)
		at, name = fd, last
	}
	if e.Kind == manifest.KindDir {
		return unix.Unlinkat(at, name, unix.AT_REMOVEDIR) == nil
	}
	var st unix.Stat_t
	if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	if e.Kind != manifest.KindWhiteout && (inode.KindOf(&st) != e.Kind || manifest.TimeOf(st.Mtim) != e.MTime || e.Kind == manifest.KindFile && st.Size != e.Size) {
		return false
	}
	return unix.Unlinkat(at, name, 0) == nil
}

// superseded says whether what the upper has goes for what the lower has become, where neither
// is, or was, a folder. It stays where the lower's can't be read: the base would lack its content.
func (r *releaser) superseded(path string, n, base *manifest.Node, e *lower.Entry, low *lower.Folder) bool {
	folder := n.Kind == manifest.KindDir || e != nil && e.Kind == manifest.KindDir || base != nil && base.Kind == manifest.KindDir
	if r.drop == nil || folder {
		return false
	}
	if e != nil && e.Kind == manifest.KindFile && (e.Size > maxKeptHash || low.Hash(r.ctx, e) != nil || e.Unsaved != "") {
		return false
	}
	return r.drop(path, &n.Entry, became(base, e))
}

// became says whether the lower has something else by now than when it was first seen.
func became(base *manifest.Node, e *lower.Entry) bool {
	if base == nil {
		base = &manifest.Node{Entry: manifest.Entry{Kind: manifest.KindWhiteout}}
	}
	if e == nil {
		return base.Kind != manifest.KindWhiteout
	}
	is, was := &e.Entry, &base.Entry
	return is.Kind != was.Kind || is.Mode != was.Mode || is.Size != was.Size || is.Target != was.Target || is.Hash != was.Hash
}
