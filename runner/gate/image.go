package gate

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryFile is how the kernel calls files that memfd_create(2) made, which are in no mount of anybody's.
const memoryFile = "/memfd:"

// file is a regular file that was looked up, kept open with O_PATH so that
// its inode number can't go to another one.
type file struct {
	fd     int
	path   string
	stat   unix.Stat_t
	mount  uint64
	mapped string // its name to whoever maps it

	fixed    bool     // it is on a mount that nobody in the sandbox can write to
	unsealed bool     // in memory and can be written at any time
	large    bool     // too large to be hashed
	hash     [32]byte // of its content when it was looked up, unless fixed or large
}

// same says whether two looks at files met the same one, unchanged. The time
// of the last change can't be set by hand.
func same(a, b *unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Ctim == b.Ctim && a.Mtim == b.Mtim
}

// unchanged says whether a file is what it was when it was looked up.
func (f *file) unchanged() bool {
	var st unix.Stat_t
	return unix.Fstat(f.fd, &st) == nil && same(&f.stat, &st)
}

// image is what an exec is going to run: the file that was named, the scripts'
// interpreters in turn, and the program that the kernel loads in the end.
type image struct {
	files  []file   // named first, loaded last
	linker *file    // dynamic linker that is started in the loaded program's place, if any
	prefix []string // what takes argv[0]'s place when the first is a script
}

func (i *image) close() {
	for _, f := range i.files {
		_ = unix.Close(f.fd)
	}
	i.files = nil
	if i.linker != nil {
		_ = unix.Close(i.linker.fd)
		i.linker = nil
	}
}

// refusal says why an image may not run whoever allows it, if so.
func (i *image) refusal() string {
	files := i.files
	if i.linker != nil {
		files = append(files[:len(files):len(files)], *i.linker)
	}
	for _, f := range files {
		if f.unsealed {
			return "its file " + f.path + " is in memory and not sealed against writing (F_SEAL_WRITE)"
		}
	}
	return ""
}

func (i *image) named() *file  { return &i.files[0] }
func (i *image) loaded() *file { return &i.files[len(i.files)-1] }

// unreadable says that a program can't be checked, as its file can't be read.
type unreadable struct{ path string }

func (u unreadable) Error() string {
	return fmt.Sprintf("cannot check %q: its file cannot be read", u.path)
}

// place says which file an exec names: a path from a folder, or an open file.
type place struct {
	from     int // folder for relative paths
	path     string
	open     int    // the file itself when path is empty, else -1
	name     string // what the kernel calls it towards the program (AT_EXECFN)
	noFollow bool
}

// resolve finds what an exec would run. Errors of type unix.Errno are what
// the thread would get from the kernel.
func (v *view) resolve(p place) (*image, error) {
	img := &image{}
	name := p.name
	for depth := 0; ; depth++ {
		fd, err := v.find(p)
		if err != nil {
			img.close()
			return nil, err
		}
		f, program, err := v.examine(fd)
		if err != nil {
			_ = unix.Close(fd)
			img.close()
			return nil, err
		}
		img.files = append(img.files, f)
		switch headFormat(program.head) {
		case formatELF:
			if img.linker, err = v.linker(program.linker); err != nil {
				img.close()
				return nil, err
			}
			return img, nil
		case formatOther:
			img.close()
			return nil, unix.ENOEXEC
		}
		if depth == maxInterpreters {
			img.close()
			return nil, unix.ELOOP
		}
		interpreter, argument, has, err := parseScript(program.head)
		if err != nil {
			img.close()
			return nil, err
		}
		if interpreter == "" { // the kernel takes it for the working directory
			img.close()
			return nil, unix.EACCES
		}
		// The kernel puts the interpreter, its argument and the script's
		// name where the first argument was.
		front := []string{interpreter}
		if has {
			front = append(front, argument)
		}
		front = append(front, name)
		if len(img.prefix) > 0 {
			img.prefix = img.prefix[1:]
		}
		img.prefix = append(front, img.prefix...)
		name = interpreter
		p = place{from: v.cwd, path: interpreter, open: -1}
	}
}

func (v *view) find(p place) (int, error) {
	if p.path == "" && p.open >= 0 {
		return unix.FcntlInt(uintptr(p.open), unix.F_DUPFD_CLOEXEC, 0)
	}
	return v.lookup(p.from, p.path, p.noFollow)
}

// linker finds a dynamic linker. One that the kernel can't start is none: the
// exec fails.
func (v *view) linker(path string) (*file, error) {
	if path == "" {
		return nil, nil
	}
	fd, err := v.lookup(v.cwd, path, false)
	if err != nil {
		return nil, nil
	}
	f, _, err := v.examine(fd)
	if err == nil {
		return &f, nil
	}
	_ = unix.Close(fd)
	if errors.As(err, new(unreadable)) {
		return nil, err
	}
	return nil, nil
}

// examine checks that an open file can be run, and reads what kind it is. It owns
// the descriptor only when it succeeds.
func (v *view) examine(fd int) (file, program, error) {
	f := file{fd: fd}
	on, err := v.programs.stat(&f)
	if err != nil {
		return f, program{}, err
	}
	if f.stat.Mode&unix.S_IFMT != unix.S_IFREG || f.stat.Mode&0o111 == 0 || on.flags&unix.ST_NOEXEC != 0 {
		return f, program{}, unix.EACCES
	}
	f.fixed = on.flags&unix.ST_RDONLY != 0
	if f.path, err = readLink(unix.AT_FDCWD, selfFD(fd)); err != nil {
		return f, program{}, err
	}
	if !strings.HasPrefix(f.path, memoryFile) {
		if err := v.programs.belongs(v.proc, f.mount); err != nil {
			return f, program{}, fmt.Errorf("cannot run %q: %w", f.path, err)
		}
	}
	p, err := v.programs.of(&f, on.kind)
	f.unsealed, f.mapped = p.unsealed, p.mapped
	return f, p, err
}
