package egress

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	maxDNSConns  = 64               // DNS connections over TCP at a time
	maxDNSOnConn = 1024             // questions on one of them
	dnsIdle      = 10 * time.Second // between two questions on one of them
)

// dnsPacket answers a datagram to port 53 of any address, from that address.
// It keeps no state.
func (g *Gateway) dnsPacket(t tuple, pkt *stack.PacketBuffer) {
	answer, l := g.names.answerDNS(pkt.Data().AsRange().ToSlice())
	g.logLookup(t, l)
	if answer != nil {
		g.sendUDP(t, answer)
	}
}

// logLookup logs a question that wasn't answered the usual way: a program
// that needs the answer will fail, and a person should be able to see why.
func (g *Gateway) logLookup(t tuple, l lookup) {
	if l.odd == "" || !g.tap.news(swallowed{kind: "dns", what: l.name + " " + l.odd}) {
		return
	}
	rec := g.open("dns", t)
	if rec == nil {
		return
	}
	rec.a.Name = l.name
	g.refuse(rec, Verdict{Rule: ruleKind}, l.odd)
}

// serveDNSOverTCP answers DNS on a connection to port 53 of any address
// (RFC 7766).
func (g *Gateway) serveDNSOverTCP(r *tcp.ForwarderRequest) {
	if g.dnsConns.Add(1) > maxDNSConns {
		g.dnsConns.Add(-1)
		r.Complete(true)
		g.flood()
		return
	}
	defer g.dnsConns.Add(-1)
	t := ends(r.ID(), false)
	var wq waiter.Queue
	stop := context.AfterFunc(g.ctx, func() { wq.Notify(waiter.WritableEvents) })
	ep, err := r.CreateEndpoint(&wq)
	r.Complete(false)
	stop()
	if err != nil {
		return
	}
	conn := gonet.NewTCPConn(&wq, ep)
	defer conn.Close()
	defer context.AfterFunc(g.ctx, ep.Abort)()
	msg := make([]byte, maxDNS)
	for range maxDNSOnConn {
		_ = conn.SetDeadline(time.Now().Add(dnsIdle))
		if _, err := io.ReadFull(conn, msg[:2]); err != nil {
			return
		}
		size := int(binary.BigEndian.Uint16(msg))
		if size > maxDNS {
			return
		}
		if _, err := io.ReadFull(conn, msg[:size]); err != nil {
			return
		}
		answer, l := g.names.answerDNS(msg[:size])
		g.logLookup(t, l)
		if answer == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}
