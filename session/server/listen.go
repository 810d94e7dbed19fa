package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"stepbox/runner/socket"
)

// CheckPath says what is wrong with a path that is to be listened on.
func CheckPath(path string) error {
	if len(path) >= 100 { // sockaddr_un has 108 bytes, unix(7)
		return fmt.Errorf("cannot listen on %q: the path is longer than a socket's may be; set XDG_RUNTIME_DIR to a shorter folder", path)
	}
	return nil
}

// Listen makes a unix socket that only the caller's own processes can use, and
// only those outside any sandbox. The socket's folder must be the caller's and
// closed to others.
func Listen(path string) (net.Listener, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	own, err := os.Stat("/proc/self/ns/user")
	if err != nil {
		return nil, fmt.Errorf("cannot tell this process's user namespace: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot close %q to others: %w", path, err)
	}
	return &listener{Listener: l, own: own}, nil
}

// listener drops connections of those who may not ask.
type listener struct {
	net.Listener
	own os.FileInfo // this process's user namespace
}

// Accept waits for the next peer that may ask.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := l.check(c); err != nil {
			c.Close()
			continue
		}
		return c, nil
	}
}

func (l *listener) check(c net.Conn) error {
	cred, err := socket.Peer(c)
	if err != nil {
		return err
	}
	if int(cred.Uid) != os.Getuid() {
		return fmt.Errorf("uid %d is another user", cred.Uid)
	}
	// A peer that has exited, or that this process can't look at, isn't let in.
	ns, err := os.Stat(fmt.Sprintf("/proc/%d/ns/user", cred.Pid))
	if err != nil {
		return err
	}
	if !os.SameFile(ns, l.own) {
		return fmt.Errorf("process %d is in another user namespace", cred.Pid)
	}
	return nil
}

// Serve serves until ctx is done, and then for as long as requests under way
// need, at most grace. Terminals' connections may then still take what there is
// for them, as long as they do. What is odd goes to the log.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger, grace time.Duration) error {
	terminals := newConns()
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: ErrorLog(log),
		BaseContext: func(net.Listener) context.Context { return terminals.with(context.Background()) },
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if srv.Shutdown(end) != nil {
			srv.Close()
		}
		terminals.end()
	})
	err := srv.Serve(l)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("cannot serve %s: %w", l.Addr(), err)
}
