package egress

import (
	"context"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// aliveAfter is how long a connection is silent before the sandbox's kernel is asked whether
// there still is one, and how long until it is asked again: a reset may be lost on the
// link, and nobody sends it twice. It is Go's own time, which the other side is asked after.
const aliveAfter = 15 * time.Second

// pending is a TCP connection that is held or dialled.
type pending struct {
	rec    *record // guarded by Gateway.mu; nil until it is known who it is
	giveUp context.CancelCauseFunc
}

// ends are the two sides of what a forwarder was given.
func ends(id stack.TransportEndpointID, udp bool) tuple {
	return tuple{
		udp:    udp,
		local:  netip.AddrPortFrom(address(id.RemoteAddress), id.RemotePort),
		remote: netip.AddrPortFrom(address(id.LocalAddress), id.LocalPort),
	}
}

// handleTCP is called by netstack on a goroutine of its own for each new SYN.
// Retransmitted ones are dropped by netstack until Complete.
func (g *Gateway) handleTCP(r *tcp.ForwarderRequest) {
	if !g.begin() {
		r.Complete(false)
		return
	}
	defer g.wg.Done()
	t := ends(r.ID(), false)
	var rec *record
	defer survive(func(why string) {
		defer func() { _ = recover() }() // from Complete, where that was called before
		defer r.Complete(true)
		if rec == nil {
			g.tap.fault(t, why)
		} else {
			rec.fault(g, why)
		}
	})
	if t.remote.Port() == dnsPort {
		g.serveDNSOverTCP(r)
		return
	}
	ctx, giveUp := context.WithCancelCause(g.ctx)
	defer giveUp(nil)
	p := &pending{giveUp: giveUp}
	if !g.admit(p) {
		g.flood() // first: how many are in hand is bounded until Complete
		r.Complete(true)
		return
	}
	defer g.dismiss(p)
	rec = g.open("tcp", t)
	if rec == nil {
		r.Complete(true)
		return
	}
	g.mu.Lock()
	p.rec = rec
	g.mu.Unlock()

	v := g.decide(ctx, rec)
	if ctx.Err() != nil {
		r.Complete(false)
		g.refuse(rec, Verdict{Rule: v.Rule}, abandoned(ctx))
		return
	}
	if !v.Allow {
		g.refuse(rec, v, "") // first, as everywhere: what it does next comes after it
		r.Complete(true)
		return
	}
	g.establish(ctx, r, p, v)
}

// admit takes a place among the pending ones.
func (g *Gateway) admit(p *pending) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pending) >= MaxPending {
		return false
	}
	g.pending[p] = struct{}{}
	return true
}

func (g *Gateway) dismiss(p *pending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pending, p)
}

// establish dials an allowed connection and then completes its handshake.
func (g *Gateway) establish(ctx context.Context, r *tcp.ForwarderRequest, p *pending, v Verdict) {
	rec := p.rec
	if g.tcpFlows.Add(1) > MaxFlows {
		g.tcpFlows.Add(-1)
		g.refuse(rec, v, "too many open connections")
		r.Complete(true)
		return
	}
	defer g.tcpFlows.Add(-1)
	if rec.judged(v) {
		g.journal.changed(rec)
	}
	upstream, resolved, err := g.dialer.dial(ctx, "tcp", g.destination(rec, v))
	if err != nil {
		if ctx.Err() != nil {
			r.Complete(false)
			g.refuse(rec, v, abandoned(ctx))
			return
		}
		g.refuse(rec, v, why(err))
		r.Complete(true)
		return
	}
	if name := g.pinned(rec); name != "" {
		if upstream, err = g.intercept(ctx, rec, v, upstream); err != nil {
			g.refuse(rec, v, err.Error())
			r.Complete(true)
			return
		}
		rec.intercepted(name)
	}
	// From here on the handshake itself finds out whether somebody is there.
	g.dismiss(p)
	var wq waiter.Queue
	// The handshake waits on the queue alone.
	stop := context.AfterFunc(ctx, func() { wq.Notify(waiter.WritableEvents) })
	ep, terr := r.CreateEndpoint(&wq)
	r.Complete(false)
	if !stop() || terr != nil {
		if ep != nil {
			ep.Abort()
		}
		reset(upstream)
		g.refuse(rec, v, abandoned(ctx))
		return
	}
	if g.tcpFlows.Load() > roomyFlows {
		ep.SocketOptions().SetSendBufferSize(crowdedBuffer, true)
		ep.SocketOptions().SetReceiveBufferSize(crowdedBuffer, true)
	}
	idle, between := tcpip.KeepaliveIdleOption(aliveAfter), tcpip.KeepaliveIntervalOption(aliveAfter)
	_, _ = ep.SetSockOpt(&idle), ep.SetSockOpt(&between) // neither can fail
	ep.SocketOptions().SetKeepAlive(true)
	g.connected(rec, resolved)
	g.relay(ctx, rec, newGuest(ep, &wq), upstream)
}

// abandoned says why a connection that nobody refused didn't come about.
func abandoned(ctx context.Context) string {
	switch cause := context.Cause(ctx); cause {
	case nil:
		return errAbandoned.Error()
	case errAbandoned, errRuled:
		return cause.Error()
	default:
		return errClosing.Error()
	}
}
