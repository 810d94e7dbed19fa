package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// Keep says what a Scanner keeps of the lower.
type Keep struct {
	Lower *lower.Lower
	// Ignored says of which files, and folders with all in them, names and
	// attributes are kept but no contents; nil for none.
	Ignored func(path string, dir bool) bool
	// Mounted is when the overlay was mounted, or before. What took a file's place in
	// the lower since may not be what the sandbox saw. Zero: nothing did.
	Mounted time.Time

	upper int // the scanner's root
}

// What is kept of the lower. Tests have less.
var (
	keptFile  int64 = 64 << 20  // bytes of one file's content
	keptTree  int64 = 256 << 20 // bytes of the contents of one deleted folder
	keptNames       = 200_000   // names in it
)

// extender makes the Base of a manifest out of that of the one before, by
// looking only at what the upper covers anew.
type extender struct {
	*Keep
	ctx     context.Context
	queue   *content.Queue
	hasher  content.Hasher
	options Options
	goesOn  bool     // it is the first scan that follows on another scanner's: nothing is mounted
	turned  bool     // what was known of a path isn't so any more
	hides   bool     // something isn't there though the upper doesn't hide it
	shut    []string // directories of the upper that must go on hiding the lower's: see closed
	data    int64    // what is left of keptTree
	entries int      // and of keptNames
}

func newExtender(ctx context.Context, k *Keep, b content.Bodies) *extender {
	x := &extender{Keep: k, ctx: ctx, queue: content.NewQueue(b)}
	x.hasher = content.Hasher{Queue: x.queue.Add, Limit: keptFile}
	return x
}

// extend is what the upper has, m, with its Base, and with what the sandbox doesn't see
// though the upper doesn't hide it. Last is the manifest before it, nil for none. What
// of the host's can't be read is Unsaved and fails nothing.
func (x *extender) extend(last, m *manifest.Manifest) (*manifest.Manifest, error) {
	var prev *manifest.Node
	old := &manifest.Base{Root: &manifest.Node{Entry: manifest.Entry{Kind: manifest.KindDir}, Sub: manifest.NewDir(nil, nil)}}
	if last != nil {
		prev = last.Root
		if last.Base != nil {
			old = last.Base
		}
	}
	low := x.Lower.Top()
	defer low.Close()
	root, seen, err := x.dir("", m.Root, prev, old.Root, low, false, true)
	if err == nil && x.options.Again {
		root, err = x.through("", seen, root, low)
	}
	if err == nil {
		err = x.queue.Flush(x.ctx)
	}
	if err != nil {
		return nil, err
	}
	out := &manifest.Manifest{Root: seen, Base: old}
	if root == old.Root && last != nil {
		return out, nil
	}
	out.Base = &manifest.Base{Root: root, Steps: old.Steps + 1, Turns: old.Turns}
	if x.turned {
		out.Base.Turns++
	}
	return out, nil
}

// dir extends base, a directory, by what up covers of it and prev didn't, and gives up
// as the sandbox sees it. Bare says that nothing in it was covered by the upper a moment
// ago, open that the lower shows through where up has nothing.
func (x *extender) dir(path string, up, prev, base *manifest.Node, low *lower.Folder, bare, open bool) (extended, seen *manifest.Node, err error) {
	var before *manifest.Dir
	if prev != nil && prev.Kind == manifest.KindDir && prev.Opaque == up.Opaque {
		before = prev.Sub
	}
	if up.Sub.Same(before) {
		return base, up, nil
	}
	gone, pages := unshared(before, up.Sub)
	fresh, others := map[string]*manifest.Node{}, map[string]*manifest.Node{}
	for _, n := range gone {
		if !open || up.Sub.Find(n.Name) != nil {
			continue
		}
		known := base.Sub.Find(n.Name)
		got, hidden, err := x.shows(manifest.Join(path, n.Name), known, low)
		if err != nil {
			return nil, nil, err
		}
		if got != known {
			fresh[n.Name] = got
		}
		x.hides = x.hides || hidden
		if hidden || x.goesOn && n.Kind == manifest.KindWhiteout {
			others[n.Name] = whiteout(n)
		}
	}
	for _, n := range pages {
		was := before.Find(n.Name)
		if was == n {
			continue
		}
		if err := x.ctx.Err(); err != nil {
			return nil, nil, err
		}
		old := base.Sub.Find(n.Name)
		got, as, err := x.name(manifest.Join(path, n.Name), n, was, old, base.Opaque, low, bare || before != nil && was == nil, open)
		if err != nil {
			return nil, nil, err
		}
		if got != nil && got != old {
			fresh[n.Name] = got
		}
		if as != n {
			others[n.Name] = again(was, as)
		}
	}
	if len(others) > 0 {
		up = &manifest.Node{Entry: up.Entry, Sub: amended(up.Sub, before, others)}
	}
	return base.With(fresh), up, nil
}

// name says what the lower had where the upper has n, was before, and what the sandbox
// sees there. Base is what is known of it; listed says that all names there are. What
// showed through a moment ago, bare, is what the lower has by now, whatever it had
// earlier, unless a roll back wrote it.
func (x *extender) name(path string, n, was, base *manifest.Node, listed bool, low *lower.Folder, bare, open bool) (extended, seen *manifest.Node, err error) {
	known := base
	if bare && !listed && !x.options.Back && base != nil && base.Kind != manifest.KindDir {
		base = nil
	}
	if base == nil && !listed {
		got, err := x.first(path, n, low)
		if err != nil {
			return nil, nil, err
		}
		x.turned = x.turned || known != nil && !same(&known.Entry, &got.Entry)
		base = got
		if got.Kind == manifest.KindDir {
			was = nil
		}
	}
	if open && !x.goesOn && base != nil && base.Kind == manifest.KindDir && uncovers(was, n) && !x.copied(path) {
		n, base = x.alone(path, n), whole(base) // before a mount it isn't the sandbox's doing, but laid out so
	}
	switch {
	case base == nil:
		return nil, n, nil
	case base.Kind != manifest.KindDir && n.Kind == manifest.KindDir:
		seen, err := x.closed(path, n, was, low)
		return base, seen, err
	case base.Kind != manifest.KindDir:
		base, err := x.late(path, n, base, low)
		return base, n, err
	case n.Kind == manifest.KindDir && !n.Opaque:
		sub := low.Sub(n.Name)
		defer sub.Close()
		return x.dir(path, n, was, base, sub, bare, open)
	}
	if !base.Opaque {
		x.data, x.entries = keptTree, keptNames
		if base, err = x.tree(path, base, low, false); err != nil {
			return nil, nil, err
		}
	}
	if n.Kind != manifest.KindDir {
		return base, n, nil
	}
	sub := low.Sub(n.Name)
	defer sub.Close()
	return x.dir(path, n, was, base, sub, bare, false)
}

// same says whether the lower has at a path what it had, as far as is seen without
// reading files.
func same(had, has *manifest.Entry) bool {
	return had.Kind == has.Kind && (had.Kind == manifest.KindDir && had.Mode == has.Mode || had.Size == has.Size && had.MTime == has.MTime && had.Mode == has.Mode && had.Target == has.Target)
}

// first looks at a name of the lower for the first time.
func (x *extender) first(path string, n *manifest.Node, low *lower.Folder) (*manifest.Node, error) {
	e, err := low.Find(x.ctx, n.Name)
	switch {
	case err != nil:
		if x.ctx.Err() != nil {
			return nil, x.ctx.Err()
		}
		return &manifest.Node{Entry: manifest.Entry{Name: n.Name, Kind: manifest.KindFile, Unsaved: lower.NotKept(err.Error())}}, nil
	case e == nil:
		return &manifest.Node{Entry: manifest.Entry{Name: n.Name, Kind: manifest.KindWhiteout}}, nil
	case x.replacedSince(path, n, e, low):
		return unseen(e), nil
	}
	return x.entry(path, e, low, n.Kind == manifest.KindFile && n.Size == e.Size, nil)
}

// entry keeps what the lower has under a name, a directory without what is in
// it. Hash says that a file's hash is wanted even if its content isn't kept;
// data is what may still be kept of contents, nil for no such bound.
func (x *extender) entry(path string, e *lower.Entry, low *lower.Folder, hash bool, data *int64) (*manifest.Node, error) {
	err := low.Complete(x.ctx, e)
	if err == nil && e.Kind == manifest.KindFile && e.Unsaved == "" {
		err = x.content(path, e, low, hash, data)
	}
	if err != nil {
		if x.ctx.Err() != nil {
			return nil, x.ctx.Err()
		}
		e.Unsaved = lower.NotKept(err.Error())
	}
	n := &manifest.Node{Entry: e.Entry}
	if n.Kind == manifest.KindDir {
		n.Sub = manifest.NewDir(nil, nil)
	}
	return n, nil
}

func (x *extender) content(path string, e *lower.Entry, low *lower.Folder, hash bool, data *int64) error {
	why := ""
	switch {
	case e.Size > keptFile:
		why = fmt.Sprintf("it is larger than %d MiB", keptFile>>20)
	case x.Ignored != nil && x.Ignored(path, false):
		why = "git ignores it"
	case data != nil && e.Size > *data:
		why = fmt.Sprintf("its folder had more than %d MiB", keptTree>>20)
	}
	if why == "" {
		if data != nil {
			*data -= e.Size
		}
		return low.Read(x.ctx, e, &x.hasher)
	}
	if hash && e.Size <= maxKeptHash {
		if err := low.Hash(x.ctx, e); err != nil {
			return err
		}
	}
	e.Unsaved = cmp.Or(e.Unsaved, lower.NotKept(why))
	return nil
}

// maxKeptHash is the length in bytes of the longest file that is read for its
// hash alone. Of a longer one nobody can tell whether the content is the same,
// so that it counts as changed; a sandbox that makes a file of the length of the
// host's largest mustn't hold up every scan.
const maxKeptHash = 1 << 30

// tree keeps all that a directory of the lower holds, base, of which some may be
// known. What is beyond the bounds is said at the directory that it is in. Moved says that
// one above took another's place since the mount.
func (x *extender) tree(path string, base *manifest.Node, up *lower.Folder, moved bool) (*manifest.Node, error) {
	low := up.Sub(base.Name)
	defer low.Close()
	if e, err := up.Find(x.ctx, base.Name); err == nil && e != nil {
		moved = moved || !x.Mounted.IsZero() && x.renamed(up, e)
	}
	out := &manifest.Node{Entry: base.Entry, Sub: base.Sub}
	out.Opaque = true
	names, err := low.Names(x.ctx)
	if why := manifest.Beyond(path); why != "" {
		names, err = nil, errors.New(why)
	}
	if err != nil && x.ctx.Err() == nil {
		out.Unsaved = lower.NotKept("what was in it can't be listed: " + err.Error())
		return out, nil
	}
	fresh := map[string]*manifest.Node{}
	for _, name := range names {
		if err := x.ctx.Err(); err != nil {
			return nil, err
		}
		n := base.Sub.Find(name)
		if n == nil {
			if x.entries--; x.entries < 0 {
				out.Unsaved = lower.NotKept(fmt.Sprintf("there were more than %d files", keptNames))
				break
			}
			e, err := low.Find(x.ctx, name)
			if err != nil || e == nil {
				continue // gone meanwhile
			}
			if !x.Mounted.IsZero() && e.Kind != manifest.KindDir && (moved || x.came(low, e)) {
				n = unseen(e)
			} else if n, err = x.entry(manifest.Join(path, name), e, low, false, &x.data); err != nil {
				return nil, err
			}
		}
		if n.Kind == manifest.KindDir && !n.Opaque {
			if n, err = x.tree(manifest.Join(path, name), n, low, moved); err != nil {
				return nil, err
			}
		}
		fresh[name] = n
	}
	got := out.With(fresh)
	return got, x.ctx.Err()
}

// late takes up the hash of a host's file that wasn't needed before: now the upper
// has one of that length in its place, and either may be the other's content.
func (x *extender) late(path string, n, base *manifest.Node, low *lower.Folder) (*manifest.Node, error) {
	if n.Kind != manifest.KindFile || base == nil || base.Kind != manifest.KindFile || !base.Hash.IsZero() || base.Size != n.Size {
		return base, nil
	}
	e, err := low.Find(x.ctx, n.Name)
	if err != nil || e == nil || e.Kind != manifest.KindFile || e.Size != base.Size || e.MTime != base.MTime {
		return base, x.ctx.Err()
	}
	return x.entry(path, e, low, true, nil)
}
