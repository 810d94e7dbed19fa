package scan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// listing is the comparison of one directory with what was remembered.
type listing struct {
	w     *walk
	fd    int
	path  string
	prev  *dirCache
	old   *manifest.Dir
	deep  bool            // look at everything below
	dirty *manifest.Paths // else: what to look at below

	at     int            // how many of prev.items came in the same order
	apart  bool           // items no longer equal prev.items[:at]
	items  []item         // once apart
	index  map[string]int // of prev.items, once needed
	jobs   []fileJob
	subs   []subJob
	stated int
}

// subJob is a directory that has to be looked at.
type subJob struct {
	name  string
	at    int // in items, or in prev.items as long as the listing isn't apart
	prior int // in prev.items; -1 for none
	dirty *manifest.Paths
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
	if len(prior) == 0 || l.old.Find(string(name)) == nil {
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
	l.apart = true
	l.items = append(make([]item, 0, len(prior)+1), prior[:l.at]...)
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
	l.items, l.at = append(l.items, l.prev.items[i]), i+1
	return nil
}

// add puts an item in, for prior item i when that isn't negative.
func (l *listing) add(it item, i int) error {
	if err := l.part(); err != nil {
		return err
	}
	if i >= 0 {
		l.at = i + 1
		if prior := l.prev.items[i].node; it.node.Equal(prior) {
			it.node = prior
		}
	}
	l.items = append(l.items, it)
	return nil
}

// same says whether the directory holds what it held before.
func (l *listing) same() bool { return !l.apart && l.at == len(l.prior()) && l.prev != nil }

// list reads the directory.
func (l *listing) list() error {
	buf := listBufs.Get().(*[32 << 10]byte)
	err := inode.EachName(l.fd, buf[:], l.name)
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
	if err := l.below(); err != nil {
		return err
	}
	if err := l.read(); err != nil {
		return err
	}
	return l.reconcile()
}

// only looks at those directories below that are on the way to dirty or restless ones.
func (l *listing) only() error {
	for i := range l.prev.items {
		it := &l.prev.items[i]
		d := l.dirty.Below[it.node.Name]
		if d == nil && it.sub != nil && (it.sub.restless || it.sub.below) {
			d = &manifest.Paths{}
		}
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
		if w.Count.Add(64) > int64(maxScanned) {
			return fmt.Errorf("%w: more than %d", ErrTooMany, maxScanned)
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
	err := inode.LstatRaw(l.fd, raw, &st)
	if err != nil && inode.Denied(err) {
		err = w.s.opener.Lstat(w.ctx, l.fd, name, manifest.Join(l.path, name), &st)
	}
	if err != nil {
		if inode.Gone(err) {
			return nil // what was remembered of it isn't seen, and so is dropped
		}
		if inode.Denied(err) {
			w.problem(manifest.Join(l.path, name), "it can't be looked at: "+err.Error())
			return l.add(item{node: &manifest.Node{Entry: manifest.Entry{Name: name, Kind: manifest.KindFile, Unsaved: "it can't be looked at"}}, distrust: true}, i)
		}
		return fmt.Errorf("cannot look at %q: %w", manifest.Join(l.path, name), err)
	}
	kind := inode.KindOf(&st)
	switch {
	case kind == manifest.KindWhiteout:
		if known && prior.node.Kind == manifest.KindWhiteout && prior.key.Ino == 0 {
			return l.keep(i)
		}
		return l.add(item{node: &manifest.Node{Entry: inode.EntryOf(name, &st)}}, i)
	case kind == manifest.KindDir:
		var d *manifest.Paths
		if !l.deep {
			if d = l.dirty.Below[name]; d == nil && known && prior.sub != nil && prior.key.Ino == st.Ino {
				d = &manifest.Paths{} // nothing to look at below
			}
		}
		return l.subdir(name, i, d)
	}
	if st.Nlink > 1 && kind == manifest.KindFile && (!known || prior.key.Nlink < uint64(st.Nlink)) {
		w.linked.Store(true)
	}
	key := inode.KeyOf(&st)
	mapped := kind == manifest.KindFile && len(w.mapped) > 0 && w.mapped[manifest.Join(l.path, name)]
	if mapped {
		if mapped = !w.writeBack(l.fd, l.path, name, &st); !mapped {
			key = inode.KeyOf(&st)
		}
	}
	if known && !mapped && !prior.distrust && prior.key == key {
		return l.keep(i)
	}
	if err := l.part(); err != nil {
		return err
	}
	it := item{node: &manifest.Node{Entry: inode.EntryOf(name, &st)}, key: key, distrust: mapped || w.isRacy(st.Ctim)}
	if kind == manifest.KindSymlink {
		target, err := w.s.opener.Readlink(w.ctx, l.fd, name, manifest.Join(l.path, name))
		if inode.Gone(err) || errors.Is(err, unix.EINVAL) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read link %q: %w", manifest.Join(l.path, name), err)
		}
		w.opened()
		it.node.Target = target
	}
	if kind == manifest.KindFile {
		// Added with an empty content now, to keep the order; read later.
		job := fileJob{at: len(l.items), st: st, prev: prior}
		if known {
			l.at = i + 1
		}
		l.items = append(l.items, it)
		l.jobs = append(l.jobs, job)
		return nil
	}
	return l.add(it, i)
}

// merged is the sorted list of nodes after what changed.
func (l *listing) merged() []*manifest.Node {
	nodes := make([]*manifest.Node, len(l.items))
	for i := range l.items {
		nodes[i] = l.items[i].node
	}
	slices.SortStableFunc(nodes, func(a, b *manifest.Node) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(nodes, func(a, b *manifest.Node) bool { return a.Name == b.Name })
}
