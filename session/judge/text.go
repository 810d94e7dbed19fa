package judge

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
)

// Unwritten says that nobody can write the program that is loaded for an exec, and its dynamic linker, while they run. The kernel
// refuses to open them for that (ETXTBSY), but through an overlay it doesn't see a mapping that was made before: that is of the upper folder's file.
// It is for the moment when the program stands and hasn't run. What they hold is compared after that, as who could write them
// may have until then.
func (j *Judge) Unwritten(x *Exec) error {
	files := []string{x.Linker}
	if n := len(x.Files); n > 0 {
		files = append(files, x.Files[n-1].Path)
	}
	looked := false
	for _, file := range files {
		if !path.IsAbs(file) {
			continue
		}
		if _, root, rel := j.Places.onHost(file); root != "" {
			looked = true
			if err := unwritten(x, root, rel); err != nil {
				return fmt.Errorf("the program %s: %w", api.Escape(file), err)
			}
		}
	}
	if !looked {
		return nil
	}
	return x.Unchanged()
}

// How long nothing may have been renamed on the way to a file for it to be known which one was looked at: file systems
// stamp changes by a clock that moves every few milliseconds. And how often that is waited for.
const (
	restTime = 50 * time.Millisecond
	mostRest = 20
)

// unwritten is it for the upper folder's file, which is looked at by its name: the name has to lead to the very file that was loaded
// before and after, and nothing on the way may have changed in between.
func unwritten(x *Exec, root, rel string) error {
	for range mostRest {
		before := wayTo(root, rel)
		if err := x.Stands(); err != nil {
			return err
		}
		err := leased(root, rel)
		if slices.Equal(before, wayTo(root, rel)) && !slices.ContainsFunc(before, recent) {
			return err
		}
		time.Sleep(restTime)
	}
	return errors.New("what is on the way to it goes on changing")
}

// way is a folder on the way to a file, or that, and when its status last changed, which a rename does to both folders and to what it
// renames.
type way struct {
	inode uint64
	ctime unix.Timespec
}

func recent(w way) bool { return time.Since(time.Unix(w.ctime.Unix())) < restTime }

// wayTo goes as far as there is something.
func wayTo(root, rel string) (out []way) {
	parts := strings.Split(rel, "/")
	for i := range parts {
		st, err := beneath(root, path.Join(parts[:i+1]...))
		if err != nil {
			break
		}
		out = append(out, way{st.Ino, st.Ctim})
	}
	return out
}

// leased takes a lease to read, which the kernel gives only while nobody has the file open for writing, or mapped so
// (F_SETLEASE of fcntl(2)), and gives it back. What isn't there is the folder's below, which nobody writes.
func leased(root, rel string) error {
	fd, err := openBeneath(root, rel, unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot tell who can write it: %w", err)
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	}
	if errors.Is(err, unix.EAGAIN) {
		return errors.New("somebody can write it while it runs: it is open for writing, or mapped so")
	}
	return err
}
