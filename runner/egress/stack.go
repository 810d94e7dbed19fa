package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

const nicID = tcpip.NICID(1)

// Buffers of one TCP connection, in bytes: together with MaxFlows they bound
// what a sandbox can make the gateway keep (270 MB, when every connection is
// stuck in both directions). The round trip is microseconds, so more wouldn't
// be faster; and a window that is larger than the packet socket's own buffer
// would only be lost there.
const (
	bufferMin     = 4 << 10
	windowSize    = 256 << 10 // of what the sandbox sends
	sendBuffer    = 256 << 10 // of what it gets, to begin with
	sendBufferMax = 512 << 10
	// Beyond so many open connections new ones get small buffers.
	roomyFlows    = 64
	crowdedBuffer = 64 << 10
)

// startStack builds the TCP/IP stack that answers for every address there is.
func (g *Gateway) startStack() error {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	g.stack = s // packets may arrive before it is wholly set up
	if err := g.setUpStack(s); err != nil {
		s.Destroy()
		return err
	}
	return nil
}

func (g *Gateway) setUpStack(s *stack.Stack) error {
	sack := tcpip.TCPSACKEnabled(true)
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: bufferMin, Default: windowSize, Max: windowSize}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: bufferMin, Default: sendBuffer, Max: sendBufferMax}
	// The sandbox's kernel may use a port again as soon as it has closed it,
	// and netstack would let such a SYN wait for the whole of TIME-WAIT. There
	// is no network between the two that could delay an old segment.
	timeWait := tcpip.TCPTimeWaitTimeoutOption(time.Millisecond)
	for _, o := range []tcpip.SettableTransportProtocolOption{&sack, &receive, &send, &timeWait} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return fmt.Errorf("cannot set up TCP: %s", err)
		}
	}
	w, err := newWire(&g.link)
	if err != nil {
		return fmt.Errorf("cannot read the link: %w", err)
	}
	// Packets arrive as soon as there is a NIC.
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(s, windowSize, maxInFlight, g.handleTCP).HandlePacket)
	s.SetTransportProtocolHandler(udp.ProtocolNumber, g.udp.handle)
	g.tap = newTap(g, w)
	if err := s.CreateNIC(nicID, g.tap); err != nil {
		w.Close()
		return fmt.Errorf("cannot attach the link: %s", err)
	}
	// Take packets to any address, and answer from any.
	if err := errors.Join(asError(s.SetPromiscuousMode(nicID, true)), asError(s.SetSpoofing(nicID, true))); err != nil {
		return fmt.Errorf("cannot answer for all addresses: %w", err)
	}
	var routes []tcpip.Route
	for _, end := range []struct {
		sandbox, gateway netip.Addr
		proto            tcpip.NetworkProtocolNumber
		all              tcpip.Subnet
	}{
		{g.link.Sandbox4, g.link.Gateway4, header.IPv4ProtocolNumber, header.IPv4EmptySubnet},
		{g.link.Sandbox6, g.link.Gateway6, header.IPv6ProtocolNumber, header.IPv6EmptySubnet},
	} {
		if !end.sandbox.IsValid() {
			continue
		}
		own := tcpip.ProtocolAddress{Protocol: end.proto, AddressWithPrefix: tcpip.AddrFromSlice(end.gateway.AsSlice()).WithPrefix()}
		if err := s.AddProtocolAddress(nicID, own, stack.AddressProperties{}); err != nil {
			return fmt.Errorf("cannot add address %s: %s", end.gateway, err)
		}
		routes = append(routes, tcpip.Route{Destination: end.all, NIC: nicID})
	}
	s.SetRouteTable(routes)
	return nil
}

// stopStack ends the stack's goroutines; its flows have ended. The link goes
// first: Destroy waits for its reader with a lock held that the reader may be
// waiting for.
func (g *Gateway) stopStack() {
	g.tap.Attach(nil)
	g.stack.Destroy()
}

func asError(err tcpip.Error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.String())
}

// address turns a netstack address into a netip one.
func address(a tcpip.Address) netip.Addr {
	addr, _ := netip.AddrFromSlice(a.AsSlice())
	return addr
}
