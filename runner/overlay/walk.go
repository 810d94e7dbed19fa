package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
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
	s         *Scanner
	ctx       context.Context
	limits    Limits
	dirty     *dirtyTree // nil: look at everything
	mapped    map[string]bool
	mappedIDs map[FileID]bool
	noSFR     bool
	racy      bool
	racyFrom  Time
	lookOnly  bool // stop with errFound at the first difference

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
	if err == nil && c.node.sub.total > w.limits.Entries {
		err = fmt.Errorf("%w: more than %d", ErrTooMany, w.limits.Entries)
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
	case depth > w.limits.Depth: // its names aren't even listed
		e.Unsaved = fmt.Sprintf("more than %d directories below each other", w.limits.Depth)
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

// listing is the comparison of one directory with what was remembered.
type listing struct {
	w     *walk
	fd    int
	path  string
	prev  *dirCache
	old   *dir
	deep  bool       // look at everything below
	dirty *dirtyTree // else: what to look at below
	depth int

	at      int            // how many of prev.items came in the same order
	apart   bool           // items no longer equal prev.items[:at]
	items   []item         // once apart
	changed map[string]int // names whose node is new: index in items
	seen    []bool         // once apart: of prev.items
	index   map[string]int // of prev.items, once needed
	jobs    []fileJob
	subs    []subJob
	stated  int
}

// subJob is a directory that has to be looked at.
type subJob struct {
	name  string
	at    int // in items, or in prev.items as long as the listing isn't apart
	prior int // in prev.items; -1 for none
	dirty *dirtyTree
	found *dirCache // nil when it vanished
	fault string    // why it can't be looked at
}

// fileJob is a file that has to be read.
type fileJob struct {
	at   int // in items
	st   unix.Stat_t
	prev *item
}

func (l *listing) prior() []item {
	if l.prev == nil {
		return nil
	}
	return l.prev.items
}

// match finds what was remembered under name.
func (l *listing) match(name []byte) (int, bool) {
	prior := l.prior()
	for i := l.at; i < len(prior) && i < l.at+2; i++ {
		if prior[i].node.Name == string(name) {
			return i, true
		}
	}
	if len(prior) == 0 || l.old.find(string(name)) == nil {
		return 0, false
	}
	if l.index == nil {
		l.index = make(map[string]int, len(prior))
		for i := range prior {
			l.index[prior[i].node.Name] = i
		}
	}
	i, ok := l.index[string(name)]
	return i, ok
}

// part makes items a list of its own.
func (l *listing) part() error {
	if l.apart {
		return nil
	}
	if l.w.lookOnly {
		return errFound
	}
	prior := l.prior()
	l.apart, l.changed = true, map[string]int{}
	l.items = append(make([]item, 0, len(prior)+1), prior[:l.at]...)
	l.seen = make([]bool, len(prior))
	for i := range l.at {
		l.seen[i] = true
	}
	return nil
}

// keep takes prior item i over as it is.
func (l *listing) keep(i int) error {
	if !l.apart && i == l.at {
		l.at++
		return nil
	}
	if err := l.part(); err != nil {
		return err
	}
	l.items, l.seen[i], l.at = append(l.items, l.prev.items[i]), true, i+1
	return nil
}

// add puts an item in, for prior item i when that isn't negative.
func (l *listing) add(it item, i int) error {
	if err := l.part(); err != nil {
		return err
	}
	if i >= 0 {
		l.seen[i], l.at = true, i+1
		if prior := l.prev.items[i].node; it.node.equal(prior) {
			it.node = prior
		}
	}
	l.items = append(l.items, it)
	if i < 0 || it.node != l.prev.items[i].node {
		l.changed[it.node.Name] = len(l.items) - 1
	}
	return nil
}

// same says whether the directory holds what it held before.
func (l *listing) same() bool { return !l.apart && l.at == len(l.prior()) && l.prev != nil }

// list reads the directory.
func (l *listing) list() error {
	buf := listBufs.Get().(*[32 << 10]byte)
	err := eachName(l.fd, buf[:], l.name)
	listBufs.Put(buf)
	if err != nil {
		return err
	}
	if !l.apart && l.at < len(l.prior()) { // the last ones are gone
		if err := l.part(); err != nil {
			return err
		}
	}
	return l.finish()
}

// finish does what was put off while names were listed.
func (l *listing) finish() error {
	w := l.w
	w.mu.Lock()
	w.stats.Stated += l.stated
	w.mu.Unlock()
	if err := l.below(); err != nil {
		return err
	}
	if err := l.read(); err != nil {
		return err
	}
	return l.settle()
}

// only looks at those directories below that are on the way to dirty ones.
func (l *listing) only() error {
	for i := range l.prev.items {
		it := &l.prev.items[i]
		d := l.dirty.sub[it.node.Name]
		if d == nil || it.sub == nil {
			if err := l.keep(i); err != nil {
				return err
			}
			continue
		}
		if err := l.subdir(it.node.Name, i, d); err != nil {
			return err
		}
	}
	return l.finish()
}

// name looks at one name that the kernel listed.
func (l *listing) name(raw []byte) error {
	w := l.w
	if l.stated++; l.stated&63 == 0 {
		if w.count.Add(64) > int64(w.limits.Entries) {
			return fmt.Errorf("%w: more than %d", ErrTooMany, w.limits.Entries)
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
	}
	i, known := l.match(raw)
	var prior *item
	var name string
	if known {
		prior = &l.prev.items[i]
		name = prior.node.Name
	} else {
		i, name = -1, string(raw)
	}
	var st unix.Stat_t
	err := lstatRaw(l.fd, raw, &st)
	if err != nil && denied(err) {
		err = w.stat(l.fd, l.path, name, &st)
	}
	if err != nil {
		if gone(err) {
			return nil // what was remembered of it isn't seen, and so is dropped
		}
		if denied(err) {
			w.problem(join(l.path, name), "it can't be looked at: "+err.Error())
			return l.add(item{node: &node{Entry: Entry{Name: name, Kind: KindFile, Unsaved: "it can't be looked at"}}, distrust: true}, i)
		}
		return fmt.Errorf("cannot look at %q: %w", join(l.path, name), err)
	}
	kind := kindOf(&st)
	switch {
	case kind == KindWhiteout:
		if known && prior.node.Kind == KindWhiteout && prior.key.ino == 0 {
			return l.keep(i)
		}
		return l.add(item{node: &node{Entry: entryOf(name, &st)}}, i)
	case kind == KindDir:
		var d *dirtyTree
		if !l.deep {
			if d = l.dirty.sub[name]; d == nil && known && prior.sub != nil && prior.key.ino == st.Ino {
				d = &dirtyTree{} // nothing to look at below
			}
		}
		return l.subdir(name, i, d)
	}
	key := keyOf(&st)
	mapped := kind == KindFile && w.isMapped(l.path, name, &st)
	if mapped {
		if mapped = !w.writeBack(l.fd, l.path, name, &st); !mapped {
			key = keyOf(&st)
		}
	}
	if known && !mapped && !prior.distrust && prior.key == key {
		return l.keep(i)
	}
	if err := l.part(); err != nil {
		return err
	}
	it := item{node: &node{Entry: entryOf(name, &st)}, key: key, distrust: mapped || w.isRacy(st.Ctim)}
	if kind == KindSymlink {
		target, err := w.readlink(l.fd, l.path, name)
		if gone(err) || errors.Is(err, unix.EINVAL) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read link %q: %w", join(l.path, name), err)
		}
		w.opened()
		it.node.Target = target
	}
	if kind == KindFile {
		// Added with an empty content now, to keep the order; read later.
		job := fileJob{at: len(l.items), st: st, prev: prior}
		if known {
			l.seen[i], l.at = true, i+1
		}
		l.items = append(l.items, it)
		l.changed[name] = job.at
		l.jobs = append(l.jobs, job)
		return nil
	}
	return l.add(it, i)
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

// subdir puts off the directory of that name, which was prior item i unless
// that is negative, and keeps its place in the order.
func (l *listing) subdir(name string, i int, dirty *dirtyTree) error {
	j := subJob{name: name, at: l.at, prior: i, dirty: dirty}
	if i >= 0 && l.prev.items[i].sub == nil {
		j.prior = -1 // it was something else
		if err := l.part(); err != nil {
			return err
		}
		l.seen[i], l.at = true, i+1
	}
	if j.prior >= 0 {
		if err := l.keep(i); err != nil {
			return err
		}
	} else if err := l.part(); err != nil {
		return err
	} else {
		l.items = append(l.items, item{})
	}
	if l.apart {
		j.at = len(l.items) - 1
	}
	l.subs = append(l.subs, j)
	return nil
}

// below looks at the directories that were put off.
func (l *listing) below() error {
	if len(l.subs) == 0 {
		return nil
	}
	err := l.w.parallel(len(l.subs), func(_ context.Context, k int) error { return l.descend(&l.subs[k]) })
	if err != nil {
		return err
	}
	for k := range l.subs {
		j := &l.subs[k]
		if j.prior >= 0 && j.found == l.prev.items[j.prior].sub {
			continue
		}
		if err := l.part(); err != nil {
			return err
		}
		it := item{}
		switch c := j.found; {
		case c != nil:
			it = item{node: c.node, key: statKey{ino: c.key.ino}, sub: c}
		case j.fault != "":
			it = item{node: &node{Entry: Entry{Name: j.name, Kind: KindDir, Unsaved: j.fault}, sub: newDir(nil, nil)}, distrust: true}
		}
		l.items[j.at] = it
		if it.node != nil {
			l.changed[j.name] = j.at
		}
		if j.prior >= 0 && it.node == l.prev.items[j.prior].node {
			delete(l.changed, j.name)
		}
	}
	return nil
}

// descend walks one directory that was put off.
func (l *listing) descend(j *subJob) error {
	w := l.w
	path := join(l.path, j.name)
	fd, err := w.open(l.fd, l.path, j.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if gone(err) {
		return nil
	}
	if denied(err) {
		j.fault = "it can't be opened"
		w.problem(path, "it can't be opened: "+err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open directory %q: %w", path, err)
	}
	defer unix.Close(fd)
	var prev *dirCache
	if j.prior >= 0 {
		prev = l.prev.items[j.prior].sub
	}
	j.found, err = w.dir(fd, path, j.name, prev, j.dirty, l.depth+1)
	if gone(err) {
		j.found, err = nil, nil
	}
	return err
}

// merged is the sorted list of nodes after what changed.
func (l *listing) merged() []*node {
	if l.old == nil || len(l.changed)*4 > len(l.items) {
		nodes := make([]*node, len(l.items))
		for i := range l.items {
			nodes[i] = l.items[i].node
		}
		slices.SortStableFunc(nodes, func(a, b *node) int { return strings.Compare(a.Name, b.Name) })
		return slices.CompactFunc(nodes, func(a, b *node) bool { return a.Name == b.Name })
	}
	gone := map[string]bool{}
	for i, ok := range l.seen {
		if !ok {
			gone[l.prev.items[i].node.Name] = true
		}
	}
	fresh := make([]*node, 0, len(l.changed))
	for name, i := range l.changed {
		fresh = append(fresh, l.items[i].node)
		gone[name] = true
	}
	slices.SortFunc(fresh, func(a, b *node) int { return strings.Compare(a.Name, b.Name) })
	nodes := make([]*node, 0, len(l.items))
	for n := range l.old.all() {
		if len(gone) > 0 && gone[n.Name] {
			continue
		}
		for len(fresh) > 0 && fresh[0].Name < n.Name {
			nodes, fresh = append(nodes, fresh[0]), fresh[1:]
		}
		nodes = append(nodes, n)
	}
	return append(nodes, fresh...)
}

// OpenUpper opens what an Opener is asked for: the entry at path below the
// directory root, which may be an O_PATH descriptor, without following links
// or blocking. Files and directories come open for reading, links, FIFOs and
// sockets as O_PATH descriptors. A path may also ask for an inode's extended
// attributes, which come as a file of this package's own form. It is for the
// process that may read what the scanner can't.
func OpenUpper(root *os.File, path string) (*os.File, error) {
	path, attrs := strings.CutSuffix(path, attrsSuffix)
	if !validPath(path) {
		return nil, fmt.Errorf("cannot open %q: %w", path, unix.EINVAL)
	}
	fd, err := openEntry(int(root.Fd()), path)
	if err != nil {
		return nil, fmt.Errorf("cannot open %q: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	if !attrs {
		return f, nil
	}
	defer f.Close()
	a, err := sendAttrs(fd)
	if err != nil {
		return nil, fmt.Errorf("cannot read the attributes of %q: %w", path, err)
	}
	return a, nil
}

func openEntry(root int, path string) (int, error) {
	if path == "" {
		return openDirBeneath(root, "")
	}
	dirPath, name := split(path)
	dirfd := root
	if dirPath != "" {
		fd, err := openDirBeneath(root, dirPath)
		if err != nil {
			return -1, err
		}
		defer unix.Close(fd)
		dirfd = fd
	}
	var st unix.Stat_t
	if err := lstatAt(dirfd, name, &st); err != nil {
		return -1, err
	}
	flags := uint64(unix.O_PATH)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	case unix.S_IFDIR:
		flags = unix.O_RDONLY | unix.O_DIRECTORY
	}
	return beneath(dirfd, name, flags)
}
