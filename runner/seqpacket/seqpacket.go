// Package seqpacket passes whole messages and open files between two processes
// over a SOCK_SEQPACKET pair: message boundaries are kept by the kernel, so
// that a reader never has to find them in what a hostile peer wrote.
//
// A Conn may be used by one receiver and any number of senders at once. It
// trusts nothing that it receives: a message that doesn't fit the given buffer,
// or carries more files than were allowed, is an error, and its files are
// closed. See unix(7) and cmsg(3).
package seqpacket

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/socket"
)

// ErrTooLarge is returned for a message larger than its reader allows.
var ErrTooLarge = errors.New("the message is larger than allowed")

// Conn is one end of a pair.
type Conn struct {
	file *os.File
	raw  syscall.RawConn
}

// Pair makes a connected pair: ours, and the end for a child, to be passed on
// by its descriptor and closed here afterwards. Both close on exec.
func Pair() (*Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "control")
	ours, err := New(fds[0])
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// New takes ownership of fd, which has to be a SOCK_SEQPACKET socket; it is
// closed if it isn't.
func New(fd int) (*Conn, error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err == nil && kind != unix.SOCK_SEQPACKET {
		err = unix.ESOCKTNOSUPPORT
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot use descriptor %d as a control socket: %w", fd, err)
	}
	unix.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "control")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot use descriptor %d as a control socket: %w", fd, err)
	}
	return &Conn{file: file, raw: raw}, nil
}

// Peer says which process made the other end, see socket.Peer.
func (c *Conn) Peer() (*unix.Ucred, error) { return socket.Peer(c.file) }

// Send sends one message with copies of the files; they stay the caller's. It
// blocks while the peer's queue is full. EPIPE means that the peer is gone.
func (c *Conn) Send(message []byte, files ...*os.File) error {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fd, err := Number(f)
			if err != nil {
				return fmt.Errorf("cannot send a file: %w", err)
			}
			fds[i] = fd
		}
		rights = unix.UnixRights(fds...)
	}
	var err error
	wait := c.raw.Write(func(fd uintptr) bool {
		for {
			err = unix.Sendmsg(int(fd), message, rights, nil, unix.MSG_NOSIGNAL)
			if err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	runtime.KeepAlive(files)
	if wait != nil {
		return fmt.Errorf("cannot send: %w", wait)
	}
	if err != nil {
		return fmt.Errorf("cannot send: %w", err)
	}
	return nil
}

// Number is a file's descriptor, without what os.File.Fd does to a
// non-blocking file: it stays with the poller. The number is good for as long
// as the caller keeps the file open.
func Number(f *os.File) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	number := -1
	if err := raw.Control(func(fd uintptr) { number = int(fd) }); err != nil {
		return -1, err
	}
	return number, nil
}

// Receive reads one message into p, and at most maxFiles files that came with
// it, which are the caller's from then on. The peer's end gives io.EOF, Close
// os.ErrClosed.
func (c *Conn) Receive(p []byte, maxFiles int) (int, []*os.File, error) {
	rights := make([]byte, unix.CmsgSpace(4*max(maxFiles, 1)))
	var n, oobn, flags int
	var err error
	wait := c.raw.Read(func(fd uintptr) bool {
		for {
			n, oobn, flags, _, err = unix.Recvmsg(int(fd), p, rights, unix.MSG_CMSG_CLOEXEC)
			if err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	switch {
	case wait != nil && !errors.Is(wait, os.ErrDeadlineExceeded):
		return 0, nil, fmt.Errorf("cannot receive: %w", os.ErrClosed) // the poller has an error of its own for it
	case wait != nil:
		return 0, nil, fmt.Errorf("cannot receive: %w", wait)
	case err == unix.ECONNRESET:
		return 0, nil, io.EOF // the peer closed with messages of ours unread
	case err != nil:
		return 0, nil, fmt.Errorf("cannot receive: %w", err)
	case n == 0:
		return 0, nil, io.EOF
	}
	files, err := parseRights(rights[:oobn])
	if err == nil && flags&unix.MSG_TRUNC != 0 {
		err = ErrTooLarge
	}
	if err == nil && (flags&unix.MSG_CTRUNC != 0 || len(files) > maxFiles) {
		err = errors.New("the message carries more files than allowed")
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return 0, nil, fmt.Errorf("cannot receive: %w", err)
	}
	return n, files, nil
}

func parseRights(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // credentials and the like, which nobody asked for
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// SetReadDeadline bounds Receive; the zero time takes the bound away.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.file.SetReadDeadline(t) }

// Close closes this end; a blocked Receive returns.
func (c *Conn) Close() error { return c.file.Close() }
