package scan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// dirCache is what a scanner remembers of a directory of the upper. It is
// immutable once the scan that made it ended.
type dirCache struct {
	node     *manifest.Node
	key      inode.Key
	distrust bool   // look again, whatever key says
	items    []item // in the order in which the kernel lists them

	// Its names, or those of some directories below, have to be looked at by
	// every scan: see Options.Dirty.
	restless, below bool
}

// settle finds out whether the directory is restless, which its items say.
func (c *dirCache) settle() {
	c.restless, c.below = c.distrust, false
	for i := range c.items {
		it := &c.items[i]
		c.restless = c.restless || it.distrust || it.node.Links != 0
		c.below = c.below || it.sub != nil && (it.sub.restless || it.sub.below)
	}
}

// item is what a scanner remembers of one name.
type item struct {
	node     *manifest.Node
	key      inode.Key
	distrust bool
	sub      *dirCache     // of directories
	chunks   *content.List // of large files
}

// walk is one pass over an upper.
type walk struct {
	s        *Scanner
	ctx      context.Context
	dirty    *manifest.Paths // nil: look at everything
	mapped   map[string]bool
	noSFR    bool
	racy     bool
	racyFrom manifest.Time
	lookOnly bool        // stop with errFound at the first difference
	linked   atomic.Bool // a file has more names than the last scan found

	// spare holds a token for each goroutine that may still be started; they
	// all end before the call that started them returns.
	spare chan struct{}
	Count atomic.Int64 // names listed

	mu    sync.Mutex
	queue *content.Queue // guarded by mu
	stats Stats          // guarded by mu
}

// listBufs are for getdents64(2).
var listBufs = sync.Pool{New: func() any { return new([32 << 10]byte) }}

var (
	errFound    = errors.New("something moved")
	errVanished = errors.New("it vanished")
)

// parallel calls f for 0 to n-1, with as many further goroutines as are to
// spare. It returns the first error that says more than that another failed.
func (w *walk) parallel(n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var next atomic.Int64
	var mu sync.Mutex
	var first error // guarded by mu
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			err := ctx.Err()
			if err == nil {
				err = f(ctx, i)
			}
			if err != nil {
				mu.Lock()
				if first == nil || errors.Is(first, context.Canceled) {
					first = err
				}
				mu.Unlock()
				cancel()
				return
			}
		}
	}
	var wg sync.WaitGroup
spread:
	for range n - 1 {
		select {
		case <-w.spare:
			wg.Go(func() {
				work()
				w.spare <- struct{}{}
			})
		default:
			break spread
		}
	}
	work()
	wg.Wait()
	return first
}

func (w *walk) problem(path, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Problems = append(w.stats.Problems, manifest.Problem{Path: path, Text: text})
}

// top walks the whole upper.
func (w *walk) top(prev *dirCache) (*dirCache, error) {
	fd, err := w.s.opener.OpenAt(w.ctx, w.s.root, ".", "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	c, err := w.dir(fd, "", "", prev, w.dirty)
	if err == nil && c.node.Sub.Total > maxScanned {
		err = fmt.Errorf("%w: more than %d", ErrTooMany, maxScanned)
	}
	return c, err
}

// isRacy says whether an inode may be written again without its time moving.
func (w *walk) isRacy(ctime unix.Timespec) bool {
	return w.racy && !manifest.TimeOf(ctime).Before(w.racyFrom)
}

// dir looks at the open directory fd. dirty is nil where everything is to be
// looked at. It returns prev itself when nothing moved.
func (w *walk) dir(fd int, path, name string, prev *dirCache, dirty *manifest.Paths) (*dirCache, error) {
	var st unix.Stat_t
	if err := inode.Fstat(fd, &st); err != nil {
		return nil, err
	}
	next := &dirCache{key: inode.KeyOf(&st), distrust: w.isRacy(st.Ctim)}
	if prev != nil && prev.key.Ino != st.Ino { // another directory has come here
		dirty = nil
	}
	e, err := w.dirEntry(fd, path, name, &st, prev)
	if err != nil {
		return nil, err
	}
	var old *manifest.Dir
	if prev != nil {
		old = prev.node.Sub
	}
	l := &listing{w: w, fd: fd, path: path, prev: prev, old: old}
	switch {
	case e.Unsaved != "":
		next.distrust = true
	case manifest.Beyond(path) != "": // its names aren't even listed
		e.Unsaved = manifest.Beyond(path)
		w.problem(path, e.Unsaved)
	case dirty == nil || dirty.Here || prev == nil || prev.restless:
		if dirty == nil {
			l.deep = true
		}
		l.dirty = dirty
		err = l.list()
	default:
		l.dirty = dirty
		err = l.only()
	}
	if err != nil {
		return nil, err
	}
	next.items, next.node = l.items, &manifest.Node{Entry: e}
	if l.same() {
		next.node.Sub = old
		if prev != nil {
			next.items = prev.items
		}
	}
	if next.node.Sub == nil {
		next.node.Sub = manifest.NewDir(l.merged(), old)
	}
	if prev != nil && next.node.Equal(prev.node) {
		next.node = prev.node
		if next.key == prev.key && next.distrust == prev.distrust && l.same() {
			return prev, nil
		}
	}
	next.settle()
	if w.lookOnly && (prev == nil || next.key != prev.key) {
		return nil, errFound
	}
	return next, nil
}

// dirEntry is the directory's own entry.
func (w *walk) dirEntry(fd int, path, name string, st *unix.Stat_t, prev *dirCache) (manifest.Entry, error) {
	e := inode.EntryOf(name, st)
	if prev != nil && !prev.distrust && prev.key == inode.KeyOf(st) {
		e.Xattrs, e.Opaque = prev.node.Xattrs, prev.node.Opaque
		return e, nil
	}
	if w.lookOnly {
		return e, errFound
	}
	a, err := inode.ReadAttrs(fd, w.s.opener.Attrs(w.ctx, path))
	if errors.Is(err, inode.ErrXattrs) {
		w.problem(path, err.Error())
		err = nil
	}
	if inode.Denied(err) {
		e.Unsaved = "its attributes can't be read"
		w.problem(path, e.Unsaved+": "+err.Error())
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("cannot read attributes of %q: %w", path, err)
	}
	if a.Foreign != "" {
		w.problem(path, "it has "+a.Foreign+", which this mount can't have made")
	}
	e.Xattrs, e.Opaque = a.Kept, a.Opaque
	return e, nil
}
