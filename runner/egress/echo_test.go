package egress

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// hostPings lets the pretend host's users ping, or not.
func hostPings(t testing.TB, yes bool) {
	t.Helper()
	const setting = "net/ipv4/ping_group_range"
	value := map[bool]string{true: "0 0", false: "1 0"}[yes]
	was, err := os.ReadFile("/proc/sys/" + setting)
	if err == nil {
		err = writeSysctl(setting, value)
	}
	if err != nil {
		t.Skipf("cannot set who may ping on the pretend host: %v", err)
	}
	t.Cleanup(func() { writeSysctl(setting, string(was)) })
}

// pingSocketOf opens a ping socket inside, connected.
func (s *sandbox) pingSocketOf(addr string) (fd int) {
	s.t.Helper()
	var err error
	s.do(func() {
		to := netip.MustParseAddr(addr)
		family, proto := unix.AF_INET, unix.IPPROTO_ICMP
		var at unix.Sockaddr = &unix.SockaddrInet4{}
		if to.Is6() {
			family, proto, at = unix.AF_INET6, unix.IPPROTO_ICMPV6, &unix.SockaddrInet6{Addr: to.As16()}
		} else {
			at = &unix.SockaddrInet4{Addr: to.As4()}
		}
		if fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto); err == nil {
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)})
			err = unix.Connect(fd, at)
		}
	})
	must.OK(s.t, err)
	s.t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// request is an echo request of either version.
func request(addr string, seq byte, payload string) []byte {
	kind := byte(8)
	if strings.Contains(addr, ":") {
		kind = 128
	}
	return append([]byte{kind, 0, 0, 0, 0, 0, 0, seq}, payload...)
}

// ping sends a request and gives the payload of its reply.
func (s *sandbox) ping(addr, payload string) (string, error) {
	s.t.Helper()
	fd := s.pingSocketOf(addr)
	if _, err := again(unix.Write, fd, request(addr, 7, payload)); err != nil {
		return "", err
	}
	buf := make([]byte, 64<<10)
	n, err := again(unix.Read, fd, buf)
	if err != nil || n < 8 {
		return "", err
	}
	if buf[7] != 7 {
		s.t.Errorf("the reply is to request %d", buf[7])
	}
	return string(buf[8:n]), nil
}

func isProhibited(err error) bool {
	return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.EACCES)
}

// An allowed ping gets its real answer, by address and by name, of either version.
func TestPing(t *testing.T) {
	hostPings(t, true)
	z := newZone(t, map[string][]string{"four.example": {publicAddr}, "six.example": {publicAddr6}})
	var mu sync.Mutex
	var judged []Attempt
	s := newSandbox(t, Options{resolver: z.resolver(), Judge: func(_ context.Context, a Attempt) Verdict {
		mu.Lock()
		defer mu.Unlock()
		judged = append(judged, a)
		return Verdict{Allow: true, Rule: "test"}
	}})
	for _, c := range []struct{ at, resolved string }{
		{publicAddr, publicAddr}, {publicAddr6, publicAddr6},
		{s.resolve("four.example").String(), publicAddr},
		{s.resolve("six.example").String(), publicAddr6}, // asked for by IPv4, answered by IPv6
	} {
		for _, payload := range []string{"", "payload", strings.Repeat("x", 1400)} {
			if got, err := s.ping(c.at, payload); err != nil || got != payload {
				t.Fatalf("%s: %d bytes of %d, %v", c.at, len(got), len(payload), err)
			}
		}
		a := s.wait(c.at, func(a Attempt) bool { return a.Address.Addr().String() == c.at && a.Resolved != "" })
		if a.Protocol != "icmp" || a.Verdict != "allow" || a.Resolved != c.resolved || a.Address.Port() != 0 {
			t.Errorf("logged %+v", a)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, a := range judged {
		if a.Protocol != "icmp" || a.Address.Port() != 0 {
			t.Errorf("judged %+v", a)
		}
	}
	if len(judged) != 12 {
		t.Errorf("judged %d times", len(judged))
	}
}

// Requests wait for the verdict, a few of them; a denied ping is told so at once, and
// judged and logged once.
func TestPingHeld(t *testing.T) {
	hostPings(t, true)
	for _, addr := range []string{publicAddr, publicAddr6} {
		for _, fate := range []bool{true, false} {
			asked, answer := make(chan Attempt, 10), make(chan bool)
			s := newSandbox(t, Options{Judge: func(context.Context, Attempt) Verdict {
				asked <- Attempt{}
				return Verdict{Allow: <-answer, Rule: "a person"}
			}})
			fd := s.pingSocketOf(addr)
			for seq := range byte(3) {
				again(unix.Write, fd, request(addr, seq, "held"))
			}
			<-asked
			s.wait("that it is held", func(a Attempt) bool { return a.Verdict == "ask" })
			answer <- fate
			buf := make([]byte, 100)
			if !fate {
				if _, err := again(unix.Read, fd, buf); !isProhibited(err) {
					t.Errorf("%s denied: %v", addr, err)
				}
				for range 5 {
					if _, err := again(unix.Write, fd, request(addr, 9, "again")); err == nil {
						_, err = again(unix.Read, fd, buf)
						if !isProhibited(err) {
							t.Errorf("%s denied, again: %v", addr, err)
						}
					}
				}
				if len(asked) != 0 {
					t.Error("judged again")
				}
				continue
			}
			for seq := range byte(3) {
				if n, err := again(unix.Read, fd, buf); err != nil || n != 12 || buf[7] != seq {
					t.Errorf("%s, request %d: % x, %v", addr, seq, buf[:max(n, 0)], err)
				}
			}
		}
	}
}

// Where the host lets nobody ping, an allowed attempt says so.
func TestPingThatTheHostRefuses(t *testing.T) {
	hostPings(t, false)
	s := newSandbox(t, Options{Judge: allow})
	if _, err := s.ping(publicAddr, "x"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("got %v", err)
	}
	if a := s.waitClosed(publicAddr); a.Verdict != "allow" || !strings.Contains(a.Failure, "ping_group_range") {
		t.Errorf("logged %+v", a)
	}
}

// The guard stands before pings too: names and addresses that lead inside are refused
// though everything is allowed.
func TestPingGuard(t *testing.T) {
	hostPings(t, true)
	z := newZone(t, map[string][]string{"rebind.example": {"127.0.0.1"}, "lan.example": {lanAddr}})
	s := newSandbox(t, Options{resolver: z.resolver(), Judge: allow})
	for _, addr := range []string{metadataAddr, lanAddr, ownLAN, ownPublic, s.resolve("rebind.example").String(), s.resolve("lan.example").String()} {
		if got, err := s.ping(addr, "x"); !isProhibited(err) {
			t.Errorf("%s: %q, %v", addr, got, err)
		}
		if a := s.waitClosed(addr2name(s, addr)); !strings.Contains(a.Failure, "dial guard") {
			t.Errorf("%s: logged %+v", addr, a)
		}
	}
}

func addr2name(s *sandbox, addr string) string {
	if name, ok := s.gw.names.name(netip.MustParseAddr(addr)); ok {
		return name
	}
	return addr
}

// Pings to ever more addresses take no more than their room; those beyond are counted.
func TestFloodOfPings(t *testing.T) {
	s := newSandbox(t, Options{Judge: func(ctx context.Context, _ Attempt) Verdict {
		<-ctx.Done()
		return Verdict{}
	}})
	for i, flooded := 0, false; !flooded; i++ {
		if i > 1<<14 {
			t.Fatal("no end of pings")
		}
		s.do(func() {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
			if err != nil {
				t.Error(err)
				return
			}
			defer unix.Close(fd)
			unix.Sendto(fd, request("", 1, "x"), 0, &unix.SockaddrInet4{Addr: [4]byte{203, 0, 113, byte(i)}})
		})
		for _, a := range s.logged() {
			flooded = flooded || a.Protocol == "flood"
		}
	}
	e := s.gw.echo
	e.mu.Lock()
	if len(e.flows) != MaxEchoFlows {
		t.Errorf("%d flows", len(e.flows))
	}
	e.mu.Unlock()
	e.expire(time.Now().Add(echoIdle + time.Hour))
	s.wait("the end of a held one", func(a Attempt) bool { return a.Protocol == "icmp" && a.Failure == errAbandoned.Error() })
}

// The ping of the distribution works, and is known by its program.
func TestRealPing(t *testing.T) {
	path, err := exec.LookPath("ping")
	if err != nil {
		t.Skip("ping isn't installed")
	}
	hostPings(t, true)
	z := newZone(t, map[string][]string{"www.example.org": {publicAddr}})
	var mu sync.Mutex
	pids := []int{}
	s := newSandbox(t, Options{resolver: z.resolver(), Judge: allow, Processes: func() []int {
		mu.Lock()
		defer mu.Unlock()
		return append([]int(nil), pids...)
	}})
	mu.Lock() // what looks for the program waits until it is known
	cmd := exec.Command(path, "-n", "-c", "2", "-i", "0.2", s.names("www.example.org"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	s.do(func() { err = cmd.Start() })
	must.OK(t, err)
	pids = append(pids, cmd.Process.Pid)
	mu.Unlock()
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "2 received") {
		t.Fatalf("%v\n%s", err, &out)
	}
	a := s.wait("its program", func(a Attempt) bool { return a.Name == "www.example.org" && a.Program != "" })
	if real, _ := os.Readlink("/proc/self/exe"); a.PID != cmd.Process.Pid || a.Program == real {
		t.Errorf("logged %+v", a)
	}
}

// names is the synthetic address of a name, as text: what a program's resolver would
// have found.
func (s *sandbox) names(name string) string { return s.resolve(name).String() }
