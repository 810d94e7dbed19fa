package gate

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A program's files are known again by how the kernel names them in
// /proc/PID/maps: device, inode and path. On an overlay these aren't what stat(2)
// and the path of an open file say. They may be those of the folder below it
// (device and inode before Linux 6.6, all three where that is an overlay too), but
// they are the same for every process that maps the file. So the gate maps it, too.

// mappedName is how the kernel names an open file to whoever maps it. Nothing of the
// file is read.
func mappedName(fd int) (string, error) {
	page, err := unix.Mmap(fd, 0, 1, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return "", fmt.Errorf("cannot map a file: %w", err)
	}
	defer func() { _ = unix.Munmap(page) }()
	self, err := openProc(unix.Getpid())
	if err != nil {
		return "", err
	}
	defer self.close()
	maps, err := self.readAll("maps")
	if err != nil {
		return "", fmt.Errorf("cannot read how a file is mapped: %w", err)
	}
	start := fmt.Sprintf("%08x-", uintptr(unsafe.Pointer(unsafe.SliceData(page))))
	for line := range strings.Lines(string(maps)) {
		if strings.HasPrefix(line, start) {
			if name, ok := mappedFile(line); ok {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("cannot find the file that is mapped at %s", start)
}

// mappedFile is the name of the file that a line of /proc/PID/maps is about, if any.
func mappedFile(line string) (name string, ok bool) {
	fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6) // addresses, rights, offset, device, inode, path
	if len(fields) < 6 || fields[4] == "0" {
		return "", false
	}
	return fields[3] + " " + fields[4] + " " + strings.TrimLeft(fields[5], " "), true
}
