package egress

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/nested"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	maxNews  = 1024             // kinds of swallowed packets that are remembered
	newsHold = 10 * time.Second // before the same kind is logged again
)

const (
	kindEcho  = "echo" // a ping, which is judged
	forwarded = "only TCP, UDP and pings are forwarded"
)

// tap sees every packet before the stack does. Pings it hands to their table. It
// drops, and logs, what the forwarders would never get to see: multicast and
// broadcast, protocols other than TCP and UDP, and sources that aren't the sandbox's.
type tap struct {
	nested.Endpoint
	g *Gateway

	mu   sync.Mutex
	seen map[swallowed]time.Time // guarded by mu; at most maxNews
}

// swallowed is one kind of packet that leads nowhere.
type swallowed struct {
	kind, what string
	to         netip.AddrPort
}

func newTap(g *Gateway, child stack.LinkEndpoint) *tap {
	t := &tap{g: g, seen: make(map[swallowed]time.Time)}
	t.Endpoint.Init(child, t)
	return t
}

// WritePackets sends packets of the stack. The answer to a SYN goes by another
// goroutine: the stack sends it with its endpoint locked, the sandbox's kernel
// acknowledges it within the very system call, and what takes the acknowledgement would
// spin until the lock is free.
func (t *tap) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	list := pkts.AsSlice()
	if len(list) != 1 || !answersSYN(list[0]) || !t.g.begin() {
		return t.Endpoint.WritePackets(pkts)
	}
	pkt := list[0].IncRef()
	go func() {
		defer t.g.wg.Done()
		defer pkt.DecRef()
		defer survive(func(why string) { t.fault(tuple{}, why) })
		var one stack.PacketBufferList
		one.PushBack(pkt)
		_, _ = t.Endpoint.WritePackets(one)
	}()
	return 1, nil
}

func answersSYN(pkt *stack.PacketBuffer) bool {
	if pkt.TransportProtocolNumber != header.TCPProtocolNumber {
		return false
	}
	h := header.TCP(pkt.TransportHeader().Slice())
	return len(h) >= header.TCPMinimumSize && h.Flags().Contains(header.TCPFlagSyn|header.TCPFlagAck)
}

// news says whether s hasn't been logged lately.
func (t *tap) news(s swallowed) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if last, ok := t.seen[s]; ok && now.Sub(last) < newsHold {
		return false
	}
	if len(t.seen) >= maxNews {
		clear(t.seen) // logged twice rather than kept for ever; the journal bounds that
	}
	t.seen[s] = now
	return true
}

// DeliverNetworkPacket takes a packet from the link. It owns no reference.
func (t *tap) DeliverNetworkPacket(proto tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	var s swallowed
	var l tuple
	var size int
	pass := true
	defer survive(func(why string) { t.fault(l, why) })
	switch proto {
	case header.IPv4ProtocolNumber:
		if b, ok := pkt.Data().PullUp(header.IPv4MinimumSize); ok {
			s, l, pass = t.judge4(pkt, header.IPv4(b))
			size = pkt.Data().Size() - header.IPv4MinimumSize
		}
	case header.IPv6ProtocolNumber:
		if b, ok := pkt.Data().PullUp(header.IPv6MinimumSize); ok {
			s, l, pass = t.judge6(pkt, header.IPv6(b))
			size = pkt.Data().Size() - header.IPv6MinimumSize
		}
	default:
		return // not IP: the sandbox's kernel has no reason to send it
	}
	if pass {
		if l.udp && l.local.Port() != 0 {
			t.g.udp.sends(l)
		}
		t.Endpoint.DeliverNetworkPacket(proto, pkt)
		return
	}
	if s.kind == kindEcho {
		t.echo(l, pkt)
		return
	}
	if s.kind == "" || !t.news(s) {
		return
	}
	rec := t.g.open(s.kind, l)
	if rec == nil {
		return
	}
	rec.sent.Store(int64(max(size, 0)))
	t.g.refuse(rec, Verdict{Rule: ruleKind}, s.what)
}

// fault records a packet that a panic has ended.
func (t *tap) fault(l tuple, why string) {
	if !t.news(swallowed{kind: "fault", what: why}) {
		return
	}
	if r := t.g.open("fault", l); r != nil {
		r.fault(t.g, why)
	}
}

// echo hands on a ping.
func (t *tap) echo(l tuple, pkt *stack.PacketBuffer) {
	offset := header.IPv6MinimumSize
	if l.local.Addr().Is4() {
		b, _ := pkt.Data().PullUp(1)
		offset = int(header.IPv4(b).HeaderLength())
	}
	ident, r, ok := parseEcho(pkt, offset)
	if !ok {
		return // too short to be a request
	}
	l.local = netip.AddrPortFrom(l.local.Addr(), ident)
	t.g.echo.handle(l, r)
}

// judge4 says whether the stack may have an IPv4 packet, and if not what it is.
func (t *tap) judge4(pkt *stack.PacketBuffer, h header.IPv4) (s swallowed, l tuple, pass bool) {
	src, dst := address(h.SourceAddress()), address(h.DestinationAddress())
	proto := h.TransportProtocol()
	l, known := t.ports(pkt, int(h.HeaderLength()), proto, src, dst, h.FragmentOffset() == 0)
	s.to = l.remote
	switch {
	case proto == header.IGMPProtocolNumber:
		return s, l, false // the kernel telling that a program joined a group
	case src != t.g.link.Sandbox4:
		s.kind, s.what = "forged", fmt.Sprintf("a packet with another source, %s", src)
	case dst.IsMulticast():
		s.kind, s.what = "multicast", protocolName(proto)
	case dst == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		s.kind, s.what = "broadcast", protocolName(proto)
	case proto == header.ICMPv4ProtocolNumber:
		kind, ok := firstByte(pkt, int(h.HeaderLength()))
		whole := h.FragmentOffset() == 0 && !h.More()
		switch {
		case ok && header.ICMPv4Type(kind) == header.ICMPv4DstUnreachable:
			return s, l, true // the sandbox's kernel about a closed UDP socket
		case ok && whole && header.ICMPv4Type(kind) == header.ICMPv4Echo:
			s.kind = kindEcho
		default:
			s.kind, s.what = fmt.Sprintf("ip/%d", proto), forwarded
		}
	case known:
		return s, l, true
	default:
		s.kind, s.what = fmt.Sprintf("ip/%d", proto), forwarded
	}
	return s, l, false
}

// judge6 is judge4 for IPv6.
func (t *tap) judge6(pkt *stack.PacketBuffer, h header.IPv6) (s swallowed, l tuple, pass bool) {
	src, dst := address(h.SourceAddress()), address(h.DestinationAddress())
	//lint:ignore SA1019 the next header as it stands is what decides here: packets with extension headers are dropped
	proto := h.TransportProtocol()
	l, known := t.ports(pkt, header.IPv6MinimumSize, proto, src, dst, true)
	s.to = l.remote
	if proto == header.ICMPv6ProtocolNumber {
		kind, _ := firstByte(pkt, header.IPv6MinimumSize)
		switch header.ICMPv6Type(kind) {
		case header.ICMPv6EchoRequest:
			switch {
			case src != t.g.link.Sandbox6:
				s.kind, s.what = "forged", fmt.Sprintf("a packet with another source, %s", src)
			case dst.IsMulticast():
				s.kind, s.what = "multicast", protocolName(proto)
			default:
				s.kind = kindEcho
			}
			return s, l, false
		case header.ICMPv6DstUnreachable:
			return s, l, src == t.g.link.Sandbox6
		}
		return s, l, false // neighbour and group upkeep of the kernel
	}
	if next, _ := firstByte(pkt, header.IPv6MinimumSize); proto == tcpip.TransportProtocolNumber(header.IPv6HopByHopOptionsExtHdrIdentifier) &&
		next == byte(header.ICMPv6ProtocolNumber) && dst.IsMulticast() {
		return s, l, false // the kernel telling that a group is joined (RFC 3810)
	}
	switch {
	case src != t.g.link.Sandbox6:
		s.kind, s.what = "forged", fmt.Sprintf("a packet with another source, %s", src)
	case dst.IsMulticast():
		s.kind, s.what = "multicast", protocolName(proto)
	case known:
		return s, l, true
	case proto == tcpip.TransportProtocolNumber(header.IPv6FragmentHeader):
		l, _ = t.fragment6(pkt, l)
		return s, l, true // the stack puts it together first
	default:
		s.kind, s.what = fmt.Sprintf("ip/%d", proto), forwarded
	}
	return s, l, false
}

// ports completes a packet's two ends; known says that it is TCP or UDP.
func (t *tap) ports(pkt *stack.PacketBuffer, offset int, proto tcpip.TransportProtocolNumber, src, dst netip.Addr, first bool) (l tuple, known bool) {
	l.local, l.remote = netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
	if proto != header.TCPProtocolNumber && proto != header.UDPProtocolNumber {
		return l, false
	}
	l.udp = proto == header.UDPProtocolNumber
	if b, ok := pkt.Data().PullUp(offset + 4); ok && first {
		l.local = netip.AddrPortFrom(src, uint16(b[offset])<<8|uint16(b[offset+1]))
		l.remote = netip.AddrPortFrom(dst, uint16(b[offset+2])<<8|uint16(b[offset+3]))
	}
	return l, true
}

// fragment6 completes the two ends of the first piece of a datagram (RFC 8200 section
// 4.5).
func (t *tap) fragment6(pkt *stack.PacketBuffer, l tuple) (tuple, bool) {
	const offset = header.IPv6MinimumSize
	b, ok := pkt.Data().PullUp(offset + header.IPv6FragmentHeaderSize)
	if !ok || tcpip.TransportProtocolNumber(b[offset]) != header.UDPProtocolNumber {
		return l, false
	}
	first := b[offset+2] == 0 && b[offset+3]&^7 == 0
	return t.ports(pkt, offset+header.IPv6FragmentHeaderSize, header.UDPProtocolNumber, l.local.Addr(), l.remote.Addr(), first)
}

func firstByte(pkt *stack.PacketBuffer, offset int) (byte, bool) {
	b, ok := pkt.Data().PullUp(offset + 1)
	if !ok {
		return 0, false
	}
	return b[offset], true
}

func protocolName(proto tcpip.TransportProtocolNumber) string {
	switch proto {
	case header.TCPProtocolNumber:
		return "TCP"
	case header.UDPProtocolNumber:
		return "UDP"
	case header.ICMPv4ProtocolNumber, header.ICMPv6ProtocolNumber:
		return "ICMP"
	}
	return fmt.Sprintf("IP protocol %d", proto)
}
