package gate

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostSockets is how many of a process's descriptors are looked at for sockets.
const mostSockets = 4096

// FindServer finds a process that others can connect to, the nearest above the caller or one of some others: it waits for
// connections on a unix socket or by TCP, so that what it starts, or had started, may be what a client told it to.
// It opens files, and finds none once the caller is gone. A server that has handed its socket on isn't
// found.
func (e *Exec) FindServer(others []Process) *Process {
	thread, err := openProc(e.TID)
	if err != nil {
		return nil
	}
	defer thread.close()
	waiting := thread.listening()
	for _, p := range slices.Concat(e.Ancestors, others) {
		d, err := openProc(p.PID)
		if err != nil {
			continue
		}
		serves := d.holds(waiting)
		d.close()
		if serves {
			return &p
		}
	}
	return nil
}

// listening are the inodes of the sockets of the thread's network namespace that wait for connections:
// unix(7)'s with the flag __SO_ACCEPTCON, TCP's in the state TCP_LISTEN (proc_pid_net(5)).
func (d procDir) listening() map[string]bool {
	const acceptsConnections, listens = 0x10000, "0A"
	out := make(map[string]bool)
	each := func(file string, f func(fields [][]byte)) {
		b, err := d.readAll(file)
		if err != nil {
			return
		}
		for line := range bytes.Lines(b) {
			f(bytes.Fields(line))
		}
	}
	each("net/unix", func(fields [][]byte) {
		if len(fields) < 7 {
			return
		}
		if flags, err := strconv.ParseUint(string(fields[3]), 16, 64); err == nil && flags&acceptsConnections != 0 {
			out[string(fields[6])] = true
		}
	})
	for _, file := range []string{"net/tcp", "net/tcp6"} {
		each(file, func(fields [][]byte) {
			if len(fields) > 9 && string(fields[3]) == listens {
				out[string(fields[9])] = true
			}
		})
	}
	return out
}

// holds says whether a process has one of some sockets, for all that is looked at: one with too many descriptors may.
func (d procDir) holds(sockets map[string]bool) bool {
	if len(sockets) == 0 {
		return false
	}
	fd, err := d.open("fd", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false // it is gone
	}
	defer unix.Close(fd)
	b := make([]byte, 32<<10)
	for seen := 0; seen < mostSockets; {
		n, err := unix.Getdents(fd, b)
		if err != nil || n <= 0 {
			return false
		}
		_, count, names := unix.ParseDirent(b[:n], -1, nil)
		seen += count
		for _, name := range names {
			to, err := d.link(fmt.Sprintf("fd/%s", name))
			if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok && sockets[strings.TrimSuffix(inode, "]")] {
				return true
			}
		}
	}
	return true
}
