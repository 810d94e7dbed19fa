package egress

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// tuple names a socket of the sandbox by its two ends.
type tuple struct {
	udp           bool
	local, remote netip.AddrPort // as the sandbox sees them
}

const sockDiagByFamily = 20 // linux/sock_diag.h

// lookup finds the inode of the socket that a tuple belongs to: an exact
// question, which takes the kernel a few microseconds however many sockets
// there are (sock_diag(7)). It needs no privilege.
func (c *netlinkConn) lookup(t tuple) (inode uint64, ok bool) {
	const (
		requestSize = 8 + 48 // inet_diag_req_v2
		answerSize  = 4 + 48 + 5*4
	)
	req := make([]byte, requestSize)
	req[0], req[1] = unix.AF_INET, unix.IPPROTO_TCP
	if t.local.Addr().Is6() {
		req[0] = unix.AF_INET6
	}
	first, second := t.local, t.remote
	if t.udp {
		// The kernel's UDP lookup takes the two ends as a received packet
		// has them: the remote one is the source.
		req[1] = unix.IPPROTO_UDP
		first, second = second, first
	}
	binary.NativeEndian.PutUint32(req[4:], ^uint32(0)) // any state
	binary.BigEndian.PutUint16(req[8:], first.Port())
	binary.BigEndian.PutUint16(req[10:], second.Port())
	copy(req[12:28], first.Addr().AsSlice())
	copy(req[28:44], second.Addr().AsSlice())
	binary.NativeEndian.PutUint64(req[48:], ^uint64(0)) // INET_DIAG_NOCOOKIE
	err := c.ask(sockDiagByFamily, req, func(kind uint16, b []byte) {
		if kind == sockDiagByFamily && len(b) >= answerSize {
			inode = uint64(binary.NativeEndian.Uint32(b[68:]))
		}
	})
	return inode, err == nil && inode != 0
}
