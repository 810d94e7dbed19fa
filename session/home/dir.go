// Package home keeps the home folders that agents have in the place of the person's:
// one for all sessions of a profile, one for a session alone, or a session's own view of
// the profile's, whose changes a person looks at and takes over.
//
// What is in a home an agent has written, and may be writing just now. So its paths are
// walked by os.Root, which no link leads out of, and only regular files are read or
// written. A Dir may be used from several goroutines.
package home

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Dir is an open folder below which files are read and written.
type Dir struct{ *os.Root }

// Open opens a folder, which its path has to be: no link.
func Open(folder string) (Dir, error) {
	if info, err := os.Lstat(folder); err == nil && !info.IsDir() {
		return Dir{}, fmt.Errorf("cannot use %q as a home folder: it isn't a folder", folder)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Dir{}, fmt.Errorf("cannot open the home folder: %w", err)
	}
	return Dir{root}, nil
}

// ErrNotFile is returned for what is no regular file.
var ErrNotFile = errors.New("it isn't a regular file")

// Read reads a regular file, no link, of at most so many bytes. Its mode tells whether
// it is executable.
func (d Dir) Read(rel string, most int64) ([]byte, fs.FileMode, error) {
	info, err := d.Lstat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, cmp.Or(err, ErrNotFile)
	}
	f, err := d.OpenFile(rel, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil || !os.SameFile(info, now) { // a link since
		return nil, 0, cmp.Or(err, ErrNotFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return data, now.Mode(), err
}

// Write writes a file of the caller's alone, and the folders above it, in one step: in
// the place of a file, a link or a pipe of that name, which isn't followed. A file that
// is the same already stays.
func (d Dir) Write(rel string, data []byte, executable bool) error {
	mode := fs.FileMode(0o600)
	if executable {
		mode = 0o700
	}
	if was, m, err := d.Read(rel, int64(len(data))); err == nil && m.Perm() == mode && bytes.Equal(was, data) {
		return nil
	}
	if err := d.MkdirAll(path.Dir(rel), 0o700); err != nil {
		return err
	}
	temp := filepath.Join(path.Dir(rel), ".stepbox-"+rand.Text())
	f, err := d.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil { // whatever the umask
		err = d.Rename(temp, rel)
	}
	if err != nil {
		_ = d.Remove(temp)
	}
	return err
}

// linked says whether something above a file is no folder, such as a link, which would have
// a write or a removal reach another file of the home.
func (d Dir) linked(rel string) bool {
	for above := path.Dir(rel); above != "."; above = path.Dir(above) {
		if info, err := d.Lstat(above); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}
