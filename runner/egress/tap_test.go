package egress

import (
	"testing"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Whatever a frame holds, the tap reads nothing beyond its end, and lets only
// TCP and UDP of the sandbox's own address, and the kernel's own ICMP errors,
// through to the stack.
func FuzzTap(f *testing.F) {
	four := make([]byte, 28)
	header.IPv4(four).Encode(&header.IPv4Fields{
		TotalLength: 28, TTL: 64, Protocol: 17,
		SrcAddr: tcpip.AddrFromSlice(sandbox4.AsSlice()), DstAddr: tcpip.AddrFromSlice(parse(publicAddr).AsSlice()),
	})
	f.Add(four)
	six := make([]byte, 48)
	header.IPv6(six).Encode(&header.IPv6Fields{
		PayloadLength: 8, TransportProtocol: 6, HopLimit: 64,
		SrcAddr: tcpip.AddrFromSlice(sandbox6.AsSlice()), DstAddr: tcpip.AddrFromSlice(parse(publicAddr6).AsSlice()),
	})
	f.Add(six)
	tp := &tap{g: &Gateway{link: Link{Sandbox4: sandbox4, Sandbox6: sandbox6}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
		defer pkt.DecRef()
		if h, ok := pkt.Data().PullUp(header.IPv4MinimumSize); ok && header.IPVersion(h) == 4 {
			s, l, pass := tp.judge4(pkt, header.IPv4(h))
			if pass && (l.local.Addr() != sandbox4 || l.remote.Addr().IsMulticast()) {
				t.Errorf("let %+v through", l)
			}
			if pass == (s.kind != "") && header.IPv4(h).TransportProtocol() != header.IGMPProtocolNumber {
				t.Errorf("pass %v of %+v", pass, s)
			}
		}
		if h, ok := pkt.Data().PullUp(header.IPv6MinimumSize); ok && header.IPVersion(h) == 6 {
			//lint:ignore SA1019 as in judge6
			if _, l, pass := tp.judge6(pkt, header.IPv6(h)); pass && (l.local.Addr() != sandbox6 || l.remote.Addr().IsMulticast() && header.IPv6(h).TransportProtocol() != header.ICMPv6ProtocolNumber) {
				t.Errorf("let %+v through", l)
			}
		}
	})
}
