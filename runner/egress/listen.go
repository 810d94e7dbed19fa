package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxListeners bounds how many servers are told of.
const maxListeners = 64

// Listener is a TCP server of the sandbox.
type Listener struct {
	Port    int
	Program string // its executable, any bytes but NUL
}

// Listeners are the sandbox's servers now, by port, those without a program where it
// can't be found soon.
func (g *Gateway) Listeners() ([]Listener, error) {
	if g.diag == nil {
		return nil, nil
	}
	inodes := map[int]uint64{}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if err := g.diag.listening(family, inodes); err != nil {
			return nil, err
		}
	}
	var out []Listener
	for port, inode := range inodes {
		l := Listener{Port: port}
		if o, ok := g.owners.find(inode, scanNow); ok {
			l.Program = o.program
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Listener) int { return a.Port - b.Port })
	return out, nil
}

// listening adds the sockets that listen, by their ports: at most maxListeners in all.
func (c *netlinkConn) listening(family byte, inodes map[int]uint64) error {
	const listen = 10 // TCP_LISTEN, include/net/tcp_states.h
	req := make([]byte, 8+48)
	req[0], req[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(req[4:], 1<<listen)
	c.mu.Lock()
	defer c.mu.Unlock()
	raw, err := c.file.SyscallConn()
	if err != nil {
		return err
	}
	var fail error
	err = raw.Control(func(fd uintptr) {
		fail = c.dump(int(fd), req, func(b []byte) {
			if port := int(binary.BigEndian.Uint16(b[4:])); len(inodes) < maxListeners {
				inodes[port] = uint64(binary.NativeEndian.Uint32(b[68:]))
			}
		})
	})
	return errors.Join(err, fail)
}

// dump asks sock_diag for all that there is. It needs c.mu.
func (c *netlinkConn) dump(fd int, req []byte, use func(answer []byte)) error {
	c.seq++
	msg := append(make([]byte, unix.SizeofNlMsghdr), req...)
	binary.NativeEndian.PutUint32(msg[0:], uint32(len(msg)))
	binary.NativeEndian.PutUint16(msg[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(msg[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(msg[8:], c.seq)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("cannot ask the kernel: %v", err)
	}
	buf := make([]byte, 32<<10) // as much as the kernel puts into one
	for {
		n, _, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
		if err != nil {
			return fmt.Errorf("cannot hear the kernel: %v", err)
		}
		all, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return fmt.Errorf("cannot read the kernel's answer: %w", err)
		}
		for _, m := range all {
			switch {
			case m.Header.Seq != c.seq: // of a question that was given up
			case m.Header.Type == unix.NLMSG_DONE:
				return nil
			case m.Header.Type == unix.NLMSG_ERROR:
				return errors.New("the kernel doesn't list sockets")
			case m.Header.Type == sockDiagByFamily && len(m.Data) >= 72:
				use(m.Data)
			}
		}
	}
}
