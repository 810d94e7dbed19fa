package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"stepbox/session/e2e/must"
)

// faulty is a meter that panics.
type faulty struct{ Meter }

func (faulty) Sent(context.Context, int, bool) (int, error) { panic("a fault\x1b of the meter's") }

// A panic over one attempt ends that one, whatever its kind, and it is never let
// through; the record says so, and the next attempt works.
func TestFaultEndsItsFlowAlone(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	s := newSandbox(t, Options{Judge: func(_ context.Context, a Attempt) Verdict {
		if a.Address.Port() != at.Port() {
			panic("a fault of the judge's")
		}
		return Verdict{Allow: true}
	}})
	if _, err := s.dial("tcp", "203.0.113.9:443", patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection: %v", err)
	}
	c, err := s.dial("udp", "203.0.113.9:443", patience)
	must.OK(t, err)
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	fd := s.pingSocketOf("203.0.113.9")
	if _, err := unix.Write(fd, request("203.0.113.9", 1, "x")); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{"tcp", "udp", "icmp"} {
		a := s.wait("the end of "+protocol, func(a Attempt) bool { return !a.Open && a.Protocol == protocol })
		if a.Verdict != verdictDeny || a.Rule != ruleFault || !strings.Contains(a.Failure, `"a fault of the judge's" at fault_test.go:`) {
			t.Errorf("%s: %+v", protocol, a)
		}
	}
	if got, err := s.get("tcp", at.String()); err != nil || got != "hello" {
		t.Errorf("the next one: %q, %v", got, err)
	}
}

// A panic over what an allowed connection carries resets it.
func TestFaultWhileBytesMove(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", echo)
	s := newSandbox(t, Options{Judge: func(context.Context, Attempt) Verdict { return Verdict{Allow: true, Meter: faulty{}} }})
	c, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the program saw %v", err)
	}
	if a := s.waitClosed(publicAddr); !strings.Contains(a.Failure, `"a fault\x1b of the meter's" at fault_test.go:`) || a.Sent != 0 {
		t.Errorf("%+v", a)
	}
}

// linked is a gateway at the end of a link that only this test writes to.
func linked(t testing.TB) *Gateway {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must.OK(t, err)
	t.Cleanup(func() { unix.Close(pair[1]) })
	g, err := New(Link{
		Kind: linkVeth, MTU: 65520, Packet: os.NewFile(uintptr(pair[0]), "link"),
		Sandbox4: sandbox4, Gateway4: gateway4, Sandbox6: sandbox6, Gateway6: gateway6,
	}, Options{})
	must.OK(t, err)
	t.Cleanup(func() { g.Close() })
	return g
}

// A panic in a packet's own way through the gateway drops the packet.
func TestFaultDropsItsPacket(t *testing.T) {
	g := linked(t)
	broken := &Gateway{link: g.link, names: g.names, journal: g.journal} // lacks what handles datagrams
	tap := newTap(broken, nil)
	broken.tap = tap
	packet := packet4(17, datagram(99, "x"))
	(&wire{ethernet: true}).deliver(tap, buffer.NewViewWithData(packet), len(packet)).Release()
	if f := tap.faults(); len(f) != 1 || !strings.Contains(f[0], "nil pointer") || !strings.Contains(f[0], "udp.go:") {
		t.Errorf("recorded are %q", f)
	}
}

// faults are what was recorded of packets that made something panic.
func (t *tap) faults() (list []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.seen {
		if s.kind == "fault" {
			list = append(list, s.what)
		}
	}
	return list
}

// frame is one of Ethernet for the gateway.
func frame(kind uint16, payload []byte) []byte {
	b := append([]byte(gatewayMAC), sandboxMAC...)
	return append(binary.BigEndian.AppendUint16(b, kind), payload...)
}

// packet4 is a frame with a packet of the sandbox's.
func packet4(protocol uint8, payload []byte) []byte {
	h := header.IPv4(make([]byte, header.IPv4MinimumSize))
	h.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(h) + len(payload)), TTL: 64, Protocol: protocol,
		SrcAddr: tcpip.AddrFromSlice(sandbox4.AsSlice()), DstAddr: tcpip.AddrFromSlice(parse(publicAddr).AsSlice()),
	})
	return frame(uint16(header.IPv4ProtocolNumber), append(h, payload...))
}

// packet6 is packet4 for IPv6.
func packet6(protocol uint8, payload []byte) []byte {
	h := header.IPv6(make([]byte, header.IPv6MinimumSize))
	h.Encode(&header.IPv6Fields{
		PayloadLength: uint16(len(payload)), TransportProtocol: tcpip.TransportProtocolNumber(protocol), HopLimit: 64,
		SrcAddr: tcpip.AddrFromSlice(sandbox6.AsSlice()), DstAddr: tcpip.AddrFromSlice(parse(publicAddr6).AsSlice()),
	})
	return frame(uint16(header.IPv6ProtocolNumber), append(h, payload...))
}

func datagram(port uint16, payload string) []byte {
	h := header.UDP(make([]byte, header.UDPMinimumSize))
	h.Encode(&header.UDPFields{SrcPort: 40000, DstPort: port, Length: uint16(len(h) + len(payload))})
	return append(h, payload...)
}

// segment is one of TCP with its options.
func segment(port uint16, flags header.TCPFlags, options ...byte) []byte {
	h := header.TCP(make([]byte, header.TCPMinimumSize+len(options)))
	h.Encode(&header.TCPFields{SrcPort: 40000, DstPort: port, DataOffset: uint8(len(h)), Flags: flags, WindowSize: 1 << 15})
	copy(h[header.TCPMinimumSize:], options)
	return h
}

// Whatever comes over the link, nothing panics: each entry is a kind of frame, and the
// fuzzer changes what is in it. What is allowed is dialled nowhere: there is no judge.
func FuzzLink(f *testing.F) {
	const icmp, tcp, udp, icmp6, hop, fragment = 1, 6, 17, 58, 0, 44
	ask := string(question("honest.example.", dnsmessage.TypeA))
	for _, payload := range []string{"", "x", ask, ask[:20]} {
		f.Add(packet4(udp, datagram(dnsPort, payload)))
		f.Add(packet6(udp, datagram(dnsPort, payload)))
		f.Add(packet4(udp, datagram(443, payload)))
	}
	options := [][]byte{nil, {2, 4, 5, 180}, {1, 3, 3, 14}, {4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0}, {2, 0, 0, 0}, {8, 255, 1, 1}, {5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0}}
	for _, o := range options {
		f.Add(packet4(tcp, segment(443, header.TCPFlagSyn, o...)))
		f.Add(packet6(tcp, segment(dnsPort, header.TCPFlagSyn, o...)))
		f.Add(packet4(tcp, segment(443, header.TCPFlagAck|header.TCPFlagPsh, o...)))
	}
	for _, kind := range []byte{8, 0, 3, 5, 11, 13} {
		f.Add(packet4(icmp, []byte{kind, 0, 0, 0, 0, 1, 0, 1}))
	}
	f.Add(packet4(icmp, nil))
	inner := packet4(udp, datagram(443, "x"))[header.EthernetMinimumSize:]
	f.Add(packet4(icmp, append([]byte{3, 3, 0, 0, 0, 0, 0, 0}, inner...)))
	for _, kind := range []byte{128, 1, 2, 133, 134, 135, 136, 143} {
		f.Add(packet6(icmp6, []byte{kind, 0, 0, 0, 0, 1, 0, 1}))
	}
	f.Add(packet6(fragment, append([]byte{udp, 0, 0, 1, 0, 0, 0, 7}, datagram(443, "x")...)))
	f.Add(packet6(hop, []byte{icmp6, 0, 5, 2, 0, 0, 1, 0}))
	f.Add(frame(uint16(header.ARPProtocolNumber), make([]byte, header.ARPSize)))
	f.Add(frame(uint16(header.IPv4ProtocolNumber), nil))
	f.Add([]byte{})
	g := linked(f)
	w := &wire{ethernet: true}
	f.Fuzz(func(t *testing.T, b []byte) {
		w.deliver(g.tap, buffer.NewViewWithData(b), len(b)).Release()
		if faults := g.tap.faults(); len(faults) > 0 {
			t.Error(faults)
		}
	})
}
