// Package ports lets this machine reach servers of a sandbox: it listens on 127.0.0.1,
// never on another address, and passes on what comes to the sandbox's own localhost. What
// a server answers is hostile and isn't looked at.
//
// A Ports may be used from several goroutines. Close waits for all of its own.
package ports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Most is how many ports are published at a time.
	Most = 32
	// maxConns is how many connections are open at a time; further ones are closed.
	maxConns = 256
	// tries is how many ports after one that is taken are tried.
	tries = 10
	// pause is how long nothing is accepted after that failed.
	pause = 100 * time.Millisecond
)

// Ports are those that are published.
type Ports struct {
	dial func(ctx context.Context, port int) (net.Conn, error)

	ctx    context.Context // done when it is closed
	cancel context.CancelFunc
	wg     sync.WaitGroup
	conns  atomic.Int64

	mu   sync.Mutex
	open map[int]*published // guarded by mu; by the port in the sandbox; nil once closed
}

type published struct {
	listener net.Listener
	ctx      context.Context // done when it isn't published any more
	cancel   context.CancelFunc
	served   atomic.Int64
}

// New makes one that dials into a sandbox.
func New(dial func(ctx context.Context, port int) (net.Conn, error)) *Ports {
	p := &Ports{dial: dial, open: map[int]*published{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Publish makes a port of the sandbox's one of 127.0.0.1: at, or the next free one after
// it, unless it has to be exactly that; 0 is any. It says which one that is.
func (p *Ports) Publish(port, at int, exactly bool) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return 0, errors.New("the session has ended")
	}
	if had, is := p.open[port]; is {
		return had.listener.Addr().(*net.TCPAddr).Port, fmt.Errorf("port %d is published already, at %s", port, had.listener.Addr())
	}
	if len(p.open) >= Most {
		return 0, fmt.Errorf("%d ports are published, and no more can be", Most)
	}
	l, err := listen(at, exactly)
	if err != nil {
		return 0, fmt.Errorf("cannot publish port %d: %w", port, err)
	}
	one := &published{listener: l}
	one.ctx, one.cancel = context.WithCancel(p.ctx)
	context.AfterFunc(one.ctx, func() { l.Close() })
	p.open[port] = one
	p.wg.Go(func() { p.serve(one, port) })
	return l.Addr().(*net.TCPAddr).Port, nil
}

func listen(at int, exactly bool) (l net.Listener, err error) {
	try := func(port int) bool {
		l, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return err == nil
	}
	if try(at) || exactly {
		return l, err
	}
	for port := at + 1; port <= at+tries && port < 1<<16; port++ {
		if try(port) {
			return l, nil
		}
	}
	try(0)
	return l, err
}

// serve accepts until it isn't published any more.
func (p *Ports) serve(one *published, port int) {
	for {
		conn, err := one.listener.Accept()
		switch {
		case one.ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return
		case err != nil: // of one connection, or for want of descriptors: its backlog waits
			select {
			case <-one.ctx.Done():
			case <-time.After(pause):
			}
			continue
		case p.conns.Add(1) > maxConns:
			p.conns.Add(-1)
			conn.Close()
			continue
		}
		one.served.Add(1)
		p.wg.Go(func() {
			defer p.conns.Add(-1)
			defer conn.Close()
			inside, err := p.dial(one.ctx, port)
			if err != nil {
				return // nobody listens
			}
			defer inside.Close()
			defer context.AfterFunc(one.ctx, func() { conn.Close(); inside.Close() })()
			var back sync.WaitGroup
			back.Go(func() { pass(conn, inside) })
			pass(inside, conn)
			back.Wait()
		})
	}
}

// pass copies until an end, which it passes on, or an error, which ends both ways.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(*net.TCPConn); ok && err == nil {
		_ = half.CloseWrite() // it may be gone
		return
	}
	to.Close()
	from.Close()
}

// Unpublish ends what is open of a port; false when it isn't published.
func (p *Ports) Unpublish(port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, is := p.open[port]
	if is {
		one.cancel()
		delete(p.open, port)
	}
	return is
}

// Served is how many connections a port has had since it is published.
func (p *Ports) Served(port int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, is := p.open[port]; is {
		return int(one.served.Load())
	}
	return 0
}

// Close ends all of it.
func (p *Ports) Close() {
	p.mu.Lock()
	p.open = nil
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
}
