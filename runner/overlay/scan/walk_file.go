package scan

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

const (
	readTries = 3 // times that a file is read before it counts as unstable
	fewFiles  = 8 // not worth a second goroutine
)

// writeBack makes stores through mappings visible to a stat, and looks again.
// After sync_file_range(2) the pages are clean and write-protected, so that
// the next store moves the time stamp. It says false where that doesn't help:
// pages of tmpfs have nothing to be written to.
func (w *walk) writeBack(dirfd int, dirPath, name string, st *unix.Stat_t) bool {
	if w.noSFR {
		return false
	}
	fd, err := w.s.opener.OpenAt(w.ctx, dirfd, name, manifest.Join(dirPath, name), unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	const flags = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	if err := inode.Retry(func() error { return unix.SyncFileRange(fd, 0, 0, flags) }); err != nil {
		return false
	}
	var now unix.Stat_t
	if err := inode.Fstat(fd, &now); err != nil || now.Ino != st.Ino {
		return false
	}
	*st = now
	return true
}

// read reads the files of one directory that moved.
func (l *listing) read() error {
	if len(l.jobs) == 0 {
		return nil
	}
	groups := (len(l.jobs) + fewFiles - 1) / fewFiles
	return l.w.parallel(groups, func(ctx context.Context, k int) error {
		c := l.w.hasher()
		defer l.w.countRead(c)
		for i := k * fewFiles; i < min((k+1)*fewFiles, len(l.jobs)); i++ {
			if err := l.file(ctx, c, &l.jobs[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// reconcile takes out what vanished while it was read, and keeps the old nodes of
// files whose content and attributes turned out to be the same.
func (l *listing) reconcile() error {
	vanished := false
	for i := range l.subs {
		if j := &l.subs[i]; l.apart && l.items[j.at].node == nil {
			vanished = true
		}
	}
	for i := range l.jobs {
		j := &l.jobs[i]
		it := &l.items[j.at]
		if it.node == nil {
			vanished = true
			continue
		}
		if j.prev != nil && it.node.Equal(j.prev.node) {
			it.node = j.prev.node
		}
	}
	if !vanished {
		return nil
	}
	kept := l.items[:0]
	for i := range l.items {
		if l.items[i].node != nil {
			kept = append(kept, l.items[i])
		}
	}
	clear(l.items[len(kept):])
	l.items = kept
	return nil
}

func (w *walk) hasher() *content.Hasher {
	c := &content.Hasher{Limit: int64(maxFileData)}
	if w.s.bodies != nil {
		c.Queue = func(ctx context.Context, h content.Hash, body []byte) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.queue.Add(ctx, h, body)
		}
	}
	return c
}

func (w *walk) opened() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Opened++
}

func (w *walk) countRead(c *content.Hasher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Read += c.Bytes
}

// file reads one file into its item. The item's node becomes nil when there is
// no such file any more.
func (l *listing) file(ctx context.Context, c *content.Hasher, j *fileJob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	it := &l.items[j.at]
	name := it.node.Name
	var prior *content.List
	if j.prev != nil {
		prior = j.prev.chunks
	}
	for range readTries {
		again, err := l.readOnce(ctx, c, j, it, prior)
		if errors.Is(err, errVanished) {
			it.node = nil
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", manifest.Join(l.path, name), err)
		}
		if !again {
			return nil
		}
	}
	it.distrust = true
	return nil
}

// readOnce reads a file between two looks at it, and says whether it moved
// meanwhile.
func (l *listing) readOnce(ctx context.Context, c *content.Hasher, j *fileJob, it *item, prior *content.List) (again bool, err error) {
	w, name := l.w, it.node.Name
	unsaved := func(why string) (bool, error) {
		it.node.Unsaved, it.node.Hash = why, content.Hash{}
		w.problem(manifest.Join(l.path, name), why)
		return false, nil
	}
	fd, err := w.s.opener.OpenAt(ctx, l.fd, name, manifest.Join(l.path, name), unix.O_RDONLY)
	switch {
	case inode.Gone(err) || errors.Is(err, unix.ENXIO):
		return false, errVanished
	case inode.Denied(err):
		it.distrust = true
		return unsaved("it can't be opened: " + err.Error())
	case err != nil:
		return false, err
	}
	defer unix.Close(fd)
	var before, after unix.Stat_t
	if err := inode.Fstat(fd, &before); err != nil {
		return false, err
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG {
		return false, errVanished
	}
	if before.Nlink > j.st.Nlink {
		w.linked.Store(true)
	}
	e := inode.EntryOf(name, &before)
	it.node = &manifest.Node{Entry: e}
	it.key, it.chunks = inode.KeyOf(&before), nil
	it.distrust = it.distrust || w.isRacy(before.Ctim)
	w.opened()
	a, err := inode.ReadAttrs(fd, w.s.opener.Attrs(ctx, manifest.Join(l.path, name)))
	if errors.Is(err, inode.ErrXattrs) {
		return unsaved(err.Error())
	}
	if inode.Denied(err) {
		it.distrust = true
		return unsaved("its attributes can't be read: " + err.Error())
	}
	if err != nil {
		return false, err
	}
	if a.Foreign != "" {
		return unsaved("it has " + a.Foreign + ", which this mount can't have made")
	}
	if a.Whiteout && before.Size == 0 {
		it.node = &manifest.Node{Entry: manifest.Entry{Name: name, Kind: manifest.KindWhiteout}}
		return false, nil
	}
	it.node.Xattrs = a.Kept
	h, list, err := c.File(ctx, fd, before.Size, prior)
	switch {
	case errors.Is(err, content.ErrTooMuch):
		return unsaved(fmt.Sprintf("its data are more than %d bytes", c.Limit))
	case errors.Is(err, content.ErrMoved):
		it.node.Unsaved = content.ErrMoved.Error() // until a try succeeds
		return true, nil
	case errors.Is(err, unix.EIO):
		it.distrust = true
		return unsaved(err.Error())
	case err != nil:
		return false, err
	}
	it.node.Hash, it.chunks = h, list
	if err := inode.Fstat(fd, &after); err != nil {
		return false, err
	}
	return inode.KeyOf(&after) != inode.KeyOf(&before), nil
}
