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
	since  time.Time             // guarded by udpTable.mu: when it was denied
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
	f = &udpFlow{t: t, id: id, rec: rec, giveUp: giveUp}
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
	conn, resolved, err := g.dialer.dial(ctx, "udp", f.rec.destination(v))
	if err != nil {
		u.deny(f, v, why(err))
		return
	}
	defer conn.Close()
	upstream, ok := conn.(*net.UDPConn)
	if !ok || !u.attach(f, upstream) {
		u.deny(f, v, errClosing.Error())
		return
	}
	g.connected(f.rec, resolved)
	var both sync.WaitGroup
	both.Go(func() { u.copyIn(f) })
	u.copyOut(f)
	both.Wait()
	u.mu.Lock()
	delete(u.flows, f.t)
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
	if u.closed || len(queue) == 0 {
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
	f.denied, f.since = true, time.Now()
	queue := u.take(f)
	closed := u.closed
	u.mu.Unlock()
	u.g.refuse(f.rec, v, failure)
	if len(queue) > 0 && !closed {
		u.g.again(queue[0]) // now it is answered with port unreachable
	}
	release(queue)
}

// copyOut carries datagrams out of the sandbox until the flow ends.
func (u *udpTable) copyOut(f *udpFlow) {
	defer u.end(f)
	for {
		f.guest.wait()
		buf := copyBuffers.get(true)
		n, err := f.guest.Read(*buf)
		if err == nil {
			f.rec.moved(&f.rec.sent, n)
			if _, err = f.up.Write((*buf)[:n]); err != nil && broke(err) {
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
func (u *udpTable) copyIn(f *udpFlow) {
	defer u.end(f)
	for {
		_, err := readPooled(f.up, true, func(b []byte) error {
			f.rec.moved(&f.rec.received, len(b))
			_, err := f.guest.Write(b)
			return err
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

// expire forgets flows that are over. One that is held stays when its program
// has gone: many only send and exit.
func (u *udpTable) expire() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for t, f := range u.flows {
		switch {
		case f.denied && time.Since(f.since) > deniedFor:
			delete(u.flows, t)
		case f.guest != nil && f.rec.idle() > udpIdle:
			f.close()
		}
	}
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
