package home

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"stepbox/session/judge"
)

// Bounds on what is looked at: the files of a home that programs obey, and how far down and
// through how many links they are looked for.
var maxLooked = 30_000 // tests have less

const (
	maxDeep  = 64
	maxLinks = 40
)

// look finds what programs obey of a home, and what that leads to within it. It reads no
// file, so it may be done often.
type look struct {
	Dir
	inside string           // where the home is in the sandbox
	files  map[string]saved // without what is in them
	went   map[string]bool  // folders that were looked into
	left   int              // how many files may still be looked at
}

// lookAt looks at all that programs obey. Of what is beyond the bounds the folder is in the
// result, which says so.
func (d Dir) lookAt(inside string) *look {
	l := &look{Dir: d, inside: inside, files: map[string]saved{}, went: map[string]bool{}, left: maxLooked}
	names := judge.ObeyedNames()
	folder := func(name string) int {
		if info, err := d.Stat(name); err == nil && info.IsDir() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(folder(a), folder(b)) }) // no folder uses up what files need
	for _, name := range names {
		l.name(name, "", 0)
	}
	return l
}

// name looks at a file or folder, through the links on its way. By is the link that leads there.
func (l *look) name(rel, by string, links int) {
	rest := strings.Split(rel, "/")
	for i := range rest {
		at := path.Join(rest[:i+1]...)
		info, err := l.Lstat(at)
		switch {
		case err != nil:
			return
		case info.Mode()&fs.ModeSymlink != 0:
			l.add(at, by, stat(info))
			l.follow(at, path.Join(rest[i+1:]...), links)
			return
		case i < len(rest)-1:
		case info.IsDir():
			l.folder(rel, by, links)
		default:
			l.add(rel, by, stat(info))
		}
	}
}

// stat is a status as the kernel gave it.
func stat(info fs.FileInfo) *unix.Stat_t {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return &unix.Stat_t{}
	}
	return &unix.Stat_t{Ino: st.Ino, Mode: st.Mode, Size: st.Size, Ctim: unix.Timespec(st.Ctim)}
}

// follow looks at what a link leads to, and below that, as far as it is in the home.
func (l *look) follow(link, below string, links int) {
	to := l.files[link].Link
	if path.IsAbs(to) {
		rel, err := filepath.Rel(l.inside, path.Clean(to))
		if l.inside == "" || err != nil {
			return
		}
		to = rel
	} else {
		to = path.Join(path.Dir(link), to)
	}
	to = path.Join(to, below)
	switch {
	case !filepath.IsLocal(to):
	case links >= maxLinks, strings.HasPrefix(link, to+"/"), to == ".":
		l.cut(link, "it leads to a folder that it is in itself")
	default:
		l.name(to, link, links+1)
	}
}

// folder looks at all in a folder that is no link.
func (l *look) folder(rel, by string, links int) {
	f, err := l.OpenFile(rel, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil { // what can't be looked into isn't obeyed by who can't either
		return
	}
	defer f.Close()
	l.within(f, rel, by, links)
}

func (l *look) within(f *os.File, rel, by string, links int) {
	if l.went[rel] {
		return
	}
	l.went[rel] = true
	names, _ := f.Readdirnames(l.left + 1) // as far as it can be read
	slices.Sort(names)
	for _, name := range names {
		at := path.Join(rel, name)
		if l.left <= 0 || strings.Count(at, "/") > maxDeep {
			l.cut(rel, fmt.Sprintf("programs obey more than %d files, or files more than %d folders deep: what else is in it isn't known", maxLooked, maxDeep))
			return
		}
		l.entry(f, at, name, by, links)
	}
}

// entry looks at what is of some name in an open folder.
func (l *look) entry(f *os.File, at, name, by string, links int) {
	l.left--
	var st unix.Stat_t
	if unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		fd, err := unix.Openat(int(f.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			below := os.NewFile(uintptr(fd), name)
			l.within(below, at, by, links)
			_ = below.Close() // it was only read
		}
	case unix.S_IFLNK:
		l.add(at, by, &st)
		l.follow(at, "", links)
	default:
		l.add(at, by, &st)
	}
}

// cut notes that something isn't looked at whole.
func (l *look) cut(rel, why string) {
	s := l.files[rel]
	s.Unknown = why
	l.files[rel] = s
}

// add notes one file or link.
func (l *look) add(rel, by string, st *unix.Stat_t) {
	if s, has := l.files[rel]; has {
		if by == "" && s.By != "" {
			s.By = ""
			l.files[rel] = s
		}
		return
	}
	s := saved{By: by, Size: st.Size, Executable: st.Mode&0o100 != 0, Seen: fmt.Sprintf("%d %d.%09d %d", st.Ino, st.Ctim.Sec, st.Ctim.Nsec, st.Size)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFLNK:
		link, err := l.Readlink(rel)
		if s.Link, s.Executable = link, false; err != nil {
			s.Not = "it is a link that can't be read"
		}
	default:
		s.Not = "it is neither a file nor a link"
	}
	l.files[rel] = s
}
