package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// Thousands of refused attempts are all accounted for, most of them in one
// count.
func TestFloodOfDeniedAttempts(t *testing.T) {
	s := newSandbox(t, Options{Judge: deny})
	const n = 3000
	start := time.Now()
	s.do(func() {
		for i := range n {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Error(err)
				return
			}
			err = unix.Connect(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(publicAddr).As4(), Port: 100 + i})
			unix.Close(fd)
			if !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("port %d: %v", 100+i, err)
				return
			}
		}
	})
	took := time.Since(start)
	// All are in the log once the gateway is closed.
	must.OK(t, s.gw.Close())
	last := make(map[int64]Attempt)
	for _, a := range s.logged() {
		last[a.ID] = a
	}
	listed, counted := 0, 0
	for _, a := range last {
		if a.Protocol == "flood" {
			counted += a.Count
		} else {
			listed++
		}
	}
	if listed+counted != n {
		t.Errorf("%d listed and %d counted, want %d together", listed, counted, n)
	}
	if most := floodBurst + int(took.Seconds()*floodRate) + 2; listed > most || len(s.logged()) > most+int(took.Seconds())+5 {
		t.Errorf("%d listed with %d entries in %v", listed, len(s.logged()), took)
	}
}

// Not more connections than MaxPending are held; the rest are refused and
// counted, and closing still works.
func TestFloodOfHeldConnections(t *testing.T) {
	s := newSandbox(t, Options{Judge: func(ctx context.Context, _ Attempt) Verdict {
		<-ctx.Done()
		return Verdict{}
	}})
	const n = MaxPending + 200
	var fds []int
	s.do(func() {
		for i := range n {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				t.Error(err)
				return
			}
			fds = append(fds, fd)
			if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(publicAddr).As4(), Port: 100 + i}); !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.ECONNREFUSED) {
				t.Error(err)
			}
		}
	})
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	s.wait("the refused ones", func(a Attempt) bool { return a.Protocol == "flood" && a.Count == 200 })
	s.gw.mu.Lock()
	held := len(s.gw.pending)
	s.gw.mu.Unlock()
	if held != MaxPending {
		t.Errorf("%d are held", held)
	}
	if err := s.gw.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// What is only counted isn't shown as waiting when the time for that comes just then: it
// would stay so.
func TestFloodShowsNothingAsHeld(t *testing.T) {
	s := newSandbox(t, Options{})
	for s.gw.journal.spend() {
	}
	r := s.gw.newRecord("tcp", netip.MustParseAddrPort(publicAddr+":80"))
	s.gw.refuse(r, Verdict{}, "")
	s.gw.hold(r)
	must.OK(t, s.gw.Close())
	for _, a := range s.logged() {
		if a.Open {
			t.Errorf("logged %+v", a)
		}
	}
}

// Datagrams from ever new ports don't make ever more flows.
func TestFloodOfDatagrams(t *testing.T) {
	release := make(chan struct{})
	s := newSandbox(t, Options{Judge: func(ctx context.Context, _ Attempt) Verdict {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return Verdict{}
	}})
	for port, flooded := 1000, false; !flooded; {
		c, err := s.dial("udp", hostPort(parse(publicAddr), uint16(port)), patience)
		must.OK(t, err)
		// The link itself loses datagrams when they come too fast.
		for range 3 {
			c.Write(make([]byte, 9000))
		}
		c.Close()
		if port++; port > 20000 {
			t.Fatal("no end of flows")
		}
		for _, a := range s.logged() {
			flooded = flooded || a.Protocol == "flood"
		}
	}
	u := s.gw.udp
	u.mu.Lock()
	flows, waiting := len(u.flows), u.waiting
	u.mu.Unlock()
	if flows != MaxUDPFlows || waiting > maxWaitingBytes || waiting < maxWaitingBytes/2 {
		t.Errorf("%d flows with %d bytes", flows, waiting)
	}
	close(release)
}

// Connections beyond MaxFlows are refused, and their places are free again
// when others end.
func TestFloodOfOpenConnections(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", echo)
	s := newSandbox(t, Options{Judge: allow})
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range MaxFlows {
		c, err := s.dial("tcp", at.String(), patience)
		if err != nil {
			t.Fatalf("after %d: %v", len(open), err)
		}
		open = append(open, c)
	}
	if _, err := s.dial("tcp", at.String(), patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("one too many: %v", err)
	}
	s.wait("the refusal", func(a Attempt) bool { return a.Failure == "too many open connections" })
	if n := s.gw.tcpFlows.Load(); n != MaxFlows {
		t.Errorf("%d flows are open", n)
	}
	for _, c := range open {
		c.Close()
	}
	s.wait("the end of all", func(Attempt) bool {
		ended := 0
		for _, a := range s.logged() {
			if !a.Open && a.Failure == "" {
				ended++
			}
		}
		return ended == MaxFlows
	})
	c, err := s.dial("tcp", at.String(), patience)
	if err != nil {
		t.Fatalf("with all places free again: %v", err)
	}
	open = append(open, c)
}

// A Log that blocks holds up neither verdicts nor memory.
func TestLogBlocks(t *testing.T) {
	release := make(chan struct{})
	s := newSandbox(t, Options{Judge: deny, Log: func(Attempt) { <-release }})
	refused := 0
	for range 50 {
		if err := s.connectRaw(netip.MustParseAddr(publicAddr), 7, patience); errors.Is(err, syscall.ECONNREFUSED) {
			refused++
		}
	}
	if refused != 50 {
		t.Errorf("%d of 50 got their verdict", refused)
	}
	close(release)
}
