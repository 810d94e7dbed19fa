package gate

import (
	"cmp"
	"errors"

	"golang.org/x/sys/unix"
)

// input is what a program takes orders from but its arguments: what it has for its standard input,
// and its controlling terminal, which it can open as /dev/tty.
type input struct {
	there    bool // the standard input isn't closed
	dev, ino uint64
	mode     uint32
	rdev     uint64
	open     bool // others can put words into it while the program runs
	file     bool // it is a file that they can write
	own      bool // it is the session's own terminal, at which a person types
	tty      int  // the device number of the terminal; 0 if that is none, or the session's own

	toOut, toErr string // the files that the standard output and error write to, as the sandbox names them; "" for none
}

// input looks at the standard input of a process.
func (d procDir) input() input {
	fd, err := d.open("fd/0", unix.O_PATH)
	if errors.Is(err, unix.ENOENT) {
		return input{}
	}
	unknown := input{there: true, open: true}
	if err != nil {
		return unknown
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return unknown
	}
	in := input{there: true, dev: st.Dev, ino: st.Ino, mode: st.Mode & unix.S_IFMT, rdev: st.Rdev}
	in.open = speaks(fd, &st)
	in.file = !in.open && written(fd, &st)
	return in
}

// speaks says whether what is read from an open file isn't only what lies in it: a pipe, a socket, a
// terminal, a file that the kernel makes up as it is read (a process's own words in /proc), events that
// somebody causes (inotify(7)). Whatever isn't known to be silent speaks.
func speaks(fd int, st *unix.Stat_t) bool {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return acts(fd)
	case unix.S_IFDIR: // it can't be read
		return false
	case unix.S_IFCHR:
		return !silent(st.Rdev)
	}
	return true
}

// written says whether an open file is a regular one that lies where the sandbox can write.
func written(fd int, st *unix.Stat_t) bool {
	var fs unix.Statfs_t
	return st.Mode&unix.S_IFMT == unix.S_IFREG && (unix.Fstatfs(fd, &fs) != nil || fs.Flags&unix.ST_RDONLY == 0)
}

// silent says of a device that nobody can put words into it: /dev/null, zero, full, random and urandom
// (Documentation/admin-guide/devices.txt).
func silent(device uint64) bool {
	const memory = 1
	switch unix.Minor(device) {
	case 3, 5, 7, 8, 9:
		return unix.Major(device) == memory
	}
	return false
}

// input looks at what the process of an exec takes orders from.
func (g *Gate) input(d procDir, tty int) input {
	in := d.input()
	g.own.CompareAndSwap(unseen, int64(tty)) // the first program's is the session's own
	own := int(g.own.Load())
	in.own = own != 0 && in.mode == unix.S_IFCHR && isTerminal(in.rdev) && numberOf(in.rdev) == own
	if tty != own {
		in.tty = tty
	}
	in.toOut, in.toErr = d.writes("1"), d.writes("2")
	return in
}

// writes is the path, as the sandbox names it, of a file that a standard stream writes to; "" is none.
func (d procDir) writes(fd string) string {
	var link unix.Stat_t
	name := "fd/" + fd
	if unix.Fstatat(int(d), name, &link, unix.AT_SYMLINK_NOFOLLOW) != nil || link.Mode&0o200 == 0 || d.stream(fd, unix.S_IFREG).Ino == 0 {
		return ""
	}
	to, err := d.link(name)
	if err != nil {
		return name
	}
	return to
}

// numberOf is how /proc/PID/stat writes a device (linux/kdev_t.h, new_encode_dev).
func numberOf(device uint64) int {
	major, minor := unix.Major(device), unix.Minor(device)
	return int(minor&0xff | major<<8 | (minor&^0xff)<<12)
}

// unseen stands for the session's own terminal as long as no program has begun.
const unseen = -1

// pipe is the inode of the pipe that a standard stream is, else 0.
func (d procDir) pipe(fd string) uint64 { return d.stream(fd, unix.S_IFIFO).Ino }

// stream looks at a standard stream that is of one type; of others it tells nothing.
func (d procDir) stream(fd string, kind uint32) (st unix.Stat_t) {
	if unix.Fstatat(int(d), "fd/"+fd, &st, 0) != nil || st.Mode&unix.S_IFMT != kind {
		return unix.Stat_t{}
	}
	return st
}

// without fills in what was there before and is closed as the program begins: of what could tell it something, that says nothing.
// What couldn't may be another by the time that the program reads.
func (in *input) without(before *input) {
	gone := *in
	if !in.there && (before.open || before.file) {
		*in = *before
	}
	in.tty, in.toOut, in.toErr = cmp.Or(gone.tty, before.tty), cmp.Or(gone.toOut, before.toOut), cmp.Or(gone.toErr, before.toErr)
}

// sameInput says that the standard input and the terminal of a new image are those that were shown. Nobody shares its
// descriptors any more: execve(2) ends that.
func sameInput(e *Exec) error {
	s, err := e.leader.state()
	if err != nil {
		return err
	}
	is := e.gate.input(e.leader, s.tty)
	is.without(&e.input)
	if is != e.input {
		return errors.New("its standard input or terminal was made another while it was held")
	}
	return nil
}
