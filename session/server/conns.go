package server

import (
	"context"
	"net"
	"sync"
	"time"
)

// conns are the connections that handlers took over from an http.Server, which
// forgets them then. When the server ends they may send what they still have to,
// as long as their clients take it.
type conns struct {
	handlers sync.WaitGroup

	mu   sync.Mutex
	open map[*taken]struct{} // guarded by mu
	over bool                // guarded by mu; the server ends
}

// stuck is how long a client that takes nothing is waited for at the end. What
// it misses is in the record.
const stuck = 5 * time.Second

// taken is one of them, with a bound on each write once the server ends.
type taken struct {
	net.Conn
	of *conns
}

type connsKey struct{}

func newConns() *conns { return &conns{open: make(map[*taken]struct{})} }

// with makes a server's connections known to its handlers.
func (c *conns) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, connsKey{}, c)
}

// take notes a connection whose handler closes it before it returns. Without a
// server that waits for it, it is nobody's.
func take(ctx context.Context, conn net.Conn) net.Conn {
	c, ok := ctx.Value(connsKey{}).(*conns)
	if !ok {
		return conn
	}
	t := &taken{Conn: conn, of: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over { // else nobody waits for it any more
		c.handlers.Add(1)
		c.open[t] = struct{}{}
	}
	return t
}

// Write sends p. At the server's end it fails when nothing of it can be sent
// for a while.
func (t *taken) Write(p []byte) (int, error) {
	const step = 32 << 10 // so that slow clients aren't taken for stuck ones
	done := 0
	for done < len(p) {
		t.of.mu.Lock()
		if t.of.over {
			t.bound()
		}
		t.of.mu.Unlock()
		n, err := t.Conn.Write(p[done:min(done+step, len(p))])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// bound is called with mu held, so that a deadline isn't set on a write that
// began after it.
func (t *taken) bound() {
	_ = t.Conn.SetWriteDeadline(time.Now().Add(stuck)) // closed: it needs none
}

// Close closes the connection and forgets it.
func (t *taken) Close() error {
	t.of.mu.Lock()
	_, mine := t.of.open[t]
	delete(t.of.open, t)
	t.of.mu.Unlock()
	if mine {
		defer t.of.handlers.Done()
	}
	return t.Conn.Close()
}

// end bounds all writes and waits for the handlers.
func (c *conns) end() {
	c.mu.Lock()
	c.over = true
	for t := range c.open {
		t.bound()
	}
	c.mu.Unlock()
	c.handlers.Wait()
}
