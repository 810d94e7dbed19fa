package overlay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// dirCache is what a scanner remembers of a directory of the upper. It is
// immutable once the scan that made it ended.
type dirCache struct {
	node     *node
	key      statKey
	distrust bool   // look again, whatever key says
	items    []item // in the order in which the kernel lists them
}

// item is what a scanner remembers of one name.
type item struct {
	node     *node
	key      statKey
	distrust bool
	sub      *dirCache  // of directories
	chunks   *chunkList // of large files
}

// walk is one pass over an upper.
type walk struct {
	s        *Scanner
	ctx      context.Context
	dirty    *dirtyTree // nil: look at everything
	mapped   map[string]bool
	noSFR    bool
	racy     bool
	racyFrom Time
	lookOnly bool // stop with errFound at the first difference

	// spare holds a token for each goroutine that may still be started; they
	// all end before the call that started them returns.
	spare chan struct{}
	count atomic.Int64 // names listed

	mu    sync.Mutex
	queue *batch // guarded by mu
	stats Stats  // guarded by mu
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
	w.stats.Problems = append(w.stats.Problems, Problem{path, text})
}

func (w *walk) unstable(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Unstable = append(w.stats.Unstable, path)
}

// open opens one name below dirfd, with the opener's help where the caller's
// own rights don't reach.
func (w *walk) open(dirfd int, dirPath, name string, flags int) (int, error) {
	fd, err := openAt(dirfd, name, flags)
	if err == nil || !denied(err) || w.s.opener == nil {
		return fd, err
	}
	path := dirPath
	if name != "." {
		path = join(dirPath, name)
	}
	f, err := w.s.opener.ask(w.ctx, path)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// stat looks at one name below dirfd without following it.
func (w *walk) stat(dirfd int, dirPath, name string, st *unix.Stat_t) error {
	err := lstatAt(dirfd, name, st)
	if err == nil || !denied(err) || w.s.opener == nil {
		return err
	}
	f, err := w.s.opener.ask(w.ctx, join(dirPath, name))
	if err != nil {
		return err
	}
	defer f.Close()
	return fstat(int(f.Fd()), st)
}

// top walks the whole upper.
func (w *walk) top(prev *dirCache) (*dirCache, error) {
	fd, err := w.open(w.s.root, "", ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	c, err := w.dir(fd, "", "", prev, w.dirty, 0)
	if err == nil && c.node.sub.total > maxScanned {
		err = fmt.Errorf("%w: more than %d", ErrTooMany, maxScanned)
	}
	return c, err
}

// isRacy says whether an inode may be written again without its time moving.
func (w *walk) isRacy(ctime unix.Timespec) bool {
	return w.racy && !timeOf(ctime).Before(w.racyFrom)
}

// dir looks at the open directory fd. dirty is nil where everything is to be
// looked at. It returns prev itself when nothing moved.
func (w *walk) dir(fd int, path, name string, prev *dirCache, dirty *dirtyTree, depth int) (*dirCache, error) {
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return nil, err
	}
	next := &dirCache{key: keyOf(&st), distrust: w.isRacy(st.Ctim)}
	e, err := w.dirEntry(fd, path, name, &st, prev)
	if err != nil {
		return nil, err
	}
	var old *dir
	if prev != nil {
		old = prev.node.sub
	}
	l := &listing{w: w, fd: fd, path: path, prev: prev, old: old, depth: depth}
	switch {
	case e.Unsaved != "":
		next.distrust = true
	case depth > maxScanDepth: // its names aren't even listed
		e.Unsaved = fmt.Sprintf("more than %d directories below each other", maxScanDepth)
		w.problem(path, e.Unsaved)
	case dirty == nil || dirty.here || prev == nil:
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
	next.items, next.node = l.items, &node{Entry: e}
	if l.same() {
		next.node.sub = old
		if prev != nil {
			next.items = prev.items
		}
	}
	if next.node.sub == nil {
		next.node.sub = newDir(l.merged(), old)
	}
	if prev != nil && next.node.equal(prev.node) {
		next.node = prev.node
		if next.key == prev.key && next.distrust == prev.distrust && l.same() {
			return prev, nil
		}
	}
	if w.lookOnly && (prev == nil || next.key != prev.key) {
		return nil, errFound
	}
	return next, nil
}

// dirEntry is the directory's own entry.
func (w *walk) dirEntry(fd int, path, name string, st *unix.Stat_t, prev *dirCache) (Entry, error) {
	e := entryOf(name, st)
	if prev != nil && !prev.distrust && prev.key == keyOf(st) {
		e.Xattrs, e.Opaque = prev.node.Xattrs, prev.node.Opaque
		return e, nil
	}
	if w.lookOnly {
		return e, errFound
	}
	a, err := readAttrs(fd, w.s.opener.attrs(w.ctx, path))
	if errors.Is(err, errXattrs) {
		w.problem(path, err.Error())
		err = nil
	}
	if denied(err) {
		e.Unsaved = "its attributes can't be read"
		w.problem(path, e.Unsaved+": "+err.Error())
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("cannot read attributes of %q: %w", path, err)
	}
	if a.foreign != "" {
		w.problem(path, "it has "+a.foreign+", which this mount can't have made")
	}
	e.Xattrs, e.Opaque = a.kept, a.opaque
	return e, nil
}

func (w *walk) readlink(dirfd int, dirPath, name string) (string, error) {
	target, err := readlinkAt(dirfd, name)
	if err == nil || !denied(err) || w.s.opener == nil {
		return target, err
	}
	f, err := w.s.opener.ask(w.ctx, join(dirPath, name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readlinkAt(int(f.Fd()), "")
}
