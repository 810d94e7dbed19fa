package frozen

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
)

// Bounds of what is taken of a project's repositories.
const (
	maxNames  = 300_000
	maxCopied = 512 << 20 // bytes of files that are copied
	maxStored = 128 << 20 // bytes of objects that are, where they can't be linked
)

// errApart says that an object store can't be linked to where the session's files are.
var errApart = errors.New("the object store can't be shared by hard links")

// how is what becomes of a file of a repository.
type how int

const (
	copied  how = iota // git, or a person's editor, may write it in place
	linked             // git only ever replaces it: another name for the same file will do
	objects            // as linked, and too much to be copied
	beside             // another program's: as copied, but for what its name says the content of
)

// copier copies repositories' folders.
type copier struct {
	names  int
	bytes  int64
	stored int64 // bytes of object stores that may be copied
	layer  bool  // what is copied is a layer, in which a folder may hide what is behind it
	seen   []seen
	locked bool // git was about to write something of it
}

// seen is a file or a folder of what git writes, as it was when it was copied.
type seen struct {
	path  string
	inode uint64
	size  int64
	wrote unix.Timespec
}

func look(path string) seen {
	var st unix.Stat_t
	_ = unix.Lstat(path, &st) // else it is gone, and like nothing that was seen
	return seen{path, st.Ino, st.Size, st.Mtim}
}

// moved says whether git has written something since of what was copied, or made or removed.
func (c *copier) moved() bool {
	return slices.ContainsFunc(c.seen, func(s seen) bool { return s != look(s.path) })
}

// later is a folder that is left for later.
type later struct {
	path string
	as   how
}

// gits are folders of a repository's in which git itself has what may be named by hashes, or
// other repositories: see gitrepository-layout(5).
var gits = map[string]how{
	"objects":    objects,
	"refs":       linked,
	"reftable":   linked,
	"logs":       copied,
	"lost-found": copied,
	"modules":    copied,
	"worktrees":  copied,

	"rebase-merge": copied,
	"rebase-apply": copied,
	"sequencer":    copied,
}

// below says what becomes of what is in a folder of another. Folders that are called as a
// repository's may be a submodule's, or a log's, which git writes in place.
func (h how) below(from, name string) how {
	in := func(name string) bool { return exists(filepath.Join(from, name)) }
	if h == linked || h == objects || !in("HEAD") || !in("objects") && !in("commondir") {
		return h
	}
	if as, own := gits[name]; own {
		return as
	}
	return beside
}

// passing says whether a file is one that only lives while git is at work.
func passing(name string, h how) bool {
	return h == objects && strings.HasPrefix(name, "tmp_") || h != objects && strings.HasSuffix(name, ".lock")
}

// folder copies a folder. The object stores in it are left for later, so that whatever a
// copied reference names is there by then, and so is what may be large and isn't git's, so
// that what is git's is of one time; what comes back are their paths below from.
func (c *copier) folder(from, to string, h how) (rest []later, err error) {
	c.see(from, h)
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if mark := make([]byte, 1); c.layer {
		if n, _ := unix.Lgetxattr(from, inode.Opaque, mark); n == 1 {
			if err := unix.Lsetxattr(to, inode.Opaque, mark, 0); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range entries {
		if c.names--; c.names < 0 {
			return nil, fmt.Errorf("it has more than %d files", maxNames)
		}
		name := e.Name()
		source, target := filepath.Join(from, name), filepath.Join(to, name)
		switch below := h.below(from, name); {
		case passing(name, h):
			c.locked = true
		case e.IsDir() && below != h && (below == objects || below == beside):
			rest = append(rest, later{name, below})
		case e.IsDir():
			more, err := c.folder(source, target, below)
			if err != nil {
				return nil, err
			}
			for _, l := range more {
				rest = append(rest, later{filepath.Join(name, l.path), l.as})
			}
		default:
			c.see(source, h)
			if err := c.entry(e, source, target, h); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return rest, inode.Look(to, from)
}

// see notes what is about to be copied, where git and nobody else writes.
func (c *copier) see(path string, h how) {
	if !c.layer && (h == copied || h == linked) {
		c.seen = append(c.seen, look(path))
	}
}

// entry copies what isn't a folder. What no repository has, as sockets, is left out.
func (c *copier) entry(e fs.DirEntry, from, to string, h how) error {
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !e.Type().IsRegular():
		return nil
	case h == copied || h == beside && !hashed().MatchString(to):
		return c.file(from, to)
	}
	err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, 0)
	switch {
	case err == nil || err == unix.ENOENT:
		return err
	case h != objects:
		return c.file(from, to)
	}
	return errApart
}

// file copies a file, with its mode and its times.
func (c *copier) file(from, to string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil // closed to the agent's git as to the person's
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, c.bytes+1))
	if c.bytes -= n; err == nil && c.bytes < 0 {
		err = fmt.Errorf("besides its objects it has more than %d MiB", maxCopied>>20)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return inode.Look(to, from)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// size is how many bytes are in a folder's files.
func size(folder string) (n int64) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // else it is gone
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
