package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// newlines undoes what a terminal does to output (ONLCR in termios(3)): it puts
// a carriage return before each newline, which no file and no pipe wants.
type newlines struct {
	w       io.Writer
	pending bool // a carriage return was read: the next byte tells whose it is
	buf     []byte
}

// Write is as io.Writer's; of an error it can't tell how much was written.
func (n *newlines) Write(p []byte) (int, error) {
	out := n.buf[:0]
	for rest := p; len(rest) > 0; {
		if n.pending {
			n.pending = false
			if rest[0] != '\n' {
				out = append(out, '\r')
			}
		}
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			out = append(out, rest...)
			break
		}
		out = append(out, rest[:i]...)
		n.pending, rest = true, rest[i+1:]
	}
	n.buf = out
	return len(p), n.write(out)
}

// flush writes what waited for another byte, at the end.
func (n *newlines) flush() error {
	if !n.pending {
		return nil
	}
	n.pending = false
	return n.write([]byte{'\r'})
}

func (n *newlines) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if _, err := n.w.Write(p); err != nil {
		return fmt.Errorf("cannot write the agent's output: %w", err)
	}
	return nil
}

// whenUnread calls lost once nobody can read what is written to a pipe or a socket, which is
// else noticed with the next that is written. It never does for other files: a terminal that
// hangs up sends a signal. It is over when stop returns.
func whenUnread(f *os.File, lost func()) (stop func(), err error) {
	cannot := func(err error) (func(), error) {
		return nil, fmt.Errorf("cannot watch whether %s is read: %w", f.Name(), err)
	}
	st, err := f.Stat()
	if err != nil {
		return cannot(err)
	}
	if st.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return func() {}, nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return cannot(err)
	}
	over, end, err := os.Pipe() // its end is what stop is noticed by
	if err != nil {
		return cannot(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		gone := false
		_ = conn.Control(func(fd uintptr) { // it fails where f is closed: its owner knows
			fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(over.Fd())}} // both ends' going is always told
			for {
				if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
					break
				}
			}
			gone = fds[0].Revents != 0 && fds[1].Revents == 0
		})
		if gone {
			lost()
		}
	}()
	return func() {
		_ = end.Close()
		<-left
		_ = over.Close()
	}, nil
}
