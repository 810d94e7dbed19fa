package egress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"

	"stepbox/session/e2e/must"
)

// program starts this binary as a program of the sandbox.
func (s *sandbox) program(role string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"=client "+role)
	cmd.Stderr = os.Stderr
	// The thread that starts it lives as long as the sandbox.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	s.do(func() { err = cmd.Start() })
	must.OK(s.t, err)
	return cmd
}

// A program that is killed while its connection is held takes the question
// with it.
func TestAbandonedWhileHeld(t *testing.T) {
	asked, withdrawn := make(chan Attempt, 1), make(chan struct{})
	s := newSandbox(t, Options{
		Processes: func() []int { return []int{os.Getpid()} },
		Judge: func(ctx context.Context, a Attempt) Verdict {
			asked <- a
			<-ctx.Done()
			close(withdrawn)
			return Verdict{Allow: true, Rule: "too late"}
		},
	})
	cmd := s.program("tcp " + publicAddr + ":443")
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("never asked")
	}
	cmd.Process.Kill()
	cmd.Wait()
	select {
	case <-withdrawn:
	case <-time.After(patience):
		t.Fatal("the question stands")
	}
	a := s.waitClosed(publicAddr)
	if a.Verdict != "deny" || !strings.Contains(a.Failure, "gave up") || a.Resolved != "" {
		t.Errorf("logged %+v", a)
	}
}

// One whose socket is gone before the gateway can look for it doesn't wait for ever: such a
// SYN is sent here without a socket. One by a socket of either family waits on.
func TestAbandonedAtOnce(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	asked, withdrawn := make(chan uint16, 4), make(chan uint16, 4)
	s := newSandbox(t, Options{Judge: func(ctx context.Context, a Attempt) Verdict {
		if port := a.Address.Port(); port != at.Port() {
			asked <- port
			<-ctx.Done()
			withdrawn <- port
		}
		return Verdict{Allow: true}
	}})
	if got, err := s.get("tcp", at.String()); err != nil || got != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	connect := func(family int, to unix.Sockaddr) {
		t.Helper()
		var fd int
		var err error
		s.do(func() {
			if fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err == nil {
				err = unix.Connect(fd, to)
			}
		})
		if !errors.Is(err, unix.EINPROGRESS) {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
	}
	connect(unix.AF_INET, &unix.SockaddrInet4{Addr: parse(publicAddr).As4(), Port: 4})
	connect(unix.AF_INET6, &unix.SockaddrInet6{Addr: parse(publicAddr).As16(), Port: 46}) // mapped
	connect(unix.AF_INET6, &unix.SockaddrInet6{Addr: parse(publicAddr6).As16(), Port: 6})
	for range 3 {
		<-asked
	}
	var err error
	s.do(func() {
		var fd int
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW); err == nil {
			from, to := netip.AddrPortFrom(s.link.Sandbox4, 999), netip.AddrPortFrom(parse(publicAddr), 9)
			err = unix.Sendto(fd, synPacket(from, to, 1), 0, &unix.SockaddrInet4{Addr: to.Addr().As4()})
			unix.Close(fd)
		}
	})
	must.OK(t, err)
	if port := <-asked; port != 9 {
		t.Errorf("asked about port %d", port)
	}
	select {
	case port := <-withdrawn:
		if port != 9 {
			t.Errorf("port %d is given up", port)
		}
	case <-time.After(patience):
		t.Fatal("the question stands")
	}
	if a := s.wait("its end", func(a Attempt) bool { return !a.Open && a.Address.Port() == 9 }); a.Failure != errAbandoned.Error() {
		t.Errorf("logged %+v", a)
	}
	if len(withdrawn) > 0 {
		t.Errorf("port %d is given up", <-withdrawn)
	}
}

func TestAttribution(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	exe, err := os.Readlink("/proc/self/exe")
	must.OK(t, err)
	var pids atomic.Pointer[[]int]
	pids.Store(&[]int{1, os.Getpid()})
	judged := make(chan Attempt, 1)
	o := Options{
		Processes: func() []int { return *pids.Load() },
		Judge:     func(_ context.Context, a Attempt) Verdict { judged <- a; return Verdict{Allow: true} },
	}
	s := newSandbox(t, o)
	wait := make(chan struct{})
	slow := serve(t, internet, publicAddr+":0", func(c net.Conn) { <-wait; io.WriteString(c, "hello") })
	_ = at
	cmd := s.program("tcp " + slow.String())
	defer cmd.Wait()
	pids.Store(&[]int{1, os.Getpid(), cmd.Process.Pid})
	if a := <-judged; a.PID != cmd.Process.Pid || a.Program != exe {
		// The process may have connected before it was in the list.
		t.Logf("judged without program: %+v", a)
	}
	a := s.wait("its program", func(a Attempt) bool { return a.PID != 0 })
	close(wait)
	if a.PID != cmd.Process.Pid || a.Program != exe {
		t.Errorf("logged %+v, want pid %d", a, cmd.Process.Pid)
	}
}

func TestUpstreamClosedPort(t *testing.T) {
	s := newSandbox(t, Options{Judge: allow, resolver: newZone(t, nil).resolver()})
	var l net.Listener
	internet.do(func() { l, _ = net.Listen("tcp", publicAddr2+":0") })
	closed := netip.MustParseAddrPort(l.Addr().String())
	l.Close()
	if _, err := s.get("tcp", closed.String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("closed port %v: %v", closed, err)
	}
	if a := s.waitClosed(publicAddr2); a.Verdict != "allow" || a.Failure != "connection refused" {
		t.Errorf("logged %+v", a)
	}
	if _, err := s.connect("nowhere.example", 80); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("unknown host: %v", err)
	}
	if a := s.waitClosed("nowhere.example"); a.Failure != "no such host" {
		t.Errorf("logged %+v", a)
	}
}

// One side can end its half while the other goes on.
func TestHalfClose(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) {
		all, _ := io.ReadAll(c) // until the client's FIN
		fmt.Fprintf(c, "got %d", len(all))
	})
	s := newSandbox(t, Options{Judge: allow})
	c, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	c.Write(make([]byte, 100000))
	c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	if err != nil || string(answer) != "got 100000" {
		t.Errorf("got %q, %v", answer, err)
	}
	if a := s.waitClosed(publicAddr); a.Sent != 100000 || a.Received != 10 || a.Failure != "" {
		t.Errorf("logged %+v", a)
	}
}

// A server that speaks first is heard at once, though the client's first
// bytes are looked at.
func TestServerFirst(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) {
		io.WriteString(c, "220 ready\r\n")
		echo(c)
	})
	z := newZone(t, map[string][]string{"mail.example": {publicAddr}})
	s := newSandbox(t, Options{Judge: allow, resolver: z.resolver()})
	c, err := s.connect("mail.example", at.Port())
	must.OK(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	buf := make([]byte, 100)
	n, err := c.Read(buf)
	if err != nil || string(buf[:n]) != "220 ready\r\n" {
		t.Fatalf("banner: %q, %v", buf[:n], err)
	}
	// Words that might yet become an HTTP request aren't held back.
	for _, part := range []string{"EHLO me", "\r\n", "GET ", "x\r\n"} {
		io.WriteString(c, part)
		if _, err := io.ReadFull(c, buf[:len(part)]); err != nil || string(buf[:len(part)]) != part {
			t.Fatalf("%q came back as %q, %v", part, buf[:len(part)], err)
		}
	}
}

// A reset on one side is a reset on the other.
func TestResets(t *testing.T) {
	upstreamErr := make(chan error, 1)
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) {
		buf := make([]byte, 1)
		if c.Read(buf); buf[0] == 'r' {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
			return
		}
		c.Write(buf)
		_, err := c.Read(buf)
		upstreamErr <- err
	})
	s := newSandbox(t, Options{Judge: allow})
	c, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	c.Write([]byte("r"))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the program saw %v, want a reset", err)
	}
	if a := s.waitClosed(publicAddr); a.Failure != "connection reset" {
		t.Errorf("logged %+v", a)
	}
	c2, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	c2.SetDeadline(time.Now().Add(patience))
	c2.Write([]byte("x"))
	io.ReadFull(c2, make([]byte, 1))
	c2.(*net.TCPConn).SetLinger(0)
	c2.Close()
	select {
	case err := <-upstreamErr:
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("upstream saw %v, want a reset", err)
		}
	case <-time.After(patience):
		t.Error("upstream never heard of the reset")
	}
	s.wait("the program's reset", func(a Attempt) bool { return a.Failure == "reset by the program" })
}

// A connection whose reset was lost on the link ends all the same, once it was silent for a
// while. A socket that is being repaired closes without a word (tcp(7), TCP_REPAIR).
func TestLostReset(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", echo)
	s := newSandbox(t, Options{Judge: allow})
	c, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, "x")
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	must.OK(t, err)
	s.do(func() { // who repairs needs rights in the namespace
		if fail := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_REPAIR, 1) }); fail != nil {
			err = fail
		}
	})
	if err != nil {
		t.Skipf("this kernel repairs no socket: %v", err)
	}
	c.Close()
	soon := tcpip.KeepaliveIdleOption(time.Millisecond)
	s.gw.mu.Lock()
	for f := range s.gw.flows {
		f.guest.ep.SetSockOpt(&soon)
	}
	s.gw.mu.Unlock()
	if a := s.waitClosed(publicAddr); a.Failure != ProgramReset {
		t.Errorf("logged %+v", a)
	}
}

// What goes in comes out, both ways at once, over several connections.
func TestBytesBothWays(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", echo)
	at6 := serve(t, internet, "["+publicAddr6+"]:0", echo)
	s := newSandbox(t, Options{Judge: allow})
	var wg sync.WaitGroup
	for i := range 6 {
		dst := at
		if i%2 == 1 {
			dst = at6
		}
		c, err := s.dial("tcp", dst.String(), patience)
		must.OK(t, err)
		c.SetDeadline(time.Now().Add(patience))
		want := make([]byte, 3<<20+i*1000)
		for j := range want {
			want[j] = byte(rand.Uint32())
		}
		wg.Go(func() {
			c.Write(want)
			c.(*net.TCPConn).CloseWrite()
		})
		wg.Go(func() {
			defer c.Close()
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d of %d bytes came back, the same: %v, %v", len(got), len(want), bytes.Equal(got, want), err)
			}
		})
	}
	wg.Wait()
}

// Open connections are logged while they move, not more than once a second.
func TestUpdates(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", echo)
	s := newSandbox(t, Options{Judge: allow})
	c, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	defer c.Close()
	start := time.Now()
	buf := make([]byte, 10)
	for time.Since(start) < 2500*time.Millisecond {
		c.Write(buf)
		if _, err := io.ReadFull(c, buf); err != nil {
			t.Fatal(err)
		}
	}
	a := s.wait("bytes of an open connection", func(a Attempt) bool { return a.Open && a.Sent > 0 && a.Received > 0 })
	if n, took := len(s.logged()), time.Since(start); n > 3+int(took.Seconds()) {
		t.Errorf("%d entries in %v", n, took)
	}
	if a.Duration <= 0 || a.Resolved != at.String() {
		t.Errorf("logged %+v", a)
	}
}

// Closing the gateway ends what is held, dialled, open and half closed, and
// logs the end of each.
func TestCloseEndsEverything(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", echo)
	entered := make(chan struct{}, 10)
	sp, err := newSpace()
	must.OK(t, err)
	defer sp.close()
	var link *Link
	sp.do(func() { link, err = MakeLink() })
	must.OK(t, err)
	s := &sandbox{space: sp, t: t, more: make(chan struct{}, 1), link: *link}
	s.gw, err = New(*link, Options{Log: s.note, Judge: func(ctx context.Context, a Attempt) Verdict {
		if a.Address.Port() == 9 {
			entered <- struct{}{}
			<-ctx.Done()
		}
		return Verdict{Allow: true}
	}})
	must.OK(t, err)
	open, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	defer open.Close()
	cmds := []*exec.Cmd{s.program("tcp " + publicAddr + ":9")}
	udp, err := s.dial("udp", publicAddr+":9", patience)
	must.OK(t, err)
	defer udp.Close()
	udp.Write([]byte("x"))
	for range 2 {
		select {
		case <-entered:
		case <-time.After(patience):
			t.Fatal("not held")
		}
	}
	if err := s.gw.Close(); err != nil {
		t.Error(err)
	}
	if err := s.gw.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	last := make(map[int64]Attempt)
	for _, a := range s.logged() {
		last[a.ID] = a
	}
	if len(last) != 3 {
		t.Errorf("%d attempts, want 3", len(last))
	}
	for _, a := range last {
		if a.Open || !strings.Contains(a.Failure, "closed") {
			t.Errorf("left as %+v", a)
		}
	}
	// With the gateway the interface goes (when the kernel gets round to it):
	// nothing gets out any more.
	for deadline := time.Now().Add(patience); ; {
		err := s.connectRaw(netip.MustParseAddr(publicAddr), at.Port(), time.Second)
		if errors.Is(err, syscall.ENETUNREACH) {
			break
		}
		if err == nil || time.Now().After(deadline) {
			t.Fatalf("connecting without a gateway: %v", err)
		}
	}
	for _, cmd := range cmds {
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// A link travels as JSON beside its descriptors.
func TestLinkAsJSON(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	sp, err := newSpace()
	must.OK(t, err)
	defer sp.close()
	var made *Link
	sp.do(func() { made, err = MakeLink() })
	must.OK(t, err)
	text, err := json.Marshal(made)
	must.OK(t, err)
	var link Link
	must.OK(t, json.Unmarshal(text, &link))
	must.OK(t, link.SetFiles(made.Files()))
	s := &sandbox{space: sp, t: t, more: make(chan struct{}, 1)}
	gw, err := New(link, Options{Judge: allow})
	must.OK(t, err)
	defer gw.Close()
	if got, err := s.get("tcp", at.String()); err != nil || got != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A synthetic address that no name has leads nowhere, and nobody is asked.
func TestAddressWithoutName(t *testing.T) {
	s := newSandbox(t, Options{Judge: func(_ context.Context, a Attempt) Verdict {
		t.Errorf("asked about %+v", a)
		return Verdict{Allow: true, Private: true}
	}})
	for _, addr := range []string{"198.18.77.7", Nameserver, "0.1.2.3"} {
		if err := s.connectRaw(netip.MustParseAddr(addr), 80, patience); !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	s.waitClosed("198.18.77.7")
	s.waitClosed(Nameserver)
}
