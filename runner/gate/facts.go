package gate

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// File is a file as it was found when an Exec was read, or by [Exec.Lookup].
type File struct {
	Path     string // resolved, as the sandbox sees it
	Dev, Ino uint64
	Size     int64
	Changed  time.Time // of its status (ctime), which can't be set by hand
	Nameless bool      // it was deleted: who holds on to it is all that has it
}

// Same says whether two looks met the same file, unchanged.
func (f File) Same(o File) bool {
	return f.Dev == o.Dev && f.Ino == o.Ino && f.Size == o.Size && f.Changed.Equal(o.Changed)
}

func fileOf(path string, st *unix.Stat_t) File {
	return File{Path: path, Dev: st.Dev, Ino: st.Ino, Size: st.Size, Changed: time.Unix(st.Ctim.Unix()), Nameless: st.Nlink == 0}
}

// readFiles tells which files the exec loads, and how the kernel changes its
// arguments when the first of them is a script.
func (e *Exec) readFiles() {
	for i := range e.image.files {
		f := &e.image.files[i]
		e.Files = append(e.Files, fileOf(f.path, &f.stat))
	}
	e.Prefix = e.image.prefix
}

// Lookup finds a file as the held caller would, by a path that may be relative
// to its working directory, and follows links. It opens nothing that could
// block. It fails for what isn't a regular file, and once the caller doesn't
// wait any more.
func (e *Exec) Lookup(path string) (File, error) {
	thread, err := openProc(e.TID)
	if err != nil {
		return File{}, err
	}
	defer thread.close()
	v, err := openView(thread)
	if err != nil {
		return File{}, err
	}
	defer v.close()
	fd, err := v.lookup(v.cwd, path, false)
	if err != nil {
		return File{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return File{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return File{}, unix.EACCES
	}
	resolved, err := procDir(fd).self()
	if err != nil {
		return File{}, err
	}
	// What was found by the thread's number is the caller's if that waits now.
	if !e.Valid() {
		return File{}, errGone
	}
	return fileOf(resolved, &st), nil
}

// self is the path that an open file has.
func (d procDir) self() (string, error) {
	return readLink(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(d)))
}

// OnBegin has f called when the program stands in its process, checked, before
// its first instruction. It must be set before Allow, which then has to verify.
// f runs on the gate's goroutine that traces the process; it may block for a
// moment, in which nothing that the program could start can be seen yet. With an
// error from it the program never runs: its process is killed.
func (e *Exec) OnBegin(f func() error) { e.onBegin = f }

// Unchecked says, from OnBegin's function on, that another program traces the process: what will stand in it can't be compared
// with what was shown, nor will it be known if the kernel refuses the exec.
func (e *Exec) Unchecked() bool { return e.unchecked }

// begins calls OnBegin's function.
func (e *Exec) begins() error {
	if f := e.shownAs().onBegin; f != nil {
		return f()
	}
	return nil
}
