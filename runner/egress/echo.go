package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	// MaxEchoFlows is the number of pings, of whatever verdict; one program that
	// pings one address is one.
	MaxEchoFlows = 256

	maxWaitingEchos = 4                // of one flow, until its verdict
	maxWaitingEcho  = 2 << 10          // bytes of each of them
	echoIdle        = 30 * time.Second // a ping without requests ends, also while it is held
)

// echoTable holds the pings. A ping is an attempt like a connection: it waits for
// its verdict, and an allowed one goes out on a ping socket of the host's (icmp(7)).
type echoTable struct {
	g *Gateway

	mu     sync.Mutex
	flows  map[tuple]*echoFlow // guarded by mu; at most MaxEchoFlows
	closed bool                // guarded by mu
}

// echoFlow is the requests of one socket to one address.
type echoFlow struct {
	t      tuple // the identifier is its local port; it has no remote one
	giveUp context.CancelCauseFunc
	queue  chan echoRequest // those beyond its room are lost, as pings are
	open   atomic.Bool      // they have somewhere to go

	rec     *record     // guarded by echoTable.mu; nil until it is known who it is
	refused bool        // guarded by echoTable.mu
	code    unreachable // guarded by echoTable.mu: what requests are answered when it is refused
	last    time.Time   // guarded by echoTable.mu: of the last request, or the refusal
}

// echoRequest is a packet of the sandbox's.
type echoRequest struct {
	seq     uint16
	payload []byte
	quote   []byte // of the packet, for an error about it
}

func newEchoTable(g *Gateway) *echoTable {
	return &echoTable{g: g, flows: make(map[tuple]*echoFlow)}
}

// parseEcho reads a request out of an IP packet, whose ICMP part starts at offset.
func parseEcho(pkt *stack.PacketBuffer, offset int) (ident uint16, r echoRequest, ok bool) {
	const size = header.ICMPv4MinimumSize // that of ICMPv6 is the same (RFC 4443 section 4.1)
	b := pkt.Data().AsRange().ToSlice()
	if len(b) < offset+size {
		return 0, r, false
	}
	h := header.ICMPv4(b[offset:])
	return h.Ident(), echoRequest{
		seq: h.Sequence(), payload: b[offset+size:], quote: quoteOf(b),
	}, true
}

// handle takes a request. It must not block.
func (e *echoTable) handle(t tuple, r echoRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	f, known := e.flows[t]
	switch {
	case known && f.refused:
		e.g.unreachable(t, r.quote, f.code)
		return
	case known:
		f.last = time.Now()
	case len(e.flows) >= MaxEchoFlows:
		e.g.flood()
		e.g.unreachable(t, r.quote, prohibited)
		return
	case !e.g.begin():
		return
	default:
		ctx, giveUp := context.WithCancelCause(e.g.ctx)
		f = &echoFlow{t: t, giveUp: giveUp, queue: make(chan echoRequest, maxWaitingEchos), last: time.Now()}
		e.flows[t] = f
		go func() {
			defer e.g.wg.Done()
			defer giveUp(nil)
			e.run(ctx, f)
		}()
	}
	if !f.open.Load() && len(r.payload) > maxWaitingEcho {
		return
	}
	select {
	case f.queue <- r:
	default:
	}
}

// run is a flow's goroutine, from its first request to its end.
func (e *echoTable) run(ctx context.Context, f *echoFlow) {
	g := e.g
	rec := g.open("icmp", f.t)
	if rec == nil {
		e.refuse(f, prohibited)
		return
	}
	rec.inode = pingSocket(g.o.Processes, f.t)
	defer survive(func(why string) {
		rec.fault(g, why)
		e.refuse(f, prohibited)
	})
	e.mu.Lock()
	f.rec = rec
	e.mu.Unlock()
	v := g.decide(ctx, rec)
	switch {
	case ctx.Err() != nil:
		e.refuse(f, prohibited)
		g.refuse(rec, Verdict{Rule: v.Rule}, abandoned(ctx))
		return
	case !v.Allow:
		g.refuse(rec, v, "")
		e.refuse(f, prohibited)
		return
	}
	if rec.judged(v) {
		g.journal.changed(rec)
	}
	p, err := g.dialer.ping(ctx, g.destination(rec, v))
	if err != nil {
		g.refuse(rec, v, why(err))
		e.refuse(f, prohibited)
		return
	}
	g.connected(rec, p.at.String())
	f.open.Store(true)
	if err := e.relay(ctx, f, rec, p); err != nil {
		rec.fail(why(err))
		e.refuse(f, noHost) // a host that can't be reached is said to be so
	} else {
		e.forget(f)
	}
	rec.finish("")
	g.journal.untrack(rec)
}

// relay carries requests and replies until the flow ends or its host can't be
// reached. It owns the socket.
func (e *echoTable) relay(ctx context.Context, f *echoFlow, rec *record, p *pinger) (err error) {
	var replies sync.WaitGroup
	failed := make(chan error, 1)
	in, out := rec.in(), rec.out()
	replies.Go(func() {
		defer survive(func(why string) { failed <- errors.New(why) })
		buf := make([]byte, 64<<10)
		for {
			seq, payload, err := p.receive(buf)
			if err != nil {
				failed <- err
				return
			}
			err = rec.carry(ctx, in, true, payload, func(b []byte) (int, error) {
				e.g.echoReply(f.t, seq, b)
				return len(b), nil
			})
			if err != nil {
				failed <- err
				return
			}
		}
	})
	defer replies.Wait()
	defer p.conn.Close()
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if !broke(err) {
				return nil
			}
			return err
		case r := <-f.queue:
			if now := time.Now(); now.Sub(looked) >= socketEvery {
				if !e.same(rec) {
					e.next(f, r)
					return nil
				}
				looked = now
			}
			err := rec.carry(ctx, out, true, r.payload, func(b []byte) (int, error) { return len(b), p.send(r.seq, b) })
			if err != nil {
				return err
			}
		}
	}
}

// refuse answers what waits, and for a while what comes.
func (e *echoTable) refuse(f *echoFlow, code unreachable) {
	e.mu.Lock()
	f.refused, f.code, f.last = true, code, time.Now()
	e.mu.Unlock()
	for {
		select {
		case r := <-f.queue:
			e.g.unreachable(f.t, r.quote, code)
		default:
			return
		}
	}
}

func (e *echoTable) forget(f *echoFlow) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flows[f.t] == f {
		delete(e.flows, f.t)
	}
}

// same says whether a ping's socket is the one that was judged.
func (e *echoTable) same(rec *record) bool {
	return e.g.o.Processes == nil || rec.inode != 0 && pingSocket(e.g.o.Processes, rec.tuple) == rec.inode
}

// next ends a flow from whose identifier another socket sends by now, whose request
// begins an attempt of its own. Without a socket nobody waits for a reply.
func (e *echoTable) next(f *echoFlow, r echoRequest) {
	e.forget(f)
	for {
		if pingSocket(e.g.o.Processes, f.t) != 0 {
			e.handle(f.t, r)
		}
		select {
		case r = <-f.queue:
		default:
			return
		}
	}
}

// expire ends flows without requests: a program that pings sends them all the time.
func (e *echoTable) expire(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for t, f := range e.flows {
		switch quiet := now.Sub(f.last); {
		case f.refused && quiet > deniedFor:
			delete(e.flows, t)
		case !f.refused && quiet > echoIdle:
			f.giveUp(errAbandoned)
		}
	}
}

// close takes no more requests; those that go on end with the gateway.
func (e *echoTable) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

// pinger is a ping socket of the host's, connected to one address.
type pinger struct {
	conn *net.UDPConn // as Go has it: datagrams, here of ICMP without IP header
	at   netip.Addr
}

// send puts an echo request out; the kernel gives it its identifier and checksum.
func (p *pinger) send(seq uint16, payload []byte) error {
	msg := make([]byte, header.ICMPv4MinimumSize, header.ICMPv4MinimumSize+len(payload))
	h := header.ICMPv4(msg)
	h.SetType(header.ICMPv4Echo)
	if p.at.Is6() {
		h.SetType(header.ICMPv4Type(header.ICMPv6EchoRequest))
	}
	h.SetSequence(seq)
	_, err := p.conn.Write(append(msg, payload...))
	return err
}

// receive waits for a reply, whose payload is in buf.
func (p *pinger) receive(buf []byte) (seq uint16, payload []byte, err error) {
	for {
		n, err := p.conn.Read(buf)
		if err != nil {
			return 0, nil, err
		}
		if n < header.ICMPv4MinimumSize {
			continue
		}
		h := header.ICMPv4(buf[:n])
		if h.Type() == header.ICMPv4EchoReply || h.Type() == header.ICMPv4Type(header.ICMPv6EchoReply) {
			return h.Sequence(), buf[header.ICMPv4MinimumSize:n], nil
		}
	}
}

// errNoPing is for hosts that let nobody ping without privilege.
var errNoPing = errors.New("this host lets this user send no ping: its setting net.ipv4.ping_group_range leaves them out")
