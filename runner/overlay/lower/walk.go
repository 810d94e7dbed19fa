package lower

import (
	"context"
	"errors"
	"fmt"
	"io"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

// ErrSkipDir is what a Walk's function returns for a directory that isn't to be
// looked into.
var ErrSkipDir = errors.New("skip this directory")

// Found is a name that a Walk came upon. It is of use only during the call that
// it was given to.
type Found struct {
	Path  string
	Entry manifest.Entry // without hash; links have their target, once it was asked for
	CTime manifest.Time  // when the inode was changed last
	// Hidden says that the merged view doesn't have the name. Nothing else is
	// known then, and nothing can be read.
	Hidden bool

	dir *Folder
	low *Entry
}

// Walk calls f with each name of the lower, directories before what they hold,
// each directory's names in order. What can't be looked at has the reason in
// its Entry's Unsaved: for a directory that can't be listed f is called a second
// time. Walk ends with the first error that f returns but ErrSkipDir. The lower may
// change meanwhile: each name is as it was when Walk came to it.
func (l *Lower) Walk(ctx context.Context, f func(*Found) error) error {
	top := l.Top()
	defer top.Close()
	return top.walk(ctx, f)
}

func (d *Folder) walk(ctx context.Context, f func(*Found) error) error {
	names, err := d.Names(ctx)
	if why := manifest.Beyond(d.path); why != "" {
		err = errors.New(why)
	}
	if err != nil {
		if ctx.Err() != nil || d.path == "" {
			return err
		}
		return skipped(f(&Found{Path: d.path, Entry: manifest.Entry{Name: d.name, Kind: manifest.KindDir, Unsaved: NotKept(err.Error())}}))
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.visit(ctx, name, f); err != nil {
			return err
		}
	}
	return nil
}

func (d *Folder) visit(ctx context.Context, name string, f func(*Found) error) error {
	n := &Found{Path: manifest.Join(d.path, name), dir: d}
	if d.l.hidden[n.Path] {
		n.Hidden, n.Entry.Name = true, name
		return skipped(f(n))
	}
	e, err := d.Find(ctx, name)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		n.Entry = manifest.Entry{Name: name, Kind: manifest.KindFile, Unsaved: NotKept(err.Error())}
		return skipped(f(n))
	case e == nil:
		return nil // gone meanwhile
	}
	n.Entry, n.CTime, n.low = e.Entry, manifest.TimeOf(e.key.Ctime), e
	if err := f(n); err != nil || n.Entry.Kind != manifest.KindDir {
		return skipped(err)
	}
	sub := d.Sub(name)
	defer sub.Close()
	return sub.walk(ctx, f)
}

func skipped(err error) error {
	if errors.Is(err, ErrSkipDir) {
		return nil
	}
	return err
}

// Link reads where a symlink leads to, into its Entry.
func (n *Found) Link(ctx context.Context) error {
	if n.low == nil || n.Entry.Kind != manifest.KindSymlink {
		return nil
	}
	if err := n.dir.Complete(ctx, n.low); err != nil {
		return err
	}
	n.Entry.Target = n.low.Target
	return nil
}

// Open opens a file's content and says how long it is now.
func (n *Found) Open(ctx context.Context) (io.ReadCloser, int64, error) {
	if n.low == nil || n.Entry.Kind != manifest.KindFile {
		return nil, 0, fmt.Errorf("cannot open lower %q: it isn't a file", n.Path)
	}
	f, size, err := n.dir.openFile(ctx, n.low)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot open lower %q: %w", n.Path, err)
	}
	return f, size, nil
}

// Collector reads contents of a lower's files and keeps them. It isn't safe for
// concurrent use.
type Collector struct {
	queue  *content.Queue
	hasher content.Hasher
	Failed error // of the bodies: what was read before may be lost
}

// NewCollector makes one that keeps contents in b.
func NewCollector(b content.Bodies) *Collector {
	c := &Collector{queue: content.NewQueue(b)}
	c.hasher = content.Hasher{Limit: 1<<63 - 1, Queue: func(ctx context.Context, h content.Hash, body []byte) error {
		// A read that is called off takes nothing of those before with it.
		if err := c.queue.Add(context.WithoutCancel(ctx), h, body); err != nil {
			c.Failed = err
		}
		return c.Failed
	}}
	return c
}

// Read reads a file and puts its hash, and its length as it was read, into its
// Entry; if keep is set the content is kept, as soon as Flush has returned. What
// can't be read, or moves while it is, has the reason in Unsaved. It fails only
// when contents can't be kept, and then none that was read is sure to be, or
// when ctx has ended.
func (c *Collector) Read(ctx context.Context, n *Found, keep bool) error {
	if n.low == nil || n.Entry.Kind != manifest.KindFile {
		return nil
	}
	var err error
	if keep {
		err = n.dir.Read(ctx, n.low, &c.hasher)
	} else {
		err = n.dir.Hash(ctx, n.low)
	}
	switch {
	case c.Failed != nil:
		return c.Failed
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		n.Entry.Unsaved = NotKept(err.Error())
		return nil
	}
	n.Entry.Hash, n.Entry.Size = n.low.Hash, n.low.Size
	if n.low.Unsaved != "" {
		n.Entry.Unsaved = NotKept(n.low.Unsaved)
	}
	return nil
}

// Flush keeps what was read so far.
func (c *Collector) Flush(ctx context.Context) error { return c.queue.Flush(ctx) }

// NotKept says why something of the host's isn't in a record.
func NotKept(why string) string { return "not kept: " + why }
