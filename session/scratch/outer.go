package scratch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/policy/git"
	"stepbox/session/frozen"
)

// The repository of a project that is a linked working tree, a submodule or a part
// of a working tree lies outside of the project, and what a session writes there is
// in an upper folder of its own, which no checkpoint has: a throw-away sandbox gets
// a copy.

// outer is the folder of that repository if the session wrote references there;
// nil else. The error says why the session didn't show it.
func (s *Scratch) outer() (*repository, error) {
	folder, err := git.Outer(s.cfg.Workspace)
	if err != nil || s.cfg.Folder == "" {
		return nil, err
	}
	gone := folder == ""
	if taken, _, err := frozen.Load(s.cfg.Folder); err != nil || gone && taken.From == "" {
		return nil, err
	}
	switch {
	case !s.cfg.outerChanged():
		return nil, nil
	case gone:
		return &repository{trouble: "its commits can't be fetched, since the project is no working tree of its repository any more: make it one again (git worktree repair), and apply again"}, nil
	}
	return &repository{dir: folder}, nil
}

// outerChanged says whether the session wrote references there.
func (c *Config) outerChanged() (changed bool) {
	for name := range references {
		_ = filepath.WalkDir(filepath.Join(c.outer(), name), func(_ string, d fs.DirEntry, err error) error {
			changed = changed || err == nil && !d.IsDir()
			return nil // what can't be read is of no use
		})
	}
	return changed
}

// outerModules are the submodules whose repositories lie in that folder, and where the
// session wrote references: nothing takes their commits over, which has to be said.
func (s *Scratch) outerModules() (out []*repository) {
	g := frozen.Git{Project: s.cfg.Workspace, Folder: s.cfg.Folder}
	if s.cfg.Folder == "" || g.Beyond(frozen.Taken{}) != nil || g.Outer == "" {
		return nil
	}
	found, own := make(map[string]bool), filepath.Join(s.cfg.outer(), g.At) // the working tree's
	is := func(dir string) bool {
		_, err := os.Lstat(filepath.Join(g.Outer, g.At, strings.TrimPrefix(dir, ".git/"), "HEAD"))
		return err == nil
	}
	_ = filepath.WalkDir(filepath.Join(own, "modules"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // as in outer
		}
		dir := ofReference(".git/"+strings.TrimPrefix(path, own+"/"), is)
		if folder := strings.TrimPrefix(dir, ".git/modules/"); folder != dir && !found[dir] && len(found) < maxRepositories {
			found[dir] = true
			out = append(out, &repository{folder: folder, trouble: "what the agent committed in this submodule can't be fetched, since its repository is outside of the project: " +
				"have it put into a file there (git bundle create FILE HEAD), and apply that"})
		}
		return nil
	})
	return out
}

// outer is what the session wrote of that repository: its overlay's upper folder.
func (c *Config) outer() string { return filepath.Join(c.Folder, "outer", "upper") }

// at is where a repository's folder is.
func (s *Scratch) at(r *repository) string {
	if filepath.IsAbs(r.dir) {
		return r.dir
	}
	return filepath.Join(s.cfg.Workspace, r.dir)
}

// straight says whether the folder of a repository is one that no link leads to: in
// the project, or the one outside that leads back to it.
func (s *Scratch) straight(r *repository) bool {
	if !filepath.IsAbs(r.dir) {
		real, err := filepath.EvalSymlinks(s.at(r))
		return err == nil && real == s.at(r)
	}
	folder, err := git.Outer(s.cfg.Workspace)
	return err == nil && folder == r.dir
}

// Bounds of a copy.
const (
	maxCopied = 4 << 30 // bytes
	maxNames  = 500_000
)

// copyUpper copies an overlay's upper folder that a session may be writing: files,
// folders, links and whiteouts, objects last, so that whatever a copied reference
// names was there before it. Nothing in it is trusted.
func copyUpper(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("cannot copy what the session wrote of the project's repository: %w", err)
	}
	left, names := int64(maxCopied), maxNames
	one := func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(path, from), "/")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // it is gone again, or closed to the agent's own git
		}
		if err != nil {
			return err
		}
		if names--; names < 0 {
			return fmt.Errorf("it has more than %d files", maxNames)
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			err = os.Mkdir(target, 0o700)
			if errors.Is(err, fs.ErrExist) {
				err = nil
			}
			if buf := make([]byte, 1); err == nil {
				if n, _ := unix.Lgetxattr(path, "user.overlay.opaque", buf); n == 1 {
					err = unix.Lsetxattr(target, "user.overlay.opaque", buf, 0)
				}
			}
			return err
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return nil // as above
			}
			return os.Symlink(link, target)
		case d.Type()&fs.ModeCharDevice != 0:
			return unix.Mknod(target, unix.S_IFCHR, 0)
		case d.Type().IsRegular():
			n, err := copyRegular(path, target, left)
			left -= n
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				err = nil // as above
			}
			return err
		}
		return nil
	}
	objects := filepath.Join(from, "objects")
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if path == objects {
			return filepath.SkipDir
		}
		return one(path, d, err)
	})
	if err == nil {
		err = filepath.WalkDir(objects, one)
	}
	if err != nil {
		return fmt.Errorf("cannot copy what the session wrote of the project's repository: %w", err)
	}
	return nil
}

// copyRegular copies a file that is one, and not too large, from where anybody may
// have put something else and may still write.
func copyRegular(from, to string, most int64) (n int64, err error) {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, errors.Join(err, errors.New("it isn't a regular file"))
	}
	if info.Size() > most {
		return 0, fmt.Errorf("it has more than %d bytes", most)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, io.LimitReader(in, info.Size()))
	return n, errors.Join(err, out.Close())
}
