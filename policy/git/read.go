package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// What is read of one file at most, in bytes.
const (
	maxRules  = 1 << 20
	maxConfig = 1 << 20
	maxIndex  = 256 << 20
)

var errNoFile = errors.New("it isn't a regular file")

// ReadFile reads a regular file of at most so many bytes. Its own name isn't
// followed if it is a symbolic link, which is how git treats these files too.
func ReadFile(path string, most int64) ([]byte, error) {
	data, _, err := readStamped(path, most)
	return data, err
}

// readStamped is ReadFile that says, too, when the file was written.
func readStamped(path string, most int64) (data []byte, written Stamp, err error) {
	defer func() {
		if err != nil {
			data, written, err = nil, Stamp{}, fmt.Errorf("cannot read %q: %w", path, err)
		}
	}()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, written, err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, written, err
	}
	if !info.Mode().IsRegular() {
		return nil, written, errNoFile
	}
	data, err = io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	at := info.ModTime()
	return data, Stamp{uint32(at.Unix()), uint32(at.Nanosecond())}, err
}

// notThere says whether a file of rules is absent, as git sees it: nothing of
// that name, or something that isn't a file or is a link.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, errNoFile)
}
