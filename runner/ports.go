package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/egress"
)

// connectLimit bounds how long a server of the sandbox takes to accept.
const connectLimit = 5 * time.Second

// Listeners are the TCP servers of the sandbox; none without a gateway.
func (s *Sandbox) Listeners() ([]egress.Listener, error) {
	if s.gateway == nil {
		return nil, nil
	}
	return s.gateway.Listeners()
}

// Dial connects to a TCP server of the sandbox, as a program in it does by localhost: also
// to one that listens on its loopback only. What answers is hostile.
func (s *Sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	var failed error
	for _, to := range []unix.Sockaddr{&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}} {
		conn, err := s.dial(ctx, to)
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("cannot connect to port %d in the sandbox: %w", port, failed)
}

// dial connects a socket that the holder makes in the sandbox's network. The holder
// doesn't wait for whoever is to accept.
func (s *Sandbox) dial(ctx context.Context, to unix.Sockaddr) (net.Conn, error) {
	family := unix.AF_INET
	if _, six := to.(*unix.SockaddrInet6); six {
		family = unix.AF_INET6
	}
	file, err := s.holder.Socket(ctx, family)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fd := int(file.Fd()) // blocking from here on
	limit := unix.NsecToTimeval(connectLimit.Nanoseconds())
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit) // connect's too, socket(7)
	if err == nil {
		err = os.NewSyscallError("connect", unix.Connect(fd, to))
	}
	if err != nil {
		return nil, err
	}
	return net.FileConn(file)
}
