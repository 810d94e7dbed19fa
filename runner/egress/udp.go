package egress

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	maxWaitingDatagrams = 16              // of one flow, until its verdict
	maxWaitingBytes     = 8 << 20         // of all flows together
	udpIdle             = 2 * time.Minute // a flow without datagrams ends
	deniedFor           = 10 * time.Second
	socketEvery         = 10 * time.Millisecond // a flow's socket is looked at again for what it sends
	goneAfter           = time.Second           // of silence, a flow ends whose socket is gone
)

// udpTable holds the datagram flows, denied ones included: their datagrams
// are refused without asking or logging again for a while.
type udpTable struct {
	g *Gateway

	mu      sync.Mutex
	flows   map[tuple]*udpFlow // guarded by mu; at most MaxUDPFlows
	waiting int                // guarded by mu; bytes of datagrams that wait
	closed  bool               // guarded by mu
}

// udpFlow is the datagrams between two ends.
type udpFlow struct {
	t      tuple
	id     stack.TransportEndpointID
	rec    *record
	giveUp context.CancelCauseFunc

	denied bool                  // guarded by udpTable.mu
	looked time.Time             // guarded by udpTable.mu: when its socket was last seen to be there
	last   time.Time             // guarded by udpTable.mu: when it was denied, or last sent what waits
	queue  []*stack.PacketBuffer // guarded by udpTable.mu; references owned
	guest  *guest                // guarded by udpTable.mu; nil until it is open
	up     *net.UDPConn          // guarded by udpTable.mu; likewise
}

func newUDPTable(g *Gateway) *udpTable {
	return &udpTable{g: g, flows: make(map[tuple]*udpFlow)}
}

// handle is called by netstack for datagrams that belong to no endpoint. It
// must not block. False makes netstack answer port unreachable.
func (u *udpTable) handle(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
	t := ends(id, true)
	if t.remote.Port() == dnsPort {
		u.g.dnsPacket(t, pkt)
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return true
	}
	f, ok := u.flows[t]
	if ok {
		if f.denied {
			return false
		}
		u.keep(f, pkt)
		return true
	}
	if len(u.flows) >= MaxUDPFlows {
		u.g.flood()
		return false
	}
	rec := u.g.open("udp", t)
	if rec == nil || !u.g.begin() {
		return false
	}
	ctx, giveUp := context.WithCancelCause(u.g.ctx)
	f = &udpFlow{t: t, id: id, rec: rec, giveUp: giveUp, looked: time.Now()}
	u.flows[t] = f
	u.keep(f, pkt)
	go func() {
		defer u.g.wg.Done()
		defer giveUp(nil)
		u.run(ctx, f)
	}()
	return true
}

// keep queues a datagram until the verdict; it needs u.mu. What doesn't fit is
// lost, as datagrams are.
func (u *udpTable) keep(f *udpFlow, pkt *stack.PacketBuffer) {
	f.last = time.Now()
	if f.guest != nil || len(f.queue) >= maxWaitingDatagrams || u.waiting+pkt.Size() > maxWaitingBytes {
		return
	}
	u.waiting += pkt.Size()
	f.queue = append(f.queue, pkt.Clone())
}

// take empties the queue; it needs u.mu. The caller owns the references.
func (u *udpTable) take(f *udpFlow) []*stack.PacketBuffer {
	queue := f.queue
	f.queue = nil
	for _, pkt := range queue {
		u.waiting -= pkt.Size()
	}
	return queue
}

// run is a flow's goroutine, from its first datagram to its end.
func (u *udpTable) run(ctx context.Context, f *udpFlow) {
	g := u.g
	defer survive(func(why string) {
		f.rec.fault(g, why)
		u.mu.Lock()
		defer u.mu.Unlock()
		release(u.take(f))
		u.drop(f, errClosing)
	})
	v := g.decide(ctx, f.rec)
	if ctx.Err() != nil {
		u.deny(f, v, abandoned(ctx))
		return
	}
	if !v.Allow {
		u.deny(f, v, "")
		return
	}
	if f.rec.judged(v) {
		g.journal.changed(f.rec)
	}
	conn, resolved, err := g.dialer.dial(ctx, "udp", g.destination(f.rec, v))
	if err != nil {
		u.deny(f, v, why(err))
		return
	}
	defer conn.Close()
	upstream, ok := conn.(*net.UDPConn)
	if !ok || !u.attach(f, upstream) {
		u.deny(f, v, abandoned(ctx))
		return
	}
	g.connected(f.rec, resolved)
	var both sync.WaitGroup
	copied := func(way func(context.Context, *udpFlow)) {
		defer survive(f.rec.fail)
		way(ctx, f)
	}
	both.Go(func() { copied(u.copyIn) })
	copied(u.copyOut)
	both.Wait()
	u.mu.Lock()
	if u.flows[f.t] == f {
		delete(u.flows, f.t)
	}
	u.mu.Unlock()
	f.rec.finish("")
	g.journal.untrack(f.rec)
}

// attach gives the flow an endpoint in the stack and what has waited.
func (u *udpTable) attach(f *udpFlow, upstream *net.UDPConn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	queue := u.take(f)
	defer release(queue)
	if u.closed || u.flows[f.t] != f || len(queue) == 0 {
		return false
	}
	var wq waiter.Queue
	ep, err := udp.NewForwarderRequest(u.g.stack, f.id, queue[0]).CreateEndpoint(&wq)
	if err != nil {
		return false
	}
	if h, ok := ep.(interface {
		HandlePacket(stack.TransportEndpointID, *stack.PacketBuffer)
	}); ok {
		for _, pkt := range queue[1:] {
			h.HandlePacket(f.id, pkt)
		}
	}
	f.guest, f.up = newGuest(ep, &wq), upstream
	return true
}

func release(queue []*stack.PacketBuffer) {
	for _, pkt := range queue {
		pkt.DecRef()
	}
}

// deny ends a flow that never opened and tells its program.
func (u *udpTable) deny(f *udpFlow, v Verdict, failure string) {
	u.mu.Lock()
	f.denied, f.last = true, time.Now()
	queue := u.take(f)
	over := u.closed || u.flows[f.t] != f
	u.mu.Unlock()
	u.g.refuse(f.rec, v, failure)
	if len(queue) > 0 && !over {
		u.g.again(queue[0]) // now it is answered with port unreachable
	}
	release(queue)
}

// copyOut carries datagrams out of the sandbox until the flow ends.
func (u *udpTable) copyOut(ctx context.Context, f *udpFlow) {
	defer u.end(f)
	out := f.rec.out()
	for {
		f.guest.wait()
		buf := copyBuffers.get(true)
		n, err := f.guest.Read(*buf)
		if err == nil {
			if err = f.rec.carry(ctx, out, true, (*buf)[:n], f.up.Write); err != nil && broke(err) {
				f.rec.fail(why(err))
			}
		}
		copyBuffers.put(buf)
		if err != nil {
			return
		}
	}
}

// copyIn carries datagrams into the sandbox until the flow ends.
func (u *udpTable) copyIn(ctx context.Context, f *udpFlow) {
	defer u.end(f)
	in := f.rec.in()
	for {
		_, err := readPooled(f.up, true, func(b []byte) error {
			return f.rec.carry(ctx, in, true, b, f.guest.Write)
		})
		if err != nil {
			if broke(err) && !errors.Is(err, errReset) {
				f.rec.fail(why(err))
			}
			return
		}
	}
}

// end closes both sides of an open flow.
func (u *udpTable) end(f *udpFlow) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f.close()
}

// close needs udpTable.mu.
func (f *udpFlow) close() {
	f.giveUp(errClosing)
	if f.guest != nil {
		f.guest.ep.Close() // wakes its reader
		_ = f.up.Close()
	}
}

// expire forgets flows that are over. One that is held stays for a while when its
// program has gone, since many only send and exit, but not for good: nobody else
// would say that it needs no answer any more.
func (u *udpTable) expire(now time.Time) {
	var quiet, silent []*udpFlow
	u.mu.Lock()
	for t, f := range u.flows {
		switch {
		case f.denied && now.Sub(f.last) > deniedFor:
			delete(u.flows, t)
		case f.guest != nil && f.rec.idle() > udpIdle:
			f.close()
		case f.guest != nil && f.rec.inode != 0 && f.rec.idle() > goneAfter && !f.rec.metered():
			silent = append(silent, f)
		case !f.denied && f.guest == nil && now.Sub(f.last) > udpIdle:
			quiet = append(quiet, f)
		}
	}
	u.mu.Unlock()
	for _, f := range quiet {
		if f.rec.inode == 0 || !u.g.stillWaits(f.rec) {
			f.giveUp(errAbandoned)
		}
	}
	for _, f := range silent {
		if !u.g.stillWaits(f.rec) {
			u.end(f)
		}
	}
}

// sends is told of a datagram before the stack gets it. A flow is the socket's that was
// judged: when another one sends between the same ends, or none is found, it ends, and
// the datagram begins an attempt of its own. What comes within socketEvery of the last
// look is taken for the same socket's.
func (u *udpTable) sends(t tuple) {
	u.mu.Lock()
	f, ok := u.flows[t]
	ok = ok && time.Since(f.looked) >= socketEvery
	u.mu.Unlock()
	if !ok || u.g.diag == nil {
		return
	}
	same := f.rec.inode != 0 && u.g.stillWaits(f.rec)
	u.mu.Lock()
	defer u.mu.Unlock()
	if same {
		f.looked = time.Now()
		return
	}
	u.drop(f, errAbandoned)
}

// drop ends a flow and has its ends' next datagram be an attempt of its own; it needs
// u.mu.
func (u *udpTable) drop(f *udpFlow, why error) {
	if u.flows[f.t] == f {
		delete(u.flows, f.t)
	}
	f.giveUp(why)
	f.close()
}

// close ends all flows.
func (u *udpTable) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, f := range u.flows {
		f.close()
	}
}
