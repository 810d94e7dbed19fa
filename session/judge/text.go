package judge

import (
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
)

// Unwritten says that nobody can write the program that is loaded for an exec, and its dynamic linker, while they run. The kernel
// refuses to open them for that (ETXTBSY), but through an overlay it doesn't see a mapping that was made before: that is of the upper folder's file.
// It is for the moment when the program stands and hasn't run.
func (j *Judge) Unwritten(x *Exec) error {
	files := []string{x.Linker}
	if n := len(x.Files); n > 0 {
		files = append(files, x.Files[n-1].Path)
	}
	for _, file := range files {
		if !path.IsAbs(file) {
			continue
		}
		_, root, rel := j.Places.onHost(file)
		if root == "" {
			continue
		}
		fd, err := openBeneath(root, rel, unix.O_RDONLY|unix.O_NONBLOCK)
		switch {
		case errors.Is(err, unix.ENOENT): // it is the folder's below
			continue
		case err != nil:
			return fmt.Errorf("cannot tell who can write the program %q: %w", file, err)
		}
		err = leased(fd)
		_ = unix.Close(fd)
		if errors.Is(err, unix.EAGAIN) {
			return fmt.Errorf("somebody can write the program %s while it runs: it is open for writing, or mapped so", api.Escape(file))
		}
		if err != nil {
			return fmt.Errorf("cannot tell who can write the program %q: %w", file, err)
		}
	}
	return nil
}

// leased takes a lease to read, which the kernel gives only while nobody has the file open for writing (F_SETLEASE of fcntl(2)), and
// gives it back.
func leased(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err
}
