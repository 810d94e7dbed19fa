package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

const patience = 2 * time.Minute

// sandbox is a namespace behind a gateway, with what the gateway logged.
type sandbox struct {
	*space
	t    testing.TB
	gw   *Gateway
	link Link

	helper int // process whose processor time counts in benchmarks

	mu   sync.Mutex
	log  []Attempt // every snapshot
	more chan struct{}
}

// newSandbox makes one; Log is kept unless o has its own.
func newSandbox(t testing.TB, o Options) *sandbox {
	t.Helper()
	sp, err := newSpace()
	must.OK(t, err)
	s := &sandbox{space: sp, t: t, more: make(chan struct{}, 1)}
	var link *Link
	s.do(func() { link, err = MakeLink() })
	if err != nil {
		s.close()
		t.Fatal(err)
	}
	if len(link.Warnings) > 0 {
		t.Logf("link warnings: %q", link.Warnings)
	}
	if o.Log == nil {
		o.Log = s.note
	}
	s.link = *link
	s.gw, err = New(*link, o)
	if err != nil {
		s.close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.gw.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		s.close()
	})
	return s
}

func (s *sandbox) note(a Attempt) {
	s.mu.Lock()
	s.log = append(s.log, a)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *sandbox) logged() []Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// wait returns the first logged snapshot that fits.
func (s *sandbox) wait(what string, fits func(Attempt) bool) Attempt {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		for _, a := range s.logged() {
			if fits(a) {
				return a
			}
		}
		select {
		case <-s.more:
		case <-deadline:
			log := s.logged()
			s.t.Fatalf("not logged: %s; the end of the log: %+v", what, log[max(0, len(log)-20):])
		}
	}
}

func (s *sandbox) waitClosed(name string) Attempt {
	s.t.Helper()
	return s.wait("the end of "+name, func(a Attempt) bool {
		return !a.Open && (a.Name == name || a.Address.Addr().String() == name)
	})
}

// dial connects from inside; the address is a literal one.
func (s *sandbox) dial(network, addr string, timeout time.Duration) (conn net.Conn, err error) {
	s.do(func() { conn, err = (&net.Dialer{Timeout: timeout}).Dial(network, addr) })
	return conn, err
}

// connectRaw connects a blocking socket of the sandbox, without any of the
// net package's own ideas about addresses. It waits so long.
func (s *sandbox) connectRaw(addr netip.Addr, port uint16, wait time.Duration) (err error) {
	s.do(func() {
		family := unix.AF_INET
		var sa unix.Sockaddr
		if addr.Is6() {
			family, sa = unix.AF_INET6, &unix.SockaddrInet6{Port: int(port), Addr: addr.As16()}
		} else {
			sa = &unix.SockaddrInet4{Port: int(port), Addr: addr.As4()}
		}
		var fd int
		if fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: int64(wait / time.Second)})
		err = connectTo(fd, sa, wait)
	})
	return err
}

// connectTo is connect(2), which a signal may interrupt where it has a timeout. It goes on
// then: what became of it is told once the socket can be written to.
func connectTo(fd int, to unix.Sockaddr, wait time.Duration) error {
	err := unix.Connect(fd, to)
	if !errors.Is(err, unix.EINTR) {
		return err
	}
	_, err = again(func(_ int, _ []byte) (int, error) {
		return unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(wait.Milliseconds()))
	}, fd, nil)
	if no, fail := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && fail == nil && no != 0 {
		err = syscall.Errno(no)
	}
	return err
}

// again calls what the runtime's signals may interrupt: a call with a timeout isn't
// restarted by the kernel (signal(7)).
func again(call func(fd int, b []byte) (int, error), fd int, b []byte) (n int, err error) {
	for {
		if n, err = call(fd, b); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// ask sends one DNS question from inside to a server and returns the answer. A datagram
// may be lost on a busy link, so that it asks again as resolvers do (resolv.conf(5), timeout).
func (s *sandbox) ask(network, server, name string, kind dnsmessage.Type) dnsmessage.Message {
	s.t.Helper()
	m, err := s.query(network, server, question(name, kind))
	if err != nil {
		s.t.Fatalf("DNS question for %s to %s: %v", name, server, err)
	}
	return m
}

func question(name string, kind dnsmessage.Type) []byte {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 77, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

func (s *sandbox) query(network, server string, q []byte) (m dnsmessage.Message, err error) {
	c, err := s.dial(network, server, patience)
	if err != nil {
		return m, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	buf := make([]byte, 4096)
	n := 0
	if network == "tcp" {
		q = append([]byte{byte(len(q) >> 8), byte(len(q))}, q...)
	}
	if _, err := c.Write(q); err != nil {
		return m, err
	}
	if network == "tcp" {
		if _, err := io.ReadFull(c, buf[:2]); err != nil {
			return m, err
		}
		n, err = io.ReadFull(c, buf[:int(buf[0])<<8|int(buf[1])])
	} else {
		n, err = reread(c, q, buf)
	}
	if err != nil {
		return m, err
	}
	return m, m.Unpack(buf[:n])
}

// reread reads a datagram's answer, and sends the datagram again for as long as none comes.
func reread(c net.Conn, q, buf []byte) (n int, err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if n, err = c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if _, err := c.Write(q); err != nil {
			return 0, err
		}
	}
	return n, err
}

// resolve asks for a name's address from inside.
func (s *sandbox) resolve(name string) netip.Addr {
	s.t.Helper()
	m := s.ask("udp", Nameserver+":53", name+".", dnsmessage.TypeA)
	if len(m.Answers) != 1 {
		s.t.Fatalf("%s: %s, %d answers", name, m.RCode, len(m.Answers))
	}
	return netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A)
}

// connect resolves and dials a name from inside.
func (s *sandbox) connect(name string, port uint16) (net.Conn, error) {
	s.t.Helper()
	return s.dial("tcp", netip.AddrPortFrom(s.resolve(name), port).String(), patience)
}

// get connects and reads all there is.
func (s *sandbox) get(network, addr string) (string, error) {
	c, err := s.dial(network, addr, patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(c)
	return string(b), err
}

func allow(context.Context, Attempt) Verdict { return Verdict{Allow: true, Rule: "test"} }

func deny(context.Context, Attempt) Verdict { return Verdict{Rule: "test"} }

func hostPort(addr netip.Addr, port uint16) string { return netip.AddrPortFrom(addr, port).String() }

func TestTCPAllowAndDeny(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	z := newZone(t, map[string][]string{"good.example": {publicAddr}})
	s := newSandbox(t, Options{resolver: z.resolver(), Judge: func(_ context.Context, a Attempt) Verdict {
		return Verdict{Allow: a.Name == "good.example", Rule: "only good"}
	}})
	got, err := s.get("tcp", hostPort(s.resolve("good.example"), at.Port()))
	if err != nil || got != "hello" {
		t.Fatalf("allowed: got %q, %v", got, err)
	}
	a := s.waitClosed("good.example")
	if a.Verdict != "allow" || a.Rule != "only good" || a.Received != 5 || a.Resolved != at.String() || a.Protocol != "tcp" {
		t.Errorf("logged %+v", a)
	}
	if _, err = s.connect("bad.example", at.Port()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("denied: %v", err)
	}
	a = s.waitClosed("bad.example")
	if a.Verdict != "deny" || a.Resolved != "" || a.Address.Port() != at.Port() {
		t.Errorf("logged %+v", a)
	}
	// A denied name costs nothing upstream.
	if asked := strings.Join(z.questions(), " "); strings.Contains(asked, "bad") {
		t.Errorf("asked upstream: %s", asked)
	}
}

func TestHeld(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	const thinks = 300 * time.Millisecond // more than an answer without a person takes
	for _, fate := range []bool{true, false} {
		t.Run(fmt.Sprint(fate), func(t *testing.T) {
			s := newSandbox(t, Options{Judge: func(ctx context.Context, a Attempt) Verdict {
				select {
				case <-time.After(thinks):
				case <-ctx.Done():
				}
				return Verdict{Allow: fate, Rule: "a person"}
			}})
			start := time.Now()
			got, err := s.get("tcp", at.String())
			if waited := time.Since(start); waited < thinks {
				t.Errorf("it took %v", waited)
			}
			if fate && (err != nil || got != "hello") || !fate && !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatalf("got %q, %v", got, err)
			}
			s.wait("that it is held", func(a Attempt) bool { return a.Verdict == "ask" && a.Open })
			a := s.waitClosed(publicAddr)
			if (a.Verdict == "allow") != fate || a.Rule != "a person" || a.Duration < thinks {
				t.Errorf("logged %+v", a)
			}
			if n, took := len(s.logged()), time.Since(start); n > 6+int(took/logEvery) {
				t.Errorf("%d log entries for one attempt in %v", n, took)
			}
		})
	}
}

// Where the kernel has no veth a TUN device does the same.
func TestTUN(t *testing.T) {
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		t.Skipf("this user can't make TUN devices: %v", err)
	} else {
		f.Close()
	}
	at := serve(t, internet, publicAddr+":0", echo)
	sp, err := newSpace()
	must.OK(t, err)
	defer sp.close()
	var link *Link
	sp.do(func() {
		l := &Link{Kind: linkTUN, MTU: LinkMTU, Sandbox4: sandbox4, Gateway4: gateway4, Sandbox6: sandbox6, Gateway6: gateway6}
		link, err = l.finish(l.makeTUN())
	})
	must.OK(t, err)
	s := &sandbox{space: sp, t: t, more: make(chan struct{}, 1), link: *link}
	z := newZone(t, map[string][]string{"good.example": {publicAddr}})
	gw, err := New(*link, Options{Judge: allow, resolver: z.resolver()})
	must.OK(t, err)
	defer gw.Close()
	c, err := s.connect("good.example", at.Port())
	must.OK(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	go c.Write(make([]byte, 1<<20))
	if _, err := io.ReadFull(c, make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
}

func TestDNSByAnyServer(t *testing.T) {
	s := newSandbox(t, Options{})
	want := s.resolve("example.com")
	if !DefaultRange.Contains(want) {
		t.Fatalf("%s is not synthetic", want)
	}
	for _, server := range []string{"8.8.8.8:53", "[2001:4860:4860::8888]:53", "127.0.0.1:53"} {
		for _, network := range []string{"udp", "tcp"} {
			if strings.HasPrefix(server, "127") {
				continue // the sandbox's own
			}
			m := s.ask(network, server, "Example.COM.", dnsmessage.TypeA)
			if got := netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A); got != want {
				t.Errorf("%s %s: %s, want %s", network, server, got, want)
			}
			if m.Questions[0].Name.String() != "Example.COM." {
				t.Errorf("the question came back as %s", m.Questions[0].Name)
			}
		}
	}
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeAAAA, 64, 65, dnsmessage.TypeTXT, dnsmessage.TypeMX} {
		m := s.ask("udp", "9.9.9.9:53", "example.com.", kind)
		if m.RCode != dnsmessage.RCodeSuccess || len(m.Answers) != 0 {
			t.Errorf("%s: %s with %d answers", kind, m.RCode, len(m.Answers))
		}
	}
}
