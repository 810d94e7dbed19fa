package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// synPacket is a SYN as a program with a raw socket would forge it.
func synPacket(from, to netip.AddrPort, seq uint32) []byte {
	b := make([]byte, 40)
	b[0], b[8], b[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(b[2:], 40)
	copy(b[12:], from.Addr().AsSlice())
	copy(b[16:], to.Addr().AsSlice())
	binary.BigEndian.PutUint16(b[20:], from.Port())
	binary.BigEndian.PutUint16(b[22:], to.Port())
	binary.BigEndian.PutUint32(b[24:], seq)
	b[32], b[33] = 5<<4, 2
	binary.BigEndian.PutUint16(b[34:], 65535)
	return b
}

// Ten thousand connections at once are bounded in what they take, and each that arrives
// is listed or counted.
func TestFloodOfSYNs(t *testing.T) {
	s := newSandbox(t, Options{Judge: func(ctx context.Context, _ Attempt) Verdict {
		<-ctx.Done()
		return Verdict{}
	}})
	n, before, most := 0, runtime.NumGoroutine(), 0
	counted := func() bool {
		return slices.ContainsFunc(s.logged(), func(a Attempt) bool { return a.Protocol == "flood" && a.Count > 100 })
	}
	s.do(func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		// The link loses most of them, the more the busier the machine is.
		for end := time.Now().Add(patience); (n < 10000 || !counted()) && time.Now().Before(end); {
			for range 10000 {
				// No two are one that is tried again.
				from := netip.AddrPortFrom(s.link.Sandbox4, uint16(1024+n%60000))
				to := netip.AddrPortFrom(netip.MustParseAddr(publicAddr), uint16(443+n/60000))
				if err := unix.Sendto(fd, synPacket(from, to, uint32(n)), 0, &unix.SockaddrInet4{Addr: to.Addr().As4()}); err != nil {
					t.Error(err)
					return
				}
				n++
				most = max(most, runtime.NumGoroutine()-before)
			}
			for told := time.After(2 * logEvery); !counted(); {
				select {
				case <-s.more:
					continue
				case <-told:
				}
				break
			}
		}
	})
	if most > maxInFlight+100 {
		t.Errorf("%d goroutines", most)
	}
	if !counted() {
		t.Fatalf("of %d none is counted", n)
	}
	s.gw.mu.Lock()
	held := len(s.gw.pending)
	s.gw.mu.Unlock()
	if held > MaxPending {
		t.Errorf("%d are held", held)
	}
	arrived := int(s.gw.stack.NICInfo()[nicID].Stats.Rx.Packets.Value())
	// While they are held names are answered.
	s.resolve("honest.example")
	known := func() (n int) {
		last := make(map[int64]Attempt)
		for _, a := range s.logged() {
			last[a.ID] = a
		}
		for _, a := range last {
			n += a.Count
		}
		return n
	}
	// The stack hands each over on a goroutine of its own, which takes its time.
	for deadline := time.After(patience); known() < arrived; {
		select {
		case <-s.more:
		case <-deadline:
			t.Fatalf("%d arrived, %d are listed or counted", arrived, known())
		}
	}
	must.OK(t, s.gw.Close())
	if known() > n {
		t.Errorf("%d are listed or counted, of %d", known(), n)
	}
	t.Logf("%d of %d arrived; %d goroutines at most", arrived, n, most)
}

// Connections to the name server that say nothing keep nobody else from it.
func TestSlowDNS(t *testing.T) {
	s := newSandbox(t, Options{})
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range maxDNSConns {
		c, err := s.dial("tcp", Nameserver+":53", patience)
		must.OK(t, err)
		c.Write([]byte{0}) // half a length
		open = append(open, c)
	}
	if _, err := s.dial("tcp", Nameserver+":53", patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("one too many: %v", err)
	}
	s.wait("it is counted", func(a Attempt) bool { return a.Protocol == "flood" })
	s.ask("udp", "[2001:db8::53]:53", "example.com.", dnsmessage.TypeA)
}

// A black hole is given up, and the attempt says so.
func TestBlackHole(t *testing.T) {
	s := newSandbox(t, Options{Judge: allow, patience: 300 * time.Millisecond})
	if _, err := s.dial("tcp", "203.0.113.200:443", patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the program saw %v", err)
	}
	if a := s.waitClosed("203.0.113.200"); a.Verdict != "allow" || a.Failure != "no answer in time" {
		t.Errorf("logged %+v", a)
	}
}

// While the host has no network attempts fail and say so; once it is back they work.
func TestHostWithoutNetwork(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	s := newSandbox(t, Options{Judge: allow})
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Gw: net.ParseIP("10.77.0.1")}, netlink.RT_FILTER_GW)
	if err != nil || len(routes) != 1 {
		t.Fatalf("%d default routes, %v", len(routes), err)
	}
	must.OK(t, netlink.RouteDel(&routes[0]))
	_, gone := s.get("tcp", at.String())
	c, err := s.dial("udp", publicAddr+":123", patience)
	must.OK(t, err)
	defer c.Close()
	_, goneUDP := roundTrip(c, []byte("x"))
	must.OK(t, netlink.RouteAdd(&routes[0]))
	if !errors.Is(gone, syscall.ECONNREFUSED) || !errors.Is(goneUDP, syscall.ECONNREFUSED) {
		t.Errorf("without a network: %v, %v", gone, goneUDP)
	}
	if a := s.waitClosed(publicAddr); a.Verdict != "allow" || !strings.Contains(a.Failure, "network is unreachable") {
		t.Errorf("logged %+v", a)
	}
	if got, err := s.get("tcp", at.String()); err != nil || got != "hello" {
		t.Errorf("with it again: %q, %v", got, err)
	}
}
