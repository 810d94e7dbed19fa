package egress

import (
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

const (
	packetTTL = 64
	icmp4     = header.ICMPv4ProtocolNumber
	icmp6     = header.ICMPv6ProtocolNumber
)

// route is the way back to the sandbox's end of t, from its far end.
func (g *Gateway) route(t tuple) (*stack.Route, bool) {
	proto := ipv4.ProtocolNumber
	if t.local.Addr().Is6() {
		proto = ipv6.ProtocolNumber
	}
	r, err := g.stack.FindRoute(nicID, tcpip.AddrFromSlice(t.remote.Addr().AsSlice()), tcpip.AddrFromSlice(t.local.Addr().AsSlice()), proto, false)
	return r, err == nil
}

// sendUDP sends the sandbox one datagram from the far end of t, without an
// endpoint. What can't be sent is dropped, as datagrams are.
func (g *Gateway) sendUDP(t tuple, payload []byte) {
	r, ok := g.route(t)
	if !ok {
		return
	}
	defer r.Release()
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: header.UDPMinimumSize + int(r.MaxHeaderLength()),
		Payload:            buffer.MakeWithData(payload),
	})
	defer pkt.DecRef()
	length := uint16(header.UDPMinimumSize + len(payload))
	h := header.UDP(pkt.TransportHeader().Push(header.UDPMinimumSize))
	pkt.TransportProtocolNumber = udp.ProtocolNumber
	h.Encode(&header.UDPFields{SrcPort: t.remote.Port(), DstPort: t.local.Port(), Length: length})
	sum := checksum.Combine(r.PseudoHeaderChecksum(udp.ProtocolNumber, length), pkt.Data().Checksum())
	h.SetChecksum(^h.CalculateChecksum(sum))
	_ = r.WritePacket(stack.NetworkHeaderParams{Protocol: udp.ProtocolNumber, TTL: packetTTL}, pkt)
}

// unreachable is why a packet isn't taken any further.
type unreachable int

const (
	prohibited unreachable = iota // "administratively prohibited" (RFC 1812 section 5.2.7.1, RFC 4443 section 3.1)
	noHost                        // "host", or "address, unreachable"
)

// quoteOf is what of a packet is quoted to its sender.
func quoteOf(packet []byte) []byte { return append([]byte(nil), packet[:min(len(packet), 512)]...) }

// unreachable answers a packet of the sandbox, from where it was sent to, so that a
// ping fails instead of waiting.
func (g *Gateway) unreachable(t tuple, quote []byte, code unreachable) {
	h := header.ICMPv4(make([]byte, header.ICMPv4MinimumSize))
	h.SetType(header.ICMPv4DstUnreachable)
	h.SetCode([]header.ICMPv4Code{header.ICMPv4AdminProhibited, header.ICMPv4HostUnreachable}[code])
	if t.local.Addr().Is6() {
		h.SetType(header.ICMPv4Type(header.ICMPv6DstUnreachable))
		h.SetCode(header.ICMPv4Code([]header.ICMPv6Code{header.ICMPv6Prohibited, header.ICMPv6AddressUnreachable}[code]))
	}
	g.sendICMP(t, h, quote)
}

// echoReply answers a ping of the sandbox from where it was sent to.
func (g *Gateway) echoReply(t tuple, seq uint16, payload []byte) {
	h := header.ICMPv4(make([]byte, header.ICMPv4MinimumSize))
	h.SetType(header.ICMPv4EchoReply)
	if t.local.Addr().Is6() {
		h.SetType(header.ICMPv4Type(header.ICMPv6EchoReply))
	}
	h.SetIdent(t.local.Port())
	h.SetSequence(seq)
	g.sendICMP(t, h, payload)
}

// sendICMP sends the sandbox an ICMP message from the far end of t. The fields that
// are used here are at the same places in both versions.
func (g *Gateway) sendICMP(t tuple, head header.ICMPv4, payload []byte) {
	r, ok := g.route(t)
	if !ok {
		return
	}
	defer r.Release()
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: len(head) + int(r.MaxHeaderLength()),
		Payload:            buffer.MakeWithData(payload),
	})
	defer pkt.DecRef()
	b := pkt.TransportHeader().Push(len(head))
	copy(b, head)
	proto := icmp4
	if t.local.Addr().Is6() {
		proto = icmp6
		h := header.ICMPv6(b)
		h.SetChecksum(header.ICMPv6Checksum(header.ICMPv6ChecksumParams{
			Header: h, Src: r.LocalAddress(), Dst: r.RemoteAddress(),
			PayloadCsum: pkt.Data().Checksum(), PayloadLen: pkt.Data().Size(),
		}))
	} else {
		h := header.ICMPv4(b)
		h.SetChecksum(header.ICMPv4Checksum(h, pkt.Data().Checksum()))
	}
	pkt.TransportProtocolNumber = proto
	_ = r.WritePacket(stack.NetworkHeaderParams{Protocol: proto, TTL: packetTTL}, pkt)
}

// again gives a packet that a handler has kept back to the stack, as if it
// had just arrived.
func (g *Gateway) again(pkt *stack.PacketBuffer) {
	view := stack.PayloadSince(pkt.NetworkHeader())
	fresh := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(view)})
	defer fresh.DecRef()
	g.tap.Endpoint.DeliverNetworkPacket(pkt.NetworkProtocolNumber, fresh)
}
