package scan

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// subdir puts off the directory of that name, which was prior item i unless
// that is negative, and keeps its place in the order.
func (l *listing) subdir(name string, i int, dirty *manifest.Paths) error {
	j := subJob{name: name, at: l.at, prior: i, dirty: dirty}
	if i >= 0 && l.prev.items[i].sub == nil {
		j.prior = -1 // it was something else
		if err := l.part(); err != nil {
			return err
		}
		l.at = i + 1
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
			it = item{node: c.node, key: inode.Key{Ino: c.key.Ino}, sub: c}
		case j.fault != "":
			it = item{node: &manifest.Node{Entry: manifest.Entry{Name: j.name, Kind: manifest.KindDir, Unsaved: j.fault}, Sub: manifest.NewDir(nil, nil)}, distrust: true}
		}
		l.items[j.at] = it
	}
	return nil
}

// descend walks one directory that was put off.
func (l *listing) descend(j *subJob) error {
	w := l.w
	path := manifest.Join(l.path, j.name)
	fd, err := w.s.opener.OpenAt(w.ctx, l.fd, j.name, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if inode.Gone(err) {
		return nil
	}
	if inode.Denied(err) {
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
	j.found, err = w.dir(fd, path, j.name, prev, j.dirty)
	if inode.Gone(err) {
		j.found, err = nil, nil
	}
	return err
}
