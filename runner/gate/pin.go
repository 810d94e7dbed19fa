package gate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"
)

// maxPinned bounds the files whose contents are compared, in bytes: each by
// itself, and the arguments of one exec together.
const maxPinned = 256 << 20

// maxScripts is how many arguments of one exec are looked at as files.
const maxScripts = 64

// pin notes what the files behind an exec are, those that the agent can write
// with their contents, and what can't be held to that.
func (e *Exec) pin() error {
	var late, large []string
	for i := range e.image.files {
		f := &e.image.files[i]
		if err := f.pin(&e.gate.contents); err != nil {
			return err
		}
		if i < len(e.image.files)-1 && !f.fixed {
			late = append(late, f.path)
		}
		if f.large {
			large = append(large, f.path)
		}
	}
	if l := e.image.linker; l != nil {
		if err := l.pin(&e.gate.contents); err != nil {
			return err
		}
		if !l.fixed {
			e.Linker = l.path
			e.Unpinned = append(e.Unpinned, "the agent can change its dynamic linker "+l.path+" while it starts")
		}
	}
	read, err := e.pinScripts()
	if err != nil {
		return err
	}
	late = append(late, read...)
	for i := range e.scripts {
		if s := &e.scripts[i]; s.large {
			large = append(large, s.path)
		}
	}
	if len(late) > 0 {
		e.Unpinned = append(e.Unpinned, "it is read when it runs, after the answer: "+strings.Join(late, ", "))
	}
	if len(large) > 0 {
		e.Unpinned = append(e.Unpinned, fmt.Sprintf("larger than %d MiB, so that only size and times are compared: %s", maxPinned>>20, strings.Join(large, ", ")))
	}
	if f := e.image.loaded(); !f.fixed && !textProtected() {
		e.Unpinned = append(e.Unpinned, "this kernel lets the file of a running program be written: "+f.path)
	}
	e.contents, e.elsewhere = e.digestContents(true), e.digestContents(false)
	return nil
}

// script is a file that an argument names and that the program may read its
// commands from.
type script struct {
	argument string
	file
}

// pinScripts finds the arguments that are files which the agent can write, and
// lists what is read of them, folders too, once the program runs.
func (e *Exec) pinScripts() (late []string, err error) {
	if e.gate.o.Scripts == nil {
		return nil, nil
	}
	left := int64(maxPinned)
	var pipes []string
	for i, argument := range e.gate.o.Scripts(e) {
		if i == maxScripts {
			e.Unpinned = append(e.Unpinned, fmt.Sprintf("of its arguments only the first %d are compared as files", maxScripts))
			break
		}
		f, kind := e.view.script(argument)
		switch {
		case kind == unix.S_IFDIR:
			late = append(late, f.path)
		case (kind == unix.S_IFIFO || kind == unix.S_IFCHR) && argument != standardInput:
			pipes = append(pipes, argument)
			e.Pipes = append(e.Pipes, f.stat.Ino)
		}
		if kind != unix.S_IFREG {
			continue
		}
		late = append(late, f.path)
		e.scripts = append(e.scripts, script{argument, f})
		s := &e.scripts[len(e.scripts)-1]
		if s.stat.Size > left {
			s.large = true
			continue
		}
		left -= s.stat.Size
		if err := s.pin(&e.gate.contents); err != nil {
			return nil, err
		}
	}
	if len(pipes) > 0 {
		e.Unpinned = append(e.Unpinned, "nobody can look into the pipes that it is given to read: "+strings.Join(pipes, ", "))
	}
	return late, nil
}

// standardInput is often a pipe, whose other end is in the same question.
const standardInput = "/dev/stdin"

// script looks an argument up as something that the agent can write: a regular
// file, which is returned open, a folder, a pipe or a terminal. Its kind is 0 for all else.
func (v *view) script(argument string) (f file, kind uint32) {
	fd, err := v.lookup(v.cwd, argument, false)
	if err != nil {
		return file{}, 0
	}
	f = file{fd: fd}
	var fs unix.Statfs_t
	f.path, err = readLink(unix.AT_FDCWD, selfFD(fd))
	if err == nil && unix.Fstat(fd, &f.stat) == nil && unix.Fstatfs(fd, &fs) == nil && fs.Flags&unix.ST_RDONLY == 0 {
		switch f.stat.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			if !acts(fd) {
				return f, unix.S_IFREG
			}
		case unix.S_IFDIR, unix.S_IFIFO:
			kind = f.stat.Mode & unix.S_IFMT
		case unix.S_IFCHR:
			if isTerminal(f.stat.Rdev) {
				kind = unix.S_IFCHR
			}
		}
	}
	_ = unix.Close(fd)
	return f, kind
}

// Contents is a digest that stands for all files that the exec would run, and
// for those of its arguments from which it may read its commands.
func (e *Exec) Contents() [32]byte { return e.contents }

// Cover is Contents of an exec that is decided by them: from then on Allow
// compares what is in the files too, and not only their times.
func (e *Exec) Cover() [32]byte {
	e.covered.Store(true)
	return e.contents
}

// Elsewhere is Contents but for the devices, which each sandbox has of its own: two
// sandboxes over the same files have the same one.
func (e *Exec) Elsewhere() [32]byte { return e.elsewhere }

func (e *Exec) digestContents(devices bool) (sum [32]byte) {
	h := blake3.New()
	put := func(f *file) {
		dev := f.stat.Dev
		if !devices {
			dev = 0
		}
		_ = binary.Write(h, binary.BigEndian, []uint64{ // a hash never fails
			dev, f.stat.Ino, uint64(f.stat.Size), uint64(f.stat.Ctim.Nano()), uint64(len(f.path)),
		})
		_, _ = h.WriteString(f.path)
		_, _ = h.Write(f.hash[:])
	}
	for i := range e.image.files {
		put(&e.image.files[i])
	}
	if e.image.linker != nil {
		put(e.image.linker)
	}
	for i := range e.scripts {
		put(&e.scripts[i].file)
	}
	h.Sum(sum[:0])
	return sum
}

// unchanged says what about the files of an exec is no longer as it was shown.
func (e *Exec) unchanged() error {
	files := make([]*file, 0, len(e.image.files)+1+len(e.scripts))
	for i := range e.image.files {
		files = append(files, &e.image.files[i])
	}
	if e.image.linker != nil {
		files = append(files, e.image.linker)
	}
	covered := e.covered.Load()
	if covered {
		if err := e.sameScripts(); err != nil {
			return err
		}
		for i := range e.scripts {
			files = append(files, &e.scripts[i].file)
		}
	}
	for _, f := range files {
		if !f.unchanged() {
			return fmt.Errorf("the file %q changed while it was held", f.path)
		}
		if !covered || f.fixed || f.large {
			continue
		}
		if hash, err := f.content(); err != nil || hash != f.hash {
			return fmt.Errorf("the file %q was written to while it was held", f.path)
		}
	}
	return nil
}

// sameScripts looks the arguments up again: another file may have got the name.
func (e *Exec) sameScripts() error {
	if err := e.sameFolder(); err != nil {
		return err
	}
	for i := range e.scripts {
		s := &e.scripts[i]
		f, kind := e.view.script(s.argument)
		if kind != unix.S_IFREG {
			return fmt.Errorf("the file %q went away while it was held", s.path)
		}
		_ = unix.Close(f.fd)
		if !same(&f.stat, &s.stat) {
			return fmt.Errorf("the file %q changed while it was held", s.path)
		}
	}
	return nil
}

// sameFolder looks the working directory up again, which another thread of the
// caller may have changed.
func (e *Exec) sameFolder() error {
	var was, is unix.Stat_t
	if unix.Fstat(e.view.cwd, &was) != nil || unix.Fstatat(int(e.leader), "cwd", &is, 0) != nil || was.Dev != is.Dev || was.Ino != is.Ino {
		return errors.New("its working directory changed while it was held")
	}
	return nil
}
