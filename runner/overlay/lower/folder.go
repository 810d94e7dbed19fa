package lower

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Folder is one directory of the lower while it is being walked: its parts
// in the layers that have it, opened when first needed. It belongs to one
// goroutine.
type Folder struct {
	l      *Lower
	up     *Folder // nil for the project itself
	name   string
	path   string
	opened bool
	parts  []lowerPart
}

type lowerPart struct {
	fd    int
	layer int
}

// lowerTries is how often a file that changes while it is read is read.
const lowerTries = 3

// Entry is what the lower has under a name.
type Entry struct {
	manifest.Entry
	key   inode.Key
	layer int
	Kept  bool // it comes from a Base, and so does its content
}

// Top is the project folder.
func (l *Lower) Top() *Folder { return &Folder{l: l} }

// Sub is the folder of that name in it, which needn't be there.
func (d *Folder) Sub(name string) *Folder {
	return &Folder{l: d.l, up: d, name: name, path: manifest.Join(d.path, name)}
}

func (d *Folder) Below(name string) Dir { return d.Sub(name) }

// Dirs is the lower's top directory; a nil lower has none.
func (l *Lower) Dirs() Dir {
	if l == nil {
		return nil
	}
	return l.Top()
}

// open opens the directory's parts. A directory that isn't there has none.
func (d *Folder) open(ctx context.Context) error {
	if d.opened {
		return nil
	}
	if d.up == nil {
		for i, layer := range d.l.layers {
			fd, err := d.l.openerOf(i).OpenAt(ctx, layer, ".", "", unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				return d.fault(err)
			}
			d.parts = append(d.parts, lowerPart{fd, i})
		}
		d.opened = true
		return nil
	}
	if err := d.up.open(ctx); err != nil {
		return err
	}
	d.opened = true
	if d.l.hidden[d.path] {
		return nil
	}
	for _, p := range d.up.parts {
		var st unix.Stat_t
		if err := d.up.stat(ctx, p, d.name, &st); err != nil {
			if inode.Gone(err) {
				continue
			}
			return d.fault(err)
		}
		if inode.KindOf(&st) != manifest.KindDir {
			break // a whiteout or a file hides what further layers have
		}
		// Overlayfs shows a lower without the mounts on it.
		fd, err := inode.Beneath(p.fd, d.name, unix.O_RDONLY|unix.O_DIRECTORY)
		if inode.Gone(err) || errors.Is(err, unix.EXDEV) {
			continue
		}
		if inode.Denied(err) {
			fd, err = d.l.openerOf(p.layer).Open(ctx, d.path)
		}
		if err != nil {
			return d.fault(err)
		}
		d.parts = append(d.parts, lowerPart{fd, p.layer})
		if len(d.l.layers) > 1 {
			if a, err := inode.ReadAttrs(fd, nil); err == nil && a.Opaque {
				break
			}
		}
	}
	return nil
}

func (d *Folder) fault(err error) error {
	return fmt.Errorf("cannot open lower directory %q: %w", d.path, err)
}

// stat looks at a name in one part of the directory.
func (d *Folder) stat(ctx context.Context, p lowerPart, name string, st *unix.Stat_t) error {
	return d.l.openerOf(p.layer).Lstat(ctx, p.fd, name, manifest.Join(d.path, name), st)
}

// Close closes what was opened; the folder can be used again.
func (d *Folder) Close() {
	for _, p := range d.parts {
		_ = unix.Close(p.fd)
	}
	d.parts, d.opened = nil, false
}

// Find is the lower's entry under name, nil when it has none. Contents aren't
// hashed and attributes aren't read: see Complete.
func (d *Folder) Find(ctx context.Context, name string) (*Entry, error) {
	if d.l.hidden[manifest.Join(d.path, name)] {
		return nil, nil
	}
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	for _, p := range d.parts {
		var st unix.Stat_t
		err := d.stat(ctx, p, name, &st)
		if inode.Gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot look at lower %q: %w", manifest.Join(d.path, name), err)
		}
		e := &Entry{Entry: inode.EntryOf(name, &st), key: inode.KeyOf(&st), layer: p.layer}
		if e.Kind == manifest.KindWhiteout {
			return nil, nil
		}
		e.Links = 0 // copying up breaks the lower's hard links
		return e, nil
	}
	return nil, nil
}

// Came is since when, at the earliest, the entry that Find gave may have its name: when
// the file was made or, if something but its content changed since, the time of that,
// which may have been a rename. Where nobody knows when it was made it is the time of
// its last change of any kind.
func (d *Folder) Came(e *Entry) manifest.Time {
	changed := manifest.TimeOf(e.key.Ctime)
	if e.MTime.Before(changed) {
		return changed
	}
	for _, p := range d.parts {
		if p.layer != e.layer {
			continue
		}
		var st unix.Statx_t
		err := inode.Retry(func() error {
			return unix.Statx(p.fd, e.Name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME|unix.STATX_INO, &st)
		})
		if err == nil && st.Mask&unix.STATX_BTIME != 0 && st.Ino == e.key.Ino {
			return manifest.Time{Sec: st.Btime.Sec, Nsec: st.Btime.Nsec}
		}
	}
	return changed
}

// Names lists what the lower has, sorted.
func (d *Folder) Names(ctx context.Context) ([]string, error) {
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	var names []string
	buf := make([]byte, 32<<10)
	for _, p := range d.parts {
		if err := inode.Rewind(p.fd); err != nil {
			return nil, d.fault(err)
		}
		err := inode.EachName(p.fd, buf, func(name []byte) error {
			names = append(names, string(name))
			return ctx.Err()
		})
		if err != nil {
			return nil, fmt.Errorf("cannot list lower directory %q: %w", d.path, err)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// openEntry opens the entry that find gave for reading.
func (d *Folder) openEntry(ctx context.Context, e *Entry) (int, error) {
	for _, p := range d.parts {
		if p.layer != e.layer {
			continue
		}
		return d.l.openerOf(p.layer).OpenAt(ctx, p.fd, e.Name, manifest.Join(d.path, e.Name), unix.O_RDONLY)
	}
	return -1, unix.ENOENT
}

// openFile opens a file and says how long it is now.
func (d *Folder) openFile(ctx context.Context, e *Entry) (*os.File, int64, error) {
	fd, err := d.openEntry(ctx, e)
	if err != nil {
		return nil, 0, err
	}
	var st unix.Stat_t
	if err := inode.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd)
		return nil, 0, errors.Join(err, errNoFile)
	}
	return os.NewFile(uintptr(fd), manifest.Join(d.path, e.Name)), st.Size, nil
}

// Complete reads the attributes and the link target of an entry, and what it
// can't read it notes in Unsaved.
func (d *Folder) Complete(ctx context.Context, e *Entry) error {
	path := manifest.Join(d.path, e.Name)
	switch e.Kind {
	case manifest.KindSymlink:
		for _, p := range d.parts {
			if p.layer == e.layer {
				target, err := d.l.openerOf(p.layer).Readlink(ctx, p.fd, e.Name, path)
				if err != nil {
					return fmt.Errorf("cannot read lower link %q: %w", path, err)
				}
				e.Target = target
			}
		}
	case manifest.KindFile, manifest.KindDir:
		fd, err := d.openEntry(ctx, e)
		if err != nil {
			if inode.Denied(err) {
				e.Unsaved = "the host's file can't be opened: " + err.Error()
				return nil
			}
			return fmt.Errorf("cannot open lower %q: %w", path, err)
		}
		defer unix.Close(fd)
		a, err := inode.ReadAttrs(fd, d.l.openerOf(e.layer).Attrs(ctx, path))
		if inode.Denied(err) {
			e.Unsaved = "the host's file's attributes can't be read: " + err.Error()
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read attributes of lower %q: %w", path, err)
		}
		e.Xattrs = a.Kept
	}
	return nil
}

// Hash fills in the hash of a file's content.
func (d *Folder) Hash(ctx context.Context, e *Entry) error {
	if e.Kind != manifest.KindFile || !e.Hash.IsZero() || e.Unsaved != "" {
		return nil
	}
	l := d.l
	l.mu.Lock()
	h, ok := l.hashes[e.key]
	l.mu.Unlock()
	if ok {
		e.Hash = h
		return nil
	}
	return d.Read(ctx, e, &content.Hasher{Limit: 1<<63 - 1})
}

// Read reads a file's content through c, and notes what it was in e.
func (d *Folder) Read(ctx context.Context, e *Entry, c *content.Hasher) error {
	l := d.l
	path := manifest.Join(d.path, e.Name)
	fd, err := d.openEntry(ctx, e)
	if inode.Denied(err) {
		e.Unsaved = "the host's file can't be opened: " + err.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open lower %q: %w", path, err)
	}
	defer unix.Close(fd)
	for range lowerTries {
		var before, after unix.Stat_t
		if err := inode.Fstat(fd, &before); err != nil {
			return fmt.Errorf("cannot look at lower %q: %w", path, err)
		}
		if before.Mode&unix.S_IFMT != unix.S_IFREG {
			break
		}
		h, _, err := c.File(ctx, fd, before.Size, nil)
		if errors.Is(err, content.ErrMoved) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read lower %q: %w", path, err)
		}
		if err := inode.Fstat(fd, &after); err != nil {
			return fmt.Errorf("cannot look at lower %q: %w", path, err)
		}
		if inode.KeyOf(&before) != inode.KeyOf(&after) {
			continue
		}
		e.Hash, e.Size, e.key = h, before.Size, inode.KeyOf(&before)
		// The host may write again within the same tick of the clock.
		if time.Since(time.Unix(before.Ctim.Unix())) > 100*time.Millisecond {
			l.mu.Lock()
			if len(l.hashes) >= maxHashes {
				clear(l.hashes)
			}
			l.hashes[e.key] = h
			l.mu.Unlock()
		}
		return nil
	}
	e.Unsaved = "the host's file keeps changing"
	return nil
}
