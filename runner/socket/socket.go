// Package socket serves the unix sockets at which a sandbox's programs may speak
// to their supervisor: a hook of the agent's, an ssh client.
//
// PID 1 binds and listens (see pid1.SocketDir) and the supervisor accepts, so that
// nothing of the host is mounted and no byte passes through PID 1. Whoever
// connects is hostile: how many connections there are at once, how fast new ones
// come and how long one lasts is bounded here, and what a handler reads it has to
// bound itself (see Conn.ReadMessage).
//
// A Server's handlers run in goroutines of their own, at most Limits.Conns at once;
// Close ends their connections and waits for them.
package socket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// Limits bound what the sandbox may have of a socket.
type Limits struct {
	Conns     int           // at once; one more is closed as it comes
	PerSecond int           // new ones; more have to wait to be accepted
	Lasts     time.Duration // a connection is closed after that; 0: it may last
}

// Service is what answers at one socket.
type Service struct {
	Limits
	// Serve speaks with one peer. The connection is closed when it returns; ctx
	// ends with the server.
	Serve func(ctx context.Context, c *Conn)
}

// Conn is a connection of one of the sandbox's processes.
type Conn struct {
	net.Conn
	// PID is the process that connected, as this process's pid namespace numbers
	// it. It may have ended, and its number be another's, and it may have left the
	// connection to any other of the sandbox: it tells who is likely to speak.
	PID int
}

// ErrTooLarge is returned for a message that is longer than its reader allows.
var ErrTooLarge = errors.New("the message is larger than allowed")

// ReadMessage reads one line, or all until the peer writes no more, and no more than
// limit bytes. What follows the line may be lost.
func (c *Conn) ReadMessage(limit int) ([]byte, error) {
	reader := bufio.NewReader(io.LimitReader(c.Conn, int64(limit)+1))
	message, err := reader.ReadBytes('\n')
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("cannot read a message from the sandbox: %w", err)
	}
	if len(message) > limit {
		return nil, ErrTooLarge
	}
	return message, nil
}

// Server accepts on one socket.
type Server struct {
	listener *net.UnixListener
	service  Service
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

// New begins to serve a listening socket, which it owns from then on.
func New(file *os.File, service Service) (*Server, error) {
	defer file.Close()
	listener, err := net.FileListener(file) // a copy; it doesn't remove its path, which isn't the host's
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the sandbox's programs: %w", err)
	}
	unixListener, ok := listener.(*net.UnixListener)
	if !ok {
		listener.Close()
		return nil, errors.New("cannot listen for the sandbox's programs: it isn't a unix socket")
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{listener: unixListener, service: service, cancel: cancel}
	s.done.Go(func() { s.accept(ctx) })
	return s, nil
}

// Close ends all connections and waits for their handlers.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.done.Wait()
	return err
}

// acceptRetry is how long to wait where accepting failed for want of descriptors.
const acceptRetry = 100 * time.Millisecond

func (s *Server) accept(ctx context.Context) {
	pace := rate.NewLimiter(rate.Limit(s.service.PerSecond), s.service.PerSecond)
	slots := make(chan struct{}, s.service.Conns)
	for pace.Wait(ctx) == nil {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(acceptRetry):
			}
			continue
		}
		select {
		case slots <- struct{}{}:
			s.done.Go(func() {
				defer func() { <-slots }()
				s.serve(ctx, c)
			})
		default:
			c.Close()
		}
	}
}

func (s *Server) serve(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	cred, err := Peer(c)
	if err != nil || cred.Pid <= 0 { // one who isn't seen from here isn't of the sandbox
		return
	}
	if s.service.Lasts > 0 {
		_ = c.SetDeadline(time.Now().Add(s.service.Lasts))
	}
	s.service.Serve(ctx, &Conn{Conn: c, PID: int(cred.Pid)})
}

// Peer is who made the other end of a unix socket, by the kernel's word (unix(7),
// SO_PEERCRED) and as this process's pid namespace numbers it.
func Peer(c any) (cred *unix.Ucred, err error) {
	u, ok := c.(syscall.Conn)
	if !ok {
		return nil, errors.New("it isn't a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlled := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(controlled, err)
}
