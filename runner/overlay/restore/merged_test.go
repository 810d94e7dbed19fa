package restore

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// mutation is one thing that an agent does to a file through the merged view.
type mutation struct {
	Op       string
	Path, To string
	Data     []byte
	N, M     int64
	// From 1 on, Pick puts what exists in Path's place, or for what makes
	// something a directory that exists before Path; PickTo before To.
	Pick, PickTo int
}

// resolve follows Pick and PickTo, so that most of a random history happens.
func (m mutation) resolve(merged string) mutation {
	if m.Pick == 0 && m.PickTo == 0 {
		return m
	}
	var all, dirs, files []string
	var walk func(rel string)
	walk = func(rel string) {
		entries, _ := os.ReadDir(filepath.Join(merged, rel))
		for _, e := range entries {
			p := filepath.Join(rel, e.Name())
			all = append(all, p)
			if e.Type().IsRegular() {
				files = append(files, p)
			}
			if e.IsDir() {
				dirs = append(dirs, p)
				walk(p)
			}
		}
	}
	dirs = append(dirs, "")
	walk("")
	if m.Pick > 0 {
		switch m.Op {
		case "fifo", "socket", "symlink", "mkdir", "write":
			m.Path = filepath.Join(dirs[m.Pick%len(dirs)], filepath.Base(m.Path))
		case "append", "rewrite", "truncate", "touchup", "link":
			if len(files) > 0 {
				m.Path = files[m.Pick%len(files)]
			}
		default:
			if len(all) > 0 {
				m.Path = all[m.Pick%len(all)]
			}
		}
	}
	if m.PickTo > 0 {
		m.To = filepath.Join(dirs[m.PickTo%len(dirs)], filepath.Base(m.To))
	}
	m.Pick, m.PickTo = 0, 0
	return m
}

func (m mutation) String() string {
	return fmt.Sprintf("%s %q %q len=%d %d %d", m.Op, m.Path, m.To, len(m.Data), m.N, m.M)
}

func (m mutation) apply(merged string) error {
	if m = m.resolve(merged); m.Path == "" {
		return errors.New("nothing to pick")
	}
	path, to := filepath.Join(merged, m.Path), filepath.Join(merged, m.To)
	open := func(flags int) (*os.File, error) {
		f, err := os.OpenFile(path, flags|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, err
		}
		st, err := f.Stat()
		if err == nil && !st.Mode().IsRegular() {
			err = errors.New("not a file")
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	isFile := func() bool {
		st, err := os.Lstat(path)
		return err != nil || st.Mode().IsRegular()
	}
	switch m.Op {
	case "write":
		if !isFile() {
			return errors.New("not a file")
		}
		f, err := open(os.O_CREATE | os.O_TRUNC | os.O_WRONLY)
		if err != nil {
			return err
		}
		_, err = f.Write(m.Data)
		return errors.Join(err, f.Close())
	case "rewrite": // same size, other bytes
		f, err := open(os.O_RDWR)
		if err != nil {
			return err
		}
		st, err := f.Stat()
		if err == nil && st.Size() < 1<<20 {
			b := make([]byte, st.Size())
			_, _ = f.ReadAt(b, 0)
			for i := range b {
				b[i] ^= byte(m.N) | 1
			}
			_, err = f.WriteAt(b, 0)
		}
		return errors.Join(err, f.Close())
	case "truncate": // to N, then to M
		f, err := open(os.O_RDWR)
		if err != nil {
			return err
		}
		return errors.Join(f.Truncate(m.N), f.Truncate(m.M), f.Close())
	case "append":
		f, err := open(os.O_WRONLY | os.O_APPEND)
		if err != nil {
			return err
		}
		_, err = f.Write(m.Data)
		return errors.Join(err, f.Close())
	case "touchup": // copied up without a change
		f, err := open(os.O_RDWR)
		if err != nil {
			return err
		}
		return f.Close()
	case "rename":
		return os.Rename(path, to)
	case "exchange":
		return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	case "link":
		return os.Link(path, to)
	case "symlink":
		return os.Symlink(m.To, path)
	case "fifo":
		return unix.Mkfifo(path, uint32(m.N))
	case "socket":
		return unix.Mknod(path, unix.S_IFSOCK|uint32(m.N), 0)
	case "mkdir":
		return os.Mkdir(path, 0o755)
	case "remove":
		return os.Remove(path)
	case "removeall":
		return removeAll(path)
	case "recreate": // a directory in place of what was there
		if err := removeAll(path); err != nil {
			return err
		}
		return os.Mkdir(path, os.FileMode(m.N&0o777))
	case "chmod":
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return err
		}
		return unix.Chmod(path, uint32(m.N))
	case "setxattr":
		return unix.Lsetxattr(path, m.To, m.Data, 0)
	case "removexattr":
		return unix.Lremovexattr(path, m.To)
	case "utimens":
		ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: m.N, Nsec: m.M}}
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, ts, unix.AT_SYMLINK_NOFOLLOW)
	}
	return fmt.Errorf("unknown mutation %q", m.Op)
}

// removeAll keeps os.RemoveAll from opening a FIFO as the parent.
func removeAll(path string) error {
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// capture looks at everything in the merged view by plain calls, apart from
// the code under test but for the content's hash. Hard links are told by the
// upper's inodes: those of the merged view differ between names.
func capture(merged, upper string) (map[string]seen, error) {
	tree := map[string]seen{}
	groups := map[uint64][]string{}
	var walk func(rel string) error
	walk = func(rel string) error {
		path := filepath.Join(merged, rel)
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return fmt.Errorf("lstat %q: %w", path, err)
		}
		s := seen{Kind: inode.KindOf(&st), Mode: st.Mode & 07777, UID: st.Uid, GID: st.Gid, MTime: manifest.TimeOf(st.Mtim)}
		switch s.Kind {
		case manifest.KindSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			s.Target = target
		case manifest.KindFile:
			s.Size = st.Size
			f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
			if err != nil {
				return err
			}
			c := content.Hasher{Limit: 1 << 62}
			s.Hash, _, err = c.File(bg, int(f.Fd()), st.Size, nil)
			if err = errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("read %q: %w", path, err)
			}
			var ust unix.Stat_t
			if unix.Lstat(filepath.Join(upper, rel), &ust) == nil && ust.Nlink > 1 && ust.Mode&unix.S_IFMT == unix.S_IFREG {
				groups[ust.Ino] = append(groups[ust.Ino], rel)
			}
		}
		if s.Kind == manifest.KindFile || s.Kind == manifest.KindDir {
			var err error
			if s.Xattrs, err = captureXattrs(path); err != nil {
				return fmt.Errorf("xattrs of %q: %w", path, err)
			}
		}
		tree[rel] = s
		if s.Kind != manifest.KindDir {
			return nil
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := walk(filepath.Join(rel, e.Name())); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(""); err != nil {
		return nil, err
	}
	for _, names := range groups {
		if len(names) < 2 {
			continue
		}
		sort.Strings(names)
		for _, n := range names {
			s := tree[n]
			s.Group = strings.Join(names, "|")
			tree[n] = s
		}
	}
	return tree, nil
}

func captureXattrs(path string) (string, error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	if err == syscall.EOPNOTSUPP {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var out []string
	for _, name := range strings.Split(string(buf[:n]), "\x00") {
		if !manifest.Kept(name) {
			continue
		}
		v := make([]byte, 64<<10)
		k, err := unix.Lgetxattr(path, name, v)
		if err != nil {
			return "", err
		}
		out = append(out, fmt.Sprintf("%q=%x", name, v[:k]))
	}
	slices.Sort(out)
	return strings.Join(out, " "), nil
}

// compareTrees says how two captures differ; "" when they don't.
func compareTrees(want, got map[string]seen) string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[path]
		switch w := want[path]; {
		case !ok:
			out = append(out, fmt.Sprintf("%q is missing (%s)", path, w.Kind))
		case g != w:
			out = append(out, fmt.Sprintf("%q:\n  want %+v\n  got  %+v", path, w, g))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[path]; !ok {
			out = append(out, fmt.Sprintf("%q is too many (%s)", path, got[path].Kind))
		}
	}
	return strings.Join(out, "\n")
}
