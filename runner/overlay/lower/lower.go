// Package lower reads the host's files as an overlay shows them to its sandbox,
// and gives what a record keeps of them in the same form.
//
// A Lower locks itself; a Dir belongs to one goroutine.
package lower

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Options say what of the lower shows through.
type Options struct {
	// Above are further lower layers, topmost first, as in the mount's
	// lowerdir= before the project. They may hold whiteouts.
	Above []string
	// Hidden are paths that the merged view must be taken not to have, with
	// all below them.
	Hidden []string
}

// Lower reads the host's files as the overlay shows them. It remembers the
// hashes of contents by inode and time stamps. It is safe for concurrent use.
type Lower struct {
	layers []int // directory descriptors, topmost first
	hidden map[string]bool
	opener inode.Opener

	mu     sync.Mutex
	hashes map[inode.Key]content.Hash // guarded by mu
}

// errNoFile is for what was a file when it was listed.
var errNoFile = errors.New("it isn't a file any more")

// maxHashes is how many contents a Lower remembers before it starts anew.
const maxHashes = 1 << 17

// Open opens the project folder and the layers above it.
func Open(project string, o Options) (*Lower, error) {
	l := &Lower{hidden: map[string]bool{}, hashes: map[inode.Key]content.Hash{}}
	for _, path := range append(slices.Clone(o.Above), project) {
		fd, err := inode.OpenAt(unix.AT_FDCWD, path, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			_ = l.Close()
			return nil, fmt.Errorf("cannot open lower directory %q: %w", path, err)
		}
		l.layers = append(l.layers, fd)
	}
	for _, p := range o.Hidden {
		l.hidden[strings.Trim(p, "/")] = true
	}
	return l, nil
}

// Close releases the layers. Nothing else may be running.
func (l *Lower) Close() error {
	var errs []error
	for _, fd := range l.layers {
		errs = append(errs, unix.Close(fd))
	}
	l.layers = nil
	return errors.Join(errs...)
}

// Ask makes opener the one that opens what the caller can't read. Nothing else
// may be running.
func (l *Lower) Ask(opener inode.Opener) { l.opener = opener }

// openerOf is the opener if it knows a layer: the last, the project itself.
func (l *Lower) openerOf(layer int) inode.Opener {
	if layer != len(l.layers)-1 {
		return nil
	}
	return l.opener
}

// walkTo opens the directories on the way to path and calls f with the last
// one and the last name.
func (l *Lower) walkTo(path string, f func(d *Folder, name string) error) error {
	if path == "" || !manifest.ValidPath(path) {
		return unix.EINVAL
	}
	d := l.Top()
	defer func() { // each closes what it opened itself
		for ; d != nil; d = d.up {
			d.Close()
		}
	}()
	dirPath, name := manifest.Split(path)
	if dirPath != "" {
		for part := range strings.SplitSeq(dirPath, "/") {
			d = d.Sub(part)
		}
	}
	return f(d, name)
}

// Lookup is Stat with the content's hash.
func (l *Lower) Lookup(ctx context.Context, path string) (*manifest.Entry, error) {
	return l.find(ctx, path, true)
}

// Stat is the lower's entry at path; nil when the merged view gets none from the lower.
func (l *Lower) Stat(ctx context.Context, path string) (*manifest.Entry, error) {
	return l.find(ctx, path, false)
}

// Changed is when what the lower has at path was changed last, in any way; zero when
// there is nothing.
func (l *Lower) Changed(ctx context.Context, path string) (at manifest.Time, err error) {
	err = l.walkTo(path, func(d *Folder, name string) error {
		e, err := d.Find(ctx, name)
		if e != nil {
			at = manifest.TimeOf(e.key.Ctime)
		}
		return err
	})
	return at, err
}

// Linked says whether what the lower has at path has other names, wherever they are.
func (l *Lower) Linked(ctx context.Context, path string) (linked bool, err error) {
	err = l.walkTo(path, func(d *Folder, name string) error {
		e, err := d.Find(ctx, name)
		linked = e != nil && e.Kind == manifest.KindFile && e.key.Nlink > 1
		return err
	})
	return linked, err
}

func (l *Lower) find(ctx context.Context, path string, hash bool) (*manifest.Entry, error) {
	var found *manifest.Entry
	err := l.walkTo(path, func(d *Folder, name string) error {
		e, err := d.Find(ctx, name)
		if e == nil || err != nil {
			return err
		}
		if err := d.Complete(ctx, e); err != nil {
			return err
		}
		if hash {
			if err := d.Hash(ctx, e); err != nil {
				return err
			}
		}
		found = &e.Entry
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot look at lower %q: %w", path, err)
	}
	return found, nil
}

// Open opens a file of the lower and says how long it is now.
func (l *Lower) Open(ctx context.Context, path string) (io.ReadCloser, int64, error) {
	var f *os.File
	var size int64
	err := l.walkTo(path, func(d *Folder, name string) error {
		e, err := d.Find(ctx, name)
		if err != nil {
			return err
		}
		if e == nil {
			return unix.ENOENT
		}
		if e.Kind != manifest.KindFile {
			return unix.EINVAL
		}
		f, size, err = d.openFile(ctx, e)
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("cannot open lower %q: %w", path, err)
	}
	return f, size, nil
}
