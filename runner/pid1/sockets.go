package pid1

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SocketDir is where the sandbox's programs find the sockets that the supervisor
// answers on. It is in the sandbox's own /run: nothing of the host is there.
const SocketDir = "/run/stepbox"

// ProgramDir is where they find the program that asks there, by its names.
const ProgramDir = SocketDir + "/bin"

// MaxSockets bounds how many of them a Program may want.
const MaxSockets = 4

// backlog is how many programs may wait to be accepted, at each socket; connecting
// blocks for one more.
const backlog = 16

// listen binds the sockets, which happens before anything hostile runs. The kernel
// keeps for each who listens: a program that finds process 1 at the other end
// (SO_PEERCRED) knows that nobody has put a socket of their own in its place.
//
// A sandbox whose /run can't be written has none of them, which is no reason not
// to start its agent.
func listen(names []string) []*os.File {
	var files []*os.File
	for _, name := range names {
		file, err := bind(filepath.Join(SocketDir, name))
		if err != nil {
			closeAll(files)
			return nil
		}
		files = append(files, file)
	}
	return files
}

func bind(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot make a socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), path)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot bind %q: %w", path, err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot listen on %q: %w", path, err)
	}
	return file, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
