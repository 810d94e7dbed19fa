package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// netlinkConn asks the kernel one question at a time on a netlink socket. The
// kernel queues the answer before send returns (netlink(7): requests are
// handled in the sender's context), so it never waits. Safe for concurrent use.
type netlinkConn struct {
	file *os.File

	mu  sync.Mutex
	seq uint32     // guarded by mu
	buf [4096]byte // guarded by mu
}

// ask sends one message and gives use the answer's type and body, which are
// only valid during the call. Only an error that the kernel answered is (in the
// sense of errors.Is) a syscall.Errno: a question that wasn't heard must not
// look like an answer.
func (c *netlinkConn) ask(kind uint16, body []byte, use func(kind uint16, body []byte)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw, err := c.file.SyscallConn()
	if err != nil {
		return err
	}
	var fail error
	err = raw.Control(func(fd uintptr) { fail = c.exchange(int(fd), kind, body, use) })
	return errors.Join(err, fail)
}

// exchange needs c.mu.
func (c *netlinkConn) exchange(fd int, kind uint16, body []byte, use func(uint16, []byte)) error {
	c.seq++
	msg := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+96)
	msg = append(msg, body...)
	binary.NativeEndian.PutUint32(msg[0:], uint32(len(msg)))
	binary.NativeEndian.PutUint16(msg[4:], kind)
	binary.NativeEndian.PutUint16(msg[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(msg[8:], c.seq)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("cannot ask the kernel: %v", err)
	}
	for {
		n, _, err := unix.Recvfrom(fd, c.buf[:], unix.MSG_DONTWAIT)
		if err != nil {
			return fmt.Errorf("cannot hear the kernel: %v", err)
		}
		answer := c.buf[:n]
		if n < unix.SizeofNlMsghdr || binary.NativeEndian.Uint32(answer[8:]) != c.seq {
			continue // of a question that was given up
		}
		kind, answer := binary.NativeEndian.Uint16(answer[4:]), answer[unix.SizeofNlMsghdr:]
		if kind == unix.NLMSG_ERROR {
			if len(answer) < 4 {
				return errors.New("cannot read the kernel's answer: too short")
			}
			return syscall.Errno(-int32(binary.NativeEndian.Uint32(answer)))
		}
		use(kind, answer)
		return nil
	}
}
