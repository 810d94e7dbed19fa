package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// dialFrom opens a UDP socket inside with a port of its own choice.
func (s *sandbox) dialFrom(port int, to string, set func(fd int)) net.Conn {
	s.t.Helper()
	var c net.Conn
	var err error
	s.do(func() {
		d := net.Dialer{LocalAddr: &net.UDPAddr{Port: port}, Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) {
				if set != nil {
					set(int(fd))
				}
			})
		}}
		c, err = d.Dial("udp", to)
	})
	must.OK(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	return c
}

// age makes it long ago that flows' sockets were looked at.
func (u *udpTable) age() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range u.flows {
		f.looked = time.Time{}
	}
}

// What was allowed one socket isn't allowed the next one that has its port.
func TestUDPFlowIsOfOneSocket(t *testing.T) {
	for what, c := range map[string]struct {
		addr string
		set  func(fd int)
		size int
	}{
		"IPv4": {publicAddr, nil, 10},
		"IPv6": {publicAddr6, nil, 10},
		"IPv6 in pieces": {publicAddr6, func(fd int) {
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU, 1280)
		}, 5000},
	} {
		t.Run(what, func(t *testing.T) {
			at := echoUDP(t, internet, net.JoinHostPort(c.addr, "0"))
			var judged atomic.Int32
			s := newSandbox(t, Options{Judge: func(context.Context, Attempt) Verdict {
				return Verdict{Allow: judged.Add(1) == 1, Rule: "the first"}
			}})
			msg := bytes.Repeat([]byte("x"), c.size)
			first := s.dialFrom(40000, at.String(), nil)
			for range 3 {
				s.gw.udp.age()
				if got, err := roundTrip(first, msg); err != nil || !bytes.Equal(got, msg) {
					t.Fatalf("got %q, %v", got, err)
				}
			}
			if n := judged.Load(); n != 1 {
				t.Fatalf("one socket was judged %d times", n)
			}
			first.Close()
			s.gw.udp.age()
			second := s.dialFrom(40000, at.String(), c.set)
			if got, err := roundTrip(second, msg); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatalf("another socket got %d bytes, %v", len(got), err)
			}
			if n := judged.Load(); n != 2 {
				t.Errorf("judged %d times", n)
			}
			s.wait("the second", func(a Attempt) bool { return a.Verdict == "deny" && !a.Open })
		})
	}
}

// A flow ends soon after its socket.
func TestUDPFlowEndsWithItsSocket(t *testing.T) {
	at := echoUDP(t, internet, publicAddr+":0")
	s := newSandbox(t, Options{Judge: allow})
	c := s.dialFrom(40000, at.String(), nil)
	if _, err := roundTrip(c, []byte("x")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if a := s.waitClosed(publicAddr); a.Verdict != "allow" || a.Failure != "" {
		t.Errorf("logged %+v", a)
	}
}

// A ping's verdict isn't that of the next socket with its identifier.
func TestPingIsOfOneSocket(t *testing.T) {
	rec := &record{inode: 1}
	e := newEchoTable(&Gateway{o: Options{Processes: func() []int { return nil }}})
	if e.same(rec) {
		t.Error("a socket that is gone is the same")
	}
}

// What is denied later ends.
func TestRecheck(t *testing.T) {
	web := serve(t, internet, publicAddr+":0", echo)
	other := serve(t, internet, publicAddr2+":0", echo)
	udp := echoUDP(t, internet, publicAddr+":0")
	var no atomic.Bool
	denied := func(a Attempt) (string, bool) {
		return "a new rule", no.Load() && a.Address.Addr().String() == publicAddr
	}
	s := newSandbox(t, Options{Denied: denied, Judge: func(_ context.Context, a Attempt) Verdict { return Verdict{Allow: !no.Load()} }})
	open := func(to string) net.Conn {
		c, err := s.dial("tcp", to, patience)
		must.OK(t, err)
		t.Cleanup(func() { c.Close() })
		if _, err := roundTrip(c, []byte("x")); err != nil {
			t.Fatal(err)
		}
		return c
	}
	bad, good := open(web.String()), open(other.String())
	c := s.dialFrom(40000, udp.String(), nil)
	if _, err := roundTrip(c, []byte("x")); err != nil {
		t.Fatal(err)
	}
	no.Store(true)
	s.gw.Recheck()
	if _, err := io.ReadAll(bad); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("what is denied: %v", err)
	}
	if _, err := roundTrip(good, []byte("x")); err != nil {
		t.Errorf("what isn't: %v", err)
	}
	if _, err := roundTrip(c, []byte("x")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("datagrams: %v", err)
	}
	for _, protocol := range []string{"tcp", "udp"} {
		s.wait(protocol, func(a Attempt) bool {
			return a.Protocol == protocol && !a.Open && a.Verdict == "allow" && strings.Contains(a.Failure, "denied by now: a new rule")
		})
	}
}
