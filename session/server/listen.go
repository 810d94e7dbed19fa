package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"stepbox/runner/socket"
)

// maxAddress is how long a socket's path may be: sockaddr_un has 108 bytes, unix(7).
const maxAddress = 99

// CheckPath says what is wrong with a path that programs are to find a socket at.
func CheckPath(path string) error {
	if len(path) > maxAddress {
		return fmt.Errorf("cannot listen on %q: the path is longer than a socket's may be; set XDG_RUNTIME_DIR to a shorter folder", path)
	}
	return nil
}

// addressed calls f with a name of a socket that is short enough for an address, by
// its folder's descriptor if need be.
func addressed(path string, f func(address string) error) error {
	if len(path) <= maxAddress {
		return f(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// Dial connects to a socket, however long its path is.
func Dial(ctx context.Context, path string) (c net.Conn, err error) {
	var d net.Dialer
	err = addressed(path, func(address string) error {
		c, err = d.DialContext(ctx, "unix", address)
		return err
	})
	return c, err
}

// Listen makes a unix socket that only the caller's own processes can use, and
// only those outside any sandbox. The socket's folder must be the caller's and
// closed to others; the socket stays there.
func Listen(path string) (net.Listener, error) {
	own, err := os.Stat("/proc/self/ns/user")
	if err != nil {
		return nil, fmt.Errorf("cannot tell this process's user namespace: %w", err)
	}
	var l *net.UnixListener
	err = addressed(path, func(address string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // by then its name may be another's
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

// Serve serves on all listeners until ctx is done, and then for as long as requests under way
// need, at most grace. Terminals' connections may then still take what there is
// for them, as long as they do. What is odd goes to the log.
func Serve(ctx context.Context, ls []net.Listener, h http.Handler, log *slog.Logger, grace time.Duration) error {
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
	failed := make(chan error, len(ls))
	for _, l := range ls {
		go func() {
			err := srv.Serve(l)
			if errors.Is(err, http.ErrServerClosed) {
				err = nil
			} else {
				err = fmt.Errorf("cannot serve %s: %w", l.Addr(), err)
			}
			failed <- err
		}()
	}
	var err error
	for range ls {
		err = errors.Join(err, <-failed)
	}
	if !stop() {
		<-stopped
	}
	return err
}
