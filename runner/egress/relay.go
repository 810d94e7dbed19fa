package egress

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// Bytes that a connection has in hand per direction while bytes move:
	// a few segments of the link, or less when there are many connections.
	copySize    = 256 << 10
	copyCrowded = 64 << 10 // holds any datagram

	// A connection closed on one side is ended after this long without a byte.
	halfOpenLimit = 5 * time.Minute
)

// bufferPool lends buffers for as long as bytes are in hand: idle connections
// have none.
type bufferPool struct{ large, small sync.Pool }

var copyBuffers = bufferPool{
	large: sync.Pool{New: func() any { b := make([]byte, copySize); return &b }},
	small: sync.Pool{New: func() any { b := make([]byte, copyCrowded); return &b }},
}

func (p *bufferPool) get(crowded bool) *[]byte {
	if crowded {
		return p.small.Get().(*[]byte)
	}
	return p.large.Get().(*[]byte)
}

func (p *bufferPool) put(b *[]byte) {
	if len(*b) == copyCrowded {
		p.small.Put(b)
	} else {
		p.large.Put(b)
	}
}

var errReset = errors.New("connection reset")

// guest is the sandbox's end of a TCP connection. Read, and Write together
// with CloseWrite, are for one goroutine each; Abort is for any.
type guest struct {
	ep       tcpip.Endpoint
	wq       *waiter.Queue
	in, out  waiter.Entry
	readable <-chan struct{}
	writable <-chan struct{}
}

func newGuest(ep tcpip.Endpoint, wq *waiter.Queue) *guest {
	c := &guest{ep: ep, wq: wq}
	c.in, c.readable = waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventErr | waiter.EventHUp)
	c.out, c.writable = waiter.NewChannelEntry(waiter.WritableEvents | waiter.EventErr | waiter.EventHUp)
	wq.EventRegister(&c.in)
	wq.EventRegister(&c.out)
	return c
}

// wait blocks until there is something to read, an end or an error.
func (c *guest) wait() {
	for c.ep.Readiness(waiter.ReadableEvents|waiter.EventErr|waiter.EventHUp) == 0 {
		<-c.readable
	}
}

// Read takes what has arrived.
func (c *guest) Read(p []byte) (int, error) {
	for {
		w := tcpip.SliceWriter(p)
		res, err := c.ep.Read(&w, tcpip.ReadOptions{})
		switch err.(type) {
		case nil:
			c.ep.ModerateRecvBuf(res.Count)
			return res.Count, nil
		case *tcpip.ErrWouldBlock:
			<-c.readable
		case *tcpip.ErrClosedForReceive:
			return 0, io.EOF
		default:
			return 0, errReset
		}
	}
}

// Write puts all of p into the connection.
func (c *guest) Write(p []byte) (int, error) {
	var r bytes.Reader
	for done := 0; ; {
		r.Reset(p[done:])
		n, err := c.ep.Write(&r, tcpip.WriteOptions{})
		done += int(n)
		switch err.(type) {
		case nil:
			if done == len(p) {
				return done, nil
			}
		case *tcpip.ErrWouldBlock:
			<-c.writable
		default:
			return done, errReset
		}
	}
}

// CloseWrite sends FIN.
func (c *guest) CloseWrite() { c.ep.Shutdown(tcpip.ShutdownWrite) }

// Abort sends RST and fails what is blocked.
func (c *guest) Abort() { c.ep.Abort() }

// Close ends the connection in order.
func (c *guest) Close() {
	c.wq.EventUnregister(&c.in)
	c.wq.EventUnregister(&c.out)
	c.ep.Close()
}

// flow is an established TCP connection and its upstream.
type flow struct {
	g        *Gateway
	rec      *record
	guest    *guest
	upstream net.Conn
	sniff    *sniffer
	stop     func()      // ends what waits for the meter
	half     atomic.Bool // one side has said FIN
	once     sync.Once
}

// abort resets both sides; the copies then end.
func (f *flow) abort(reason string) {
	f.once.Do(func() {
		f.rec.fail(reason)
		f.stop()
		f.guest.Abort()
		reset(f.upstream)
	})
}

func (f *flow) crowded() bool { return f.g.tcpFlows.Load() > roomyFlows }

// expire ends a connection that one side left and on which nothing moves.
func (f *flow) expire() {
	if f.half.Load() && f.rec.idle() > halfOpenLimit && !f.rec.metered() {
		f.abort("closed on one side and silent")
	}
}

// reset closes a connection with RST, as far as the transport can.
func reset(conn net.Conn) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// fail notes how an attempt broke; the first word counts.
func (r *record) fail(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.a.Failure = cmp.Or(r.a.Failure, reason)
}

// relay copies both ways until both have ended. It owns both connections.
func (g *Gateway) relay(ctx context.Context, rec *record, c *guest, upstream net.Conn) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f := &flow{g: g, rec: rec, guest: c, upstream: upstream, sniff: newSniffer(rec.a.Name), stop: stop}
	g.mu.Lock()
	g.flows[f] = struct{}{}
	closed := g.closed
	g.mu.Unlock()
	if closed {
		f.abort(errClosing.Error())
	}

	var both sync.WaitGroup
	both.Go(func() { f.copied(ctx, f.down) })
	f.copied(ctx, f.up)
	both.Wait()

	g.mu.Lock()
	delete(g.flows, f)
	g.mu.Unlock()
	c.Close()
	_ = upstream.Close()
	if in, ok := upstream.(*interceptedConn); ok {
		in.cancel()
		<-in.served // why it failed is known by then
	}
	rec.finish("")
	g.journal.untrack(rec)
}

// copied copies one way; a fault in it ends both.
func (f *flow) copied(ctx context.Context, way func(context.Context)) {
	defer survive(f.abort)
	way(ctx)
}

// up copies what the sandbox sends.
func (f *flow) up(ctx context.Context) {
	out := f.rec.out()
	for {
		f.guest.wait()
		buf := copyBuffers.get(f.crowded())
		n, err := f.guest.Read(*buf)
		if n > 0 {
			err = f.forward(ctx, out, (*buf)[:n])
		}
		copyBuffers.put(buf)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			f.half.Store(true)
			if half, ok := f.upstream.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return
		default:
			f.broken(err)
			return
		}
	}
}

// forward sends bytes on unless they name another host, or are more than may leave.
func (f *flow) forward(ctx context.Context, out lane, b []byte) error {
	if err := f.sniff.feed(b); err != nil {
		return err
	}
	return f.rec.carry(ctx, out, false, b, f.upstream.Write)
}

// down copies what the sandbox gets.
func (f *flow) down(ctx context.Context) {
	var err error
	in := f.rec.in()
	toGuest := func(b []byte) error { return f.rec.carry(ctx, in, false, b, f.guest.Write) }
	if tcp, ok := f.upstream.(*net.TCPConn); ok {
		err = f.downTCP(tcp, toGuest)
	} else {
		err = f.downAny(toGuest)
	}
	if err != nil {
		f.broken(err)
		return
	}
	f.half.Store(true)
	f.guest.CloseWrite()
}

// downTCP is down for a plain connection.
func (f *flow) downTCP(upstream *net.TCPConn, toGuest func([]byte) error) error {
	for {
		n, err := readPooled(upstream, f.crowded(), toGuest)
		if err != nil || n == 0 {
			return err
		}
	}
}

// readPooled reads once. It takes a buffer only when there is something to put
// in it, and gives it back after use.
func readPooled(conn syscall.Conn, crowded bool, use func([]byte) error) (n int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var buf *[]byte
	var fail error
	err = raw.Read(func(fd uintptr) bool {
		buf = copyBuffers.get(crowded)
		for {
			n, fail = syscall.Read(int(fd), *buf)
			if fail != syscall.EINTR {
				break
			}
		}
		if fail == syscall.EAGAIN {
			copyBuffers.put(buf)
			return false
		}
		return true
	})
	if err != nil {
		return 0, err // it was closed; the buffer went back
	}
	defer copyBuffers.put(buf)
	if fail != nil {
		return 0, fail
	}
	return n, use((*buf)[:n])
}

func (f *flow) downAny(toGuest func([]byte) error) error {
	buf := make([]byte, copyCrowded)
	for {
		n, err := f.upstream.Read(buf)
		if n > 0 {
			if err := toGuest(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ProgramReset is the Failure of a connection that its own program reset. Many do so once
// they have what they came for.
const ProgramReset = "reset by the program"

// broken ends both sides after an error on either.
func (f *flow) broken(err error) {
	var mismatch *mismatchError
	switch {
	case errors.As(err, &mismatch):
		f.abort(mismatch.Error())
	case errors.Is(err, errReset):
		f.abort(ProgramReset)
	default:
		f.abort(why(err))
	}
}
