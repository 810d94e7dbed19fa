package gate

import (
	"cmp"
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

// maxScripts is how many arguments of one exec are looked at as files, those from other folders included.
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

// script is an argument that may be a file from which the program reads its commands, and
// what it was when it was looked up. The file is open only if it is a regular one that the
// agent can write.
type script struct {
	argument string
	was      thing
	speaks   bool // others can write to it while it is read
	file
}

// thing is what a path leads to, links followed; the zero value is nothing.
type thing struct {
	dev, ino uint64
	mode     uint32 // the type alone
}

// regular says whether the script is a file that is compared by its content too.
func (s *script) regular() bool { return s.fd >= 0 }

// pinScripts notes what the arguments lead to from which the program may read its commands, and
// lists what is read of them, folders too, once the program runs. A path that leads nowhere now is
// remembered like one that does: what it leads to at the start has to be the same.
func (e *Exec) pinScripts() (late []string, err error) {
	if e.gate.o.Scripts == nil {
		return nil, nil
	}
	left := int64(maxPinned)
	arguments := e.gate.o.Scripts(e)
	given := len(arguments)
	for i := 0; i < len(arguments) && i < maxScripts; i++ {
		s := e.view.script(arguments[i])
		e.scripts = append(e.scripts, s)
		switch {
		case s.was.mode == unix.S_IFDIR && i < given:
			arguments = append(arguments, within(s.argument, arguments[:given])...)
		case s.regular():
			if err := e.scripts[i].compare(&left, &e.gate.contents); err != nil {
				return nil, err
			}
		}
		if s.regular() || s.was.mode == unix.S_IFDIR && s.path != "" {
			late = append(late, s.path)
		}
	}
	if len(arguments) > maxScripts {
		e.Unpinned = append(e.Unpinned, fmt.Sprintf("of its arguments only the first %d are compared as files", maxScripts))
	}
	e.namePipes()
	return late, nil
}

// compare has a script be compared by its content, if that isn't more than what is left.
func (s *script) compare(left *int64, known *contents) error {
	if s.large = s.stat.Size > *left; s.large {
		return nil
	}
	*left -= s.stat.Size
	return s.pin(known)
}

// namePipes says which of the scripts others write while they are read.
func (e *Exec) namePipes() {
	var pipes []string
	for i := range e.scripts {
		s := &e.scripts[i]
		if s.speaks && s.argument != standardInput {
			pipes = append(pipes, s.argument)
			e.Pipes = append(e.Pipes, s.was.ino)
		}
	}
	if len(pipes) > 0 {
		e.Unpinned = append(e.Unpinned, "nobody can look into the pipes that it is given to read: "+strings.Join(pipes, ", "))
	}
}

// within are the arguments as they are from a folder that is one of them, where programs may go
// first: env -C FOLDER sh FILE.
func within(folder string, arguments []string) (out []string) {
	for _, a := range arguments {
		if a != folder && !strings.HasPrefix(a, "/") {
			out = append(out, folder+"/"+a)
		}
	}
	return out
}

// standardInput is often a pipe, whose other end is in the same question.
const standardInput = "/dev/stdin"

// script looks an argument up. Its path is only told of what the agent can write, or speak
// through.
func (v *view) script(argument string) script {
	s := script{argument: argument, file: file{fd: -1}}
	fd, err := v.lookup(v.cwd, argument, false)
	if err != nil {
		return s
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		s.was = thing{st.Dev, st.Ino, st.Mode & unix.S_IFMT}
	}
	var fs unix.Statfs_t
	path, err := readLink(unix.AT_FDCWD, selfFD(fd))
	if s.was == (thing{}) || err != nil || unix.Fstatfs(fd, &fs) != nil || fs.Flags&unix.ST_RDONLY != 0 {
		_ = unix.Close(fd)
		return s
	}
	s.speaks = speaks(fd, &st)
	switch {
	case s.was.mode == unix.S_IFREG && !s.speaks:
		s.file = file{fd: fd, path: path, stat: st}
		return s
	case s.was.mode == unix.S_IFDIR, s.speaks:
		s.path = path
	}
	_ = unix.Close(fd)
	return s
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
		s := &e.scripts[i]
		if s.regular() {
			put(&s.file)
			continue
		}
		was := s.was
		if !devices {
			was.dev, was.ino = 0, 0
		}
		_ = binary.Write(h, binary.BigEndian, was)
	}
	h.Sum(sum[:0])
	return sum
}

// Unchanged says what about the files of an exec is no longer as it was shown, by their content where the agent can write them, if the
// exec is decided by that. It is for OnBegin.
func (e *Exec) Unchanged() error {
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
			if e.scripts[i].regular() {
				files = append(files, &e.scripts[i].file)
			}
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
		was := &e.scripts[i]
		is := e.view.script(was.argument)
		procDir(is.fd).close()
		switch {
		case is.was == was.was && is.regular() == was.regular() && (!is.regular() || same(&is.stat, &was.stat)):
		case is.was == thing{}:
			return fmt.Errorf("the file %q went away while it was held", was.name())
		case was.was == thing{}:
			return fmt.Errorf("the file %q was made while it was held", was.name())
		default:
			return fmt.Errorf("the file %q changed while it was held", was.name())
		}
	}
	return nil
}

// name is what a person knows a script by.
func (s *script) name() string { return cmp.Or(s.path, s.argument) }

// sameFolder looks the working directory up again, which another thread of the
// caller may have changed.
func (e *Exec) sameFolder() error {
	var was, is unix.Stat_t
	if unix.Fstat(e.view.cwd, &was) != nil || unix.Fstatat(int(e.leader), "cwd", &is, 0) != nil || was.Dev != is.Dev || was.Ino != is.Ino {
		return errors.New("its working directory changed while it was held")
	}
	return nil
}
