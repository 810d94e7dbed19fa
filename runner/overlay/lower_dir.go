package overlay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// lowerDir is one directory of the lower while it is being walked: its parts
// in the layers that have it, opened when first needed. It belongs to one
// goroutine.
type lowerDir struct {
	l      *Lower
	up     *lowerDir // nil for the project itself
	name   string
	path   string
	opened bool
	parts  []lowerPart
}

type lowerPart struct {
	fd    int
	layer int
}

// lowerEntry is what the lower has under a name.
type lowerEntry struct {
	Entry
	key   statKey
	layer int
	kept  bool // it comes from a Base, and so does its content
}

func (l *Lower) top() *lowerDir { return &lowerDir{l: l} }

func (d *lowerDir) sub(name string) *lowerDir {
	return &lowerDir{l: d.l, up: d, name: name, path: join(d.path, name)}
}

func (d *lowerDir) below(name string) lowDir { return d.sub(name) }

// dirs is the lower's top directory; a nil lower has none.
func (l *Lower) dirs() lowDir {
	if l == nil {
		return nil
	}
	return l.top()
}

// open opens the directory's parts. A directory that isn't there has none.
func (d *lowerDir) open(ctx context.Context) error {
	if d.opened {
		return nil
	}
	if d.up == nil {
		for i, layer := range d.l.layers {
			fd, err := openAt(layer, ".", unix.O_RDONLY|unix.O_DIRECTORY)
			if denied(err) && d.l.asks(i) {
				fd, err = d.l.askOpener(ctx, "")
			}
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
			if gone(err) {
				continue
			}
			return d.fault(err)
		}
		if kindOf(&st) != KindDir {
			break // a whiteout or a file hides what further layers have
		}
		// Overlayfs shows a lower without the mounts on it.
		fd, err := beneath(p.fd, d.name, unix.O_RDONLY|unix.O_DIRECTORY)
		if gone(err) || errors.Is(err, unix.EXDEV) {
			continue
		}
		if denied(err) && d.l.asks(p.layer) {
			fd, err = d.l.askOpener(ctx, d.path)
		}
		if err != nil {
			return d.fault(err)
		}
		d.parts = append(d.parts, lowerPart{fd, p.layer})
		if len(d.l.layers) > 1 {
			if a, err := readAttrs(fd, nil); err == nil && a.opaque {
				break
			}
		}
	}
	return nil
}

func (d *lowerDir) fault(err error) error {
	return fmt.Errorf("cannot open lower directory %q: %w", d.path, err)
}

// stat looks at a name in one part of the directory.
func (d *lowerDir) stat(ctx context.Context, p lowerPart, name string, st *unix.Stat_t) error {
	err := lstatAt(p.fd, name, st)
	if !denied(err) || !d.l.asks(p.layer) {
		return err
	}
	fd, err := d.l.askOpener(ctx, join(d.path, name))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return fstat(fd, st)
}

func (d *lowerDir) close() {
	for _, p := range d.parts {
		_ = unix.Close(p.fd)
	}
	d.parts, d.opened = nil, false
}

// find is the lower's entry under name, nil when it has none. Contents aren't
// hashed and attributes aren't read: see Lower.complete.
func (d *lowerDir) find(ctx context.Context, name string) (*lowerEntry, error) {
	if d.l.hidden[join(d.path, name)] {
		return nil, nil
	}
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	for _, p := range d.parts {
		var st unix.Stat_t
		err := d.stat(ctx, p, name, &st)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot look at lower %q: %w", join(d.path, name), err)
		}
		e := &lowerEntry{Entry: entryOf(name, &st), key: keyOf(&st), layer: p.layer}
		if e.Kind == KindWhiteout {
			return nil, nil
		}
		e.Links = 0 // copying up breaks the lower's hard links
		return e, nil
	}
	return nil, nil
}

// names lists what the lower has, sorted.
func (d *lowerDir) names(ctx context.Context) ([]string, error) {
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	var names []string
	buf := make([]byte, 32<<10)
	for _, p := range d.parts {
		if err := rewind(p.fd); err != nil {
			return nil, d.fault(err)
		}
		err := eachName(p.fd, buf, func(name []byte) error {
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
func (d *lowerDir) openEntry(ctx context.Context, e *lowerEntry) (int, error) {
	for _, p := range d.parts {
		if p.layer != e.layer {
			continue
		}
		fd, err := openAt(p.fd, e.Name, unix.O_RDONLY)
		if denied(err) && d.l.asks(p.layer) {
			fd, err = d.l.askOpener(ctx, join(d.path, e.Name))
		}
		return fd, err
	}
	return -1, unix.ENOENT
}

// complete reads the attributes and the link target of an entry, and what it
// can't read it notes in Unsaved.
func (d *lowerDir) complete(ctx context.Context, e *lowerEntry) error {
	path := join(d.path, e.Name)
	switch e.Kind {
	case KindSymlink:
		for _, p := range d.parts {
			if p.layer == e.layer {
				target, err := readlinkAt(p.fd, e.Name)
				if denied(err) && d.l.asks(p.layer) {
					var fd int
					if fd, err = d.l.askOpener(ctx, path); err == nil {
						target, err = readlinkAt(fd, "")
						_ = unix.Close(fd)
					}
				}
				if err != nil {
					return fmt.Errorf("cannot read lower link %q: %w", path, err)
				}
				e.Target = target
			}
		}
	case KindFile, KindDir:
		fd, err := d.openEntry(ctx, e)
		if err != nil {
			if denied(err) {
				e.Unsaved = "the host's file can't be opened: " + err.Error()
				return nil
			}
			return fmt.Errorf("cannot open lower %q: %w", path, err)
		}
		defer unix.Close(fd)
		a, err := readAttrs(fd, d.l.opener.attrs(ctx, path))
		if denied(err) {
			e.Unsaved = "the host's file's attributes can't be read: " + err.Error()
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read attributes of lower %q: %w", path, err)
		}
		e.Xattrs = a.kept
	}
	return nil
}

// hash fills in the hash of a file's content.
func (d *lowerDir) hash(ctx context.Context, e *lowerEntry) error {
	if e.Kind != KindFile || !e.Hash.IsZero() || e.Unsaved != "" {
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
	return d.read(ctx, e, &contentHasher{limit: 1<<63 - 1})
}

// read reads a file's content through c, and notes what it was in e.
func (d *lowerDir) read(ctx context.Context, e *lowerEntry, c *contentHasher) error {
	l := d.l
	path := join(d.path, e.Name)
	fd, err := d.openEntry(ctx, e)
	if denied(err) {
		e.Unsaved = "the host's file can't be opened: " + err.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open lower %q: %w", path, err)
	}
	defer unix.Close(fd)
	for range readTries {
		var before, after unix.Stat_t
		if err := fstat(fd, &before); err != nil {
			return fmt.Errorf("cannot look at lower %q: %w", path, err)
		}
		if before.Mode&unix.S_IFMT != unix.S_IFREG {
			break
		}
		h, _, err := c.file(ctx, fd, before.Size, nil)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read lower %q: %w", path, err)
		}
		if err := fstat(fd, &after); err != nil {
			return fmt.Errorf("cannot look at lower %q: %w", path, err)
		}
		if keyOf(&before) != keyOf(&after) {
			continue
		}
		e.Hash, e.Size, e.key = h, before.Size, keyOf(&before)
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
