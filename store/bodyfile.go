package store

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"
)

// bodyPath spreads bodies over 256 folders by the first byte of their names.
func (s *Store) bodyPath(h Hash) string {
	name := h.String()
	return filepath.Join(s.dir, bodiesDir, name[:2], name[2:])
}

// fileWriter is what streaming a body needs, used again and again.
type fileWriter struct {
	hasher *blake3.Hasher
	buf    []byte
}

var fileWriters = sync.Pool{New: func() any { return &fileWriter{blake3.New(), make([]byte, 256<<10)} }}

// putFile streams a body to a file beside the others and gives it its name
// once that is known, so that a body under its name is always whole.
func (s *Store) putFile(ctx context.Context, r io.Reader) (h Hash, n int64, err error) {
	tmp, err := os.CreateTemp(filepath.Join(s.dir, tmpDir), "body-")
	if err != nil {
		return h, 0, fileFault(s.dir, err)
	}
	defer func() {
		if tmp != nil {
			err = errors.Join(err, tmp.Close(), os.Remove(tmp.Name()))
		}
	}()
	// Whoever sweeps leaves alone what is locked.
	if err := unix.Flock(int(tmp.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return h, 0, fmt.Errorf("cannot lock %q: %w", tmp.Name(), err)
	}
	w := fileWriters.Get().(*fileWriter)
	defer fileWriters.Put(w)
	w.hasher.Reset()
	hasher, buf := w.hasher, w.buf
	for {
		if err := ctx.Err(); err != nil {
			return h, 0, err
		}
		k, rerr := r.Read(buf)
		if k > 0 {
			hasher.Write(buf[:k]) // never fails
			if _, err := tmp.Write(buf[:k]); err != nil {
				return h, 0, fileFault(s.dir, err)
			}
			n += int64(k)
		}
		if errors.Is(rerr, io.EOF) {
			break
		}
		if rerr != nil {
			return h, 0, fmt.Errorf("cannot read it: %w", rerr)
		}
	}
	hasher.Sum(h[:0])
	final := s.bodyPath(h)
	if st, err := os.Stat(final); err == nil && st.Mode().IsRegular() && st.Size() == n {
		return h, n, nil
	}
	err = os.Rename(tmp.Name(), final)
	if errors.Is(err, fs.ErrNotExist) { // the first of its folder
		if err = os.Mkdir(filepath.Dir(final), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Rename(tmp.Name(), final)
		}
	}
	if err != nil {
		return h, 0, fileFault(s.dir, err)
	}
	err = tmp.Close()
	tmp = nil
	return h, n, fileFault(s.dir, err)
}

func (s *Store) hasFile(h Hash) (bool, error) {
	st, err := os.Stat(s.bodyPath(h))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Mode().IsRegular(), err
}

func (s *Store) openFile(h Hash) (io.ReadCloser, int64, error) {
	f, err := os.OpenFile(s.bodyPath(h), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("body %s: %w", h, ErrNotFound)
	}
	if errors.Is(err, unix.ELOOP) {
		return nil, 0, fmt.Errorf("cannot use body %s, a symbolic link: %w", h, ErrBody)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("cannot open body %s: %w", h, err)
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("cannot use body %s from its file: %w", h, errors.Join(ErrBody, err, f.Close()))
	}
	return &bodyFile{f: f, want: h, hasher: blake3.New()}, st.Size(), nil
}

// bodyFile checks a body while it is read. It isn't safe for concurrent use.
type bodyFile struct {
	f      *os.File
	want   Hash
	hasher hash.Hash
}

func (b *bodyFile) Read(p []byte) (int, error) {
	n, err := b.f.Read(p)
	b.hasher.Write(p[:n]) // never fails
	if errors.Is(err, io.EOF) {
		var got Hash
		b.hasher.Sum(got[:0])
		if got != b.want {
			b.aside()
			return n, fmt.Errorf("cannot use body %s from its file: %w", b.want, ErrBody)
		}
	}
	return n, err
}

// damaged ends the name of a body that was put aside. Collect removes it with the body.
const damaged = ".damaged"

// aside takes a damaged body's name away, as far as this process may: from then on
// it is known to be missing, and stored anew when its content comes again.
func (b *bodyFile) aside() {
	mine, err := b.f.Stat()
	if now, nerr := os.Lstat(b.f.Name()); err == nil && nerr == nil && os.SameFile(mine, now) {
		_ = os.Rename(b.f.Name(), b.f.Name()+damaged)
	}
}

func (b *bodyFile) Close() error { return b.f.Close() }

// sweepTemps removes what processes that died left half-written. Those alive
// hold a lock on theirs; the age covers the moment before they have it. What
// can't be removed now is met again by the next Open.
func sweepTemps(dir string) {
	entries, err := os.ReadDir(filepath.Join(dir, tmpDir))
	if err != nil {
		return
	}
	for _, e := range entries {
		p := filepath.Join(dir, tmpDir, e.Name())
		st, err := e.Info()
		if err != nil || !st.Mode().IsRegular() || time.Since(st.ModTime()) < time.Minute {
			continue
		}
		f, err := os.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(p)
		}
		f.Close() // only read
	}
}
