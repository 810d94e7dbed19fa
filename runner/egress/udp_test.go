package egress

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// echoUDP answers datagrams at addr with themselves.
func echoUDP(t testing.TB, where *space, addr string) netip.AddrPort {
	t.Helper()
	var c net.PacketConn
	var err error
	where.do(func() { c, err = net.ListenPacket("udp", addr) })
	must.OK(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			c.WriteTo(buf[:n], from)
		}
	})
	t.Cleanup(func() { c.Close(); wg.Wait() })
	return netip.MustParseAddrPort(c.LocalAddr().String())
}

// roundTrip sends a datagram and waits for its answer.
func roundTrip(c net.Conn, b []byte) ([]byte, error) {
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(b); err != nil {
		return nil, err
	}
	buf := make([]byte, 64<<10)
	n, err := c.Read(buf)
	return buf[:n], err
}

func TestUDPEcho(t *testing.T) {
	at := echoUDP(t, internet, publicAddr+":0")
	z := newZone(t, map[string][]string{"echo.example": {publicAddr}})
	s := newSandbox(t, Options{resolver: z.resolver(), Judge: func(ctx context.Context, a Attempt) Verdict {
		if a.Name == "echo.example" {
			// Held: what was sent meanwhile arrives with the verdict.
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return Verdict{Allow: true, Rule: "test"}
	}})
	for _, dst := range []netip.AddrPort{at, netip.AddrPortFrom(s.resolve("echo.example"), at.Port())} {
		c, err := s.dial("udp", dst.String(), patience)
		must.OK(t, err)
		defer c.Close()
		for _, size := range []int{1, 1000, 9000, 60000} {
			msg := bytes.Repeat([]byte{byte(size)}, size)
			if got, err := roundTrip(c, msg); err != nil || !bytes.Equal(got, msg) {
				t.Fatalf("%s, %d bytes: got %d, %v", dst, size, len(got), err)
			}
		}
	}
	a := s.wait("the named flow", func(a Attempt) bool { return a.Name == "echo.example" && a.Resolved != "" })
	if a.Protocol != "udp" || a.Resolved != at.String() {
		t.Errorf("logged %+v", a)
	}
}

// A denied flow is told so at once, and logged once however often it tries.
func TestUDPDenied(t *testing.T) {
	var judged atomic.Int32
	s := newSandbox(t, Options{Judge: func(context.Context, Attempt) Verdict {
		judged.Add(1)
		return Verdict{Rule: "no"}
	}})
	c, err := s.dial("udp", publicAddr+":5000", patience)
	must.OK(t, err)
	defer c.Close()
	for range 20 {
		if _, err := roundTrip(c, []byte("x")); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("got %v", err)
		}
	}
	s.waitClosed(publicAddr)
	if n, m := len(s.logged()), judged.Load(); n != 1 || m != 1 {
		t.Errorf("logged %d times, judged %d times", n, m)
	}
}

func TestUDPDeniedAfterAPerson(t *testing.T) {
	s := newSandbox(t, Options{Judge: func(ctx context.Context, _ Attempt) Verdict {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
		}
		return Verdict{}
	}})
	c, err := s.dial("udp", "["+publicAddr6+"]:5000", patience)
	must.OK(t, err)
	defer c.Close()
	if _, err := roundTrip(c, []byte("x")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("got %v", err)
	}
}

// The guard stands before datagrams too, and so does a closed port.
func TestUDPGuard(t *testing.T) {
	s := newSandbox(t, Options{Judge: allow})
	for _, dst := range []string{metadataAddr + ":123", ownLAN + ":123", lanAddr + ":123"} {
		c, err := s.dial("udp", dst, patience)
		must.OK(t, err)
		if _, err := roundTrip(c, []byte("x")); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", dst, err)
		}
		c.Close()
	}
	if a := s.waitClosed(metadataAddr); a.Failure == "" {
		t.Errorf("logged %+v", a)
	}
}

// A held flow whose program has gone is given up after a while, so that its question
// can end; one whose program is there waits on.
func TestUDPHeldIsAbandoned(t *testing.T) {
	asked, given := make(chan Attempt, 2), make(chan error, 2)
	s := newSandbox(t, Options{Judge: func(ctx context.Context, a Attempt) Verdict {
		asked <- a
		<-ctx.Done()
		given <- context.Cause(ctx)
		return Verdict{}
	}})
	c, err := s.dial("udp", publicAddr+":5000", patience)
	must.OK(t, err)
	c.Write([]byte("x"))
	<-asked
	s.gw.udp.expire(time.Now().Add(udpIdle + time.Hour))
	select {
	case err := <-given:
		t.Fatalf("given up with its program there: %v", err)
	default:
	}
	c.Close()
	s.gw.udp.expire(time.Now().Add(udpIdle + time.Hour))
	if err := <-given; !errors.Is(err, errAbandoned) {
		t.Errorf("given up: %v", err)
	}
	if a := s.waitClosed(publicAddr); a.Verdict != "deny" || a.Failure != errAbandoned.Error() {
		t.Errorf("logged %+v", a)
	}
}

// What the forwarders never see is logged once and dropped.
func TestSwallowed(t *testing.T) {
	s := newSandbox(t, Options{Judge: func(_ context.Context, a Attempt) Verdict {
		t.Errorf("asked about %+v", a)
		return Verdict{Allow: true, Private: true}
	}})
	send := func(what string, domain, kind, proto int, to unix.Sockaddr, set func(fd int) error) {
		t.Helper()
		var err error
		s.do(func() {
			var fd int
			if fd, err = unix.Socket(domain, kind|unix.SOCK_CLOEXEC, proto); err != nil {
				return
			}
			defer unix.Close(fd)
			if set != nil {
				if err = set(fd); err != nil {
					return
				}
			}
			for range 3 {
				if err = unix.Sendto(fd, []byte("\x0d\x00\x00\x00\x00\x01\x00\x01payload"), 0, to); err != nil {
					return
				}
			}
		})
		if err != nil {
			t.Fatalf("cannot send %s: %v", what, err)
		}
	}
	four := func(s string, port int) unix.Sockaddr {
		return &unix.SockaddrInet4{Addr: netip.MustParseAddr(s).As4(), Port: port}
	}
	six := func(s string, port int) unix.Sockaddr {
		return &unix.SockaddrInet6{Addr: netip.MustParseAddr(s).As16(), Port: port}
	}
	send("multicast", unix.AF_INET, unix.SOCK_DGRAM, 0, four("224.0.0.251", 5353), nil)
	send("multicast v6", unix.AF_INET6, unix.SOCK_DGRAM, 0, six("ff05::fb", 5353), nil)
	send("broadcast", unix.AF_INET, unix.SOCK_DGRAM, 0, four("255.255.255.255", 67), func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
	})
	send("a timestamp request", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, four(publicAddr, 0), nil)
	send("SCTP", unix.AF_INET, unix.SOCK_RAW, 132, four(publicAddr, 0), nil)
	send("GRE v6", unix.AF_INET6, unix.SOCK_RAW, 47, six(publicAddr6, 0), nil)
	send("a forged source", unix.AF_INET, unix.SOCK_DGRAM, 0, four(publicAddr, 99), func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1); err != nil {
			return err
		}
		return unix.Bind(fd, four("1.2.3.4", 0))
	})
	kinds := []string{"multicast", "broadcast", "ip/1", "ip/132", "ip/47", "forged"}
	for _, kind := range kinds {
		a := s.wait(kind, func(a Attempt) bool { return a.Protocol == kind })
		if a.Verdict != "deny" || a.Open || a.Failure == "" {
			t.Errorf("logged %+v", a)
		}
	}
	seen := make(map[string]int)
	for _, a := range s.logged() {
		seen[a.Protocol+a.Address.String()]++
		if !slices.Contains(kinds, a.Protocol) {
			t.Errorf("also logged %+v", a)
		}
	}
	for what, n := range seen {
		if n != 1 {
			t.Errorf("%s is logged %d times", what, n)
		}
	}
}
