// Package source reads files of rules from the host, for policy.Load.
//
// What it reads may be anybody's: it is bounded, only regular files are read, and
// whole: a file that is being written isn't taken for one that says less. Of a project,
// which holds what others wrote, no link is followed and nothing outside is read. It
// keeps nothing; its functions may be called from any goroutine.
package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// most is how many bytes are read of a file: one more than policy.Load takes.
const most = 1<<20 + 1

// tries are how often a file is read that changes meanwhile.
const tries = 5

const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// Person reads a file that a person says is theirs. Links are followed, as those are that
// lead to where someone keeps all of their settings.
func Person(file string) ([]byte, error) {
	return read(func() (int, error) { return unix.Open(file, flags, 0) }, true)
}

// Any reads a file that is only looked at, whoever it belongs to.
func Any(file string) ([]byte, error) {
	return read(func() (int, error) { return unix.Open(file, flags, 0) }, false)
}

// Project reads files below a project's folder, given by their absolute paths.
func Project(dir string) func(file string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		rel, err := filepath.Rel(dir, file)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return nil, errors.New("it isn't in the project's folder")
		}
		return read(func() (int, error) {
			root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return -1, err
			}
			defer unix.Close(root)
			return unix.Openat2(root, rel, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
		}, false)
	}
}

// read reads a file twice, and again until both are the same.
func read(open func() (int, error), mine bool) ([]byte, error) {
	var last []byte
	for i := range tries {
		data, err := once(open, mine)
		if err != nil {
			return nil, err
		}
		if i > 0 && bytes.Equal(data, last) {
			return data, nil
		}
		last = data
	}
	return nil, errors.New("it is being written: try again")
}

func once(open func() (int, error), mine bool) ([]byte, error) {
	fd, err := open()
	for errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) { // a rename meanwhile, openat2(2)
		fd, err = open()
	}
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("it is a symbolic link, or behind one, which isn't followed here: %w", err)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "rules")
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("it isn't a regular file")
	case mine && st.Uid != 0 && int(st.Uid) != os.Getuid():
		return nil, fmt.Errorf("it belongs to another user (uid %d), who could change what holds for you", st.Uid)
	case mine && st.Mode&0o002 != 0:
		return nil, fmt.Errorf("everybody can change it (mode %04o); run chmod o-w on it", st.Mode&0o7777)
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err // its name is said by who asked for it
	}
	return data, err
}
