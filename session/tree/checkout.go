package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/project"
)

// maxTold is how many inexact paths are named.
const maxTold = 100

// Told are paths that aren't as they were, as people read them, the first of them, and
// how many more there are.
func Told(gaps []manifest.Problem) (out []api.Trouble, more int) {
	n := min(len(gaps), maxTold)
	return files.Troubles(gaps[:n]), len(gaps) - n
}

// CheckOut writes the tree, or what is at some paths and below, into a folder that is
// empty or not there yet. Nothing outside of it can be written, whatever is in the
// tree: names are opened below its descriptor, and no link leads out (os.Root). A
// folder that was made for it is removed again if that fails.
func (t *Tree) CheckOut(ctx context.Context, into string, paths []string) (out api.Checkout, err error) {
	if !filepath.IsAbs(into) || filepath.Clean(into) != into {
		return out, api.Problemf(api.CodeInvalid, "%q isn't an absolute path of a folder", api.Escape(into))
	}
	if len(paths) == 0 {
		paths = []string{""}
	}
	for _, p := range paths {
		if f := t.find(p); f == nil || !manifest.ValidPath(p) {
			return out, t.None(p)
		}
	}
	all := paths
	paths = slices.DeleteFunc(slices.Clone(all), func(p string) bool { // what comes with another
		return slices.ContainsFunc(all, func(q string) bool { return p != q && (q == "" || manifest.Within(p, q)) })
	})
	made, err := emptyFolder(into)
	if err != nil {
		return out, err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return out, fmt.Errorf("cannot open %q: %w", into, err)
	}
	defer root.Close()
	w := checkout{tree: t, root: root, out: api.Checkout{At: t.At, Into: api.Escape(into)}, names: map[uint64]string{}}
	for _, g := range t.gaps {
		if _, name := manifest.Split(g.Path); name != ".git" {
			w.gaps = append(w.gaps, g)
		}
	}
	for _, p := range paths {
		if err = w.lead(p); err == nil {
			err = t.Walk(ctx, p, func(f *File) error { return w.write(ctx, f) })
		}
		if err != nil {
			break
		}
	}
	for _, f := range slices.Backward(w.folders) { // what is in them is there by now
		if err == nil && !f.plain {
			err = w.look(f)
		}
	}
	if err != nil {
		err = fmt.Errorf("cannot check out into %q: %w", into, err)
		if made {
			err = errors.Join(err, os.RemoveAll(into))
		}
		return out, err
	}
	w.out.Inexact, w.out.More = Told(w.gaps)
	return w.out, nil
}

// emptyFolder makes a folder, or sees that nothing is in it.
func emptyFolder(path string) (made bool, err error) {
	if err = os.Mkdir(path, 0o755); err == nil {
		return true, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("cannot make the folder %q: %w", path, err)
	}
	d, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("cannot look into %q: %w", path, err)
	}
	defer d.Close()
	switch _, err := d.Readdirnames(1); {
	case err == nil:
		return false, api.Problemf(api.CodeInvalid, "%q isn't empty, and nothing is written over; name another folder, or one that isn't there yet", api.Escape(path))
	case err != io.EOF:
		return false, fmt.Errorf("cannot look into %q: %w", path, err)
	}
	return false, nil
}

type checkout struct {
	tree    *Tree
	root    *os.Root
	out     api.Checkout
	gaps    []manifest.Problem
	names   map[uint64]string // of groups of hard links, the first
	folders []*File           // that were made
}

// lead makes the folders on the way to a path.
func (w *checkout) lead(path string) error {
	dir, _ := manifest.Split(path)
	if dir == "" {
		return nil
	}
	return w.root.MkdirAll(dir, 0o755)
}

func (w *checkout) lacks(f *File, why string) error {
	w.gaps = append(w.gaps, manifest.Problem{Path: f.Path, Text: why})
	if f.Kind == manifest.KindDir {
		return fs.SkipDir
	}
	return nil
}

func (w *checkout) write(ctx context.Context, f *File) error {
	switch {
	case f.Path == "":
		return ctx.Err()
	case f.upper != nil:
		return fs.SkipDir // git's own
	}
	if why := project.Never(f.Path); why != "" {
		return w.lacks(f, "it isn't written: "+why)
	}
	switch f.Kind {
	case manifest.KindDir:
		if f.Unsaved != "" {
			w.gaps = append(w.gaps, manifest.Problem{Path: f.Path, Text: f.Unsaved})
		}
		if err := w.root.Mkdir(f.Path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // two paths may lead through it
			return err
		}
		if f.plain {
			if err := w.root.Chmod(f.Path, 0o755); err != nil {
				return err
			}
		}
		w.folders, w.out.Folders = append(w.folders, f), w.out.Folders+1
		return nil
	case manifest.KindSymlink:
		if f.Unsaved != "" {
			return w.lacks(f, f.Unsaved)
		}
		w.out.Links++
		return w.root.Symlink(f.Target, f.Path)
	case manifest.KindFile:
		return w.file(ctx, f)
	}
	return w.lacks(f, fmt.Sprintf("it isn't written: it is a %s", f.Kind))
}

func (w *checkout) file(ctx context.Context, f *File) error {
	if first, ok := w.names[f.Links]; ok && f.Links != 0 {
		w.out.Files++
		return w.root.Link(first, f.Path)
	}
	r, _, err := w.tree.open(ctx, f)
	if g := (*manifest.Problem)(nil); errors.As(err, &g) {
		return w.lacks(f, g.Text)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	to, err := w.root.OpenFile(f.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := copyWithHoles(to, r)
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	if f.Links != 0 {
		w.names[f.Links] = f.Path
	}
	w.out.Files++
	w.out.Bytes += n
	return w.look(f)
}

// look gives what was written its mode and time. Who it belongs to is the caller, and
// nothing runs with another's rights.
func (w *checkout) look(f *File) error {
	if err := w.root.Chmod(f.Path, fs.FileMode(f.Mode&0o777)); err != nil {
		return err
	}
	if f.MTime == (manifest.Time{}) {
		return nil
	}
	at := time.Unix(f.MTime.Sec, int64(f.MTime.Nsec))
	if err := w.root.Chtimes(f.Path, at, at); err != nil && !errors.Is(err, fs.ErrInvalid) { // a time that this file system hasn't got
		return err
	}
	return nil
}

// copyWithHoles copies a content and leaves out what is known to be zeros.
func copyWithHoles(to *os.File, from io.Reader) (n int64, err error) {
	buf := make([]byte, 256<<10)
	skip, _ := from.(content.HoleSkipper)
	for {
		if skip != nil {
			n += skip.SkipHole()
		}
		got, err := from.Read(buf)
		if _, werr := to.WriteAt(buf[:got], n); werr != nil {
			return n, werr
		}
		n += int64(got)
		if err == io.EOF {
			return n, to.Truncate(n)
		}
		if err != nil {
			return n, err
		}
	}
}
