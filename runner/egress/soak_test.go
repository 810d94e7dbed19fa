package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// load is what a gateway, and its process, hold at a time.
type load struct {
	goroutines, sockets       int
	pending, tcp, udp, echoes int
	waiting                   int // bytes of datagrams
	tracked, unlogged, open   int // records: that are looked at, that wait for Log, that it last saw open
	connected                 int // ends in the stack
}

// soak is a sandbox in which many flows come and go.
type soak struct {
	*sandbox
	tcp, udp netip.AddrPort
	names    []netip.Addr // of allowed names
	bad      netip.Addr
	held     netip.Addr // a name that nobody answers for
	message  []byte

	mu   sync.Mutex
	open map[int64]Attempt // guarded by mu: those that Log last saw open
}

// note is the gateway's Log: it keeps what is open, alone.
func (k *soak) note(a Attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a.Open {
		k.open[a.ID] = a
	} else {
		delete(k.open, a.ID)
	}
}

func (k *soak) load() (l load) {
	files, err := os.ReadDir("/proc/self/fd")
	must.OK(k.t, err)
	for _, f := range files { // Go keeps pipes for later
		if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.HasPrefix(to, "socket:") {
			l.sockets++
		}
	}
	g := k.gw
	l.goroutines, l.connected = runtime.NumGoroutine(), int(g.stack.Stats().TCP.CurrentConnected.Value())
	g.mu.Lock()
	l.pending, l.tcp = len(g.pending), len(g.flows)
	g.mu.Unlock()
	g.udp.mu.Lock()
	l.udp, l.waiting = len(g.udp.flows), g.udp.waiting
	g.udp.mu.Unlock()
	g.echo.mu.Lock()
	l.echoes = len(g.echo.flows)
	g.echo.mu.Unlock()
	g.journal.mu.Lock()
	l.tracked, l.unlogged = len(g.journal.open), len(g.journal.queue)
	g.journal.mu.Unlock()
	k.mu.Lock()
	l.open = len(k.open)
	k.mu.Unlock()
	return l
}

// settled waits until no more is held than was before anything came.
func (k *soak) settled(before load) load {
	k.t.Helper()
	tick, deadline := time.NewTicker(watchEvery), time.After(patience)
	defer tick.Stop()
	for {
		now := k.load()
		l := now
		if l.goroutines <= before.goroutines && l.sockets <= before.sockets {
			l.goroutines, l.sockets = before.goroutines, before.sockets
		}
		if l == before {
			return now
		}
		select {
		case <-tick.C:
		case <-deadline:
			k.t.Fatalf("something is left: %+v; before it was %+v; told as open are %+v", now, before, k.open)
		}
	}
}

// socket is one of the sandbox's, connected, for any thread. It waits for a second to read,
// as programs do that send again what may be lost, and for long to connect.
func (k *soak) socket(kind, proto int, to netip.Addr, port uint16) (fd int, err error) {
	k.do(func() { fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, proto) })
	if err != nil {
		return -1, err
	}
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)})
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	return fd, connectTo(fd, &unix.SockaddrInet4{Addr: to.As4(), Port: int(port)}, patience)
}

// stream sends a message by TCP, from which on it sends nothing where it is the last, and
// has it come back.
func (k *soak) stream(to netip.Addr, message []byte, last bool) error {
	fd, err := k.socket(unix.SOCK_STREAM, 0, to, k.tcp.Port())
	defer unix.Close(fd)
	if err != nil {
		return err
	}
	if _, err := again(unix.Write, fd, message); err != nil {
		return err
	}
	if last {
		unix.Shutdown(fd, unix.SHUT_WR)
	} else {
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	got, buf := make([]byte, 0, len(message)), make([]byte, 64<<10)
	for deadline := time.Now().Add(patience); last || len(got) < len(message); {
		n, err := again(unix.Read, fd, buf)
		if errors.Is(err, unix.EAGAIN) && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		got = append(got, buf[:n]...)
	}
	if !bytes.Equal(got, message) {
		return fmt.Errorf("%d of %d bytes came back", len(got), len(message))
	}
	return nil
}

// datagram sends one until there is an answer, which is as long.
func (k *soak) datagram(proto int, to netip.Addr, port uint16, message []byte) error {
	fd, err := k.socket(unix.SOCK_DGRAM, proto, to, port)
	defer unix.Close(fd)
	for deadline := time.Now().Add(patience); err == nil; {
		if _, err = again(unix.Write, fd, message); err != nil {
			break
		}
		var n int
		n, err = again(unix.Read, fd, make([]byte, 64<<10))
		switch {
		case err == nil && n >= len(message):
			return nil
		case err == nil:
			return fmt.Errorf("%d of %d bytes came back", n, len(message))
		case errors.Is(err, unix.EAGAIN) && time.Now().Before(deadline):
			err = nil
		}
	}
	return err
}

// flows are the kinds that come and go; n is different each time. Those that stay for a
// while when they are over need room.
var flows = []struct {
	what string
	room func(l load) bool
	run  func(k *soak, n int) error
	want error
}{
	{"a connection that ends", func(load) bool { return true }, func(k *soak, n int) error {
		return k.stream(k.names[n%len(k.names)], k.message[:1+n*1009%len(k.message)], true)
	}, nil},
	{"one that is reset", func(load) bool { return true }, func(k *soak, n int) error {
		return k.stream(k.tcp.Addr(), k.message[:1+n%100], false)
	}, nil},
	{"a denied one", func(load) bool { return true }, func(k *soak, n int) error {
		return k.stream(k.bad, k.message[:1], true)
	}, unix.ECONNREFUSED},
	{"one that nobody answers for", func(l load) bool { return l.pending < MaxPending/2 }, func(k *soak, n int) error {
		fd, err := k.socket(unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0, k.held, k.tcp.Port())
		unix.Close(fd)
		return err
	}, unix.EINPROGRESS},
	{"datagrams", func(l load) bool { return l.udp < MaxUDPFlows/2 }, func(k *soak, n int) error {
		return k.datagram(0, k.names[n%len(k.names)], k.udp.Port(), k.message[:1+n%1400])
	}, nil},
	{"denied datagrams", func(l load) bool { return l.udp < MaxUDPFlows/2 }, func(k *soak, n int) error {
		return k.datagram(0, k.bad, k.udp.Port(), k.message[:1])
	}, unix.ECONNREFUSED},
	{"a ping", func(l load) bool { return l.echoes < MaxEchoFlows/2 }, func(k *soak, n int) error {
		return k.datagram(unix.IPPROTO_ICMP, k.tcp.Addr(), 0, request(publicAddr, byte(n), "payload"))
	}, nil},
	{"a name", func(load) bool { return true }, func(k *soak, n int) error {
		return k.datagram(0, netip.MustParseAddr(Nameserver), dnsPort, question(fmt.Sprintf("n%d.example.", n%100), 1))
	}, nil},
}

// BenchmarkSoak has flows of all kinds come and go for as long as -benchtime says, and
// fails where anything is left of them.
func BenchmarkSoak(b *testing.B) {
	hostPings(b, true)
	k := &soak{open: make(map[int64]Attempt), message: bytes.Repeat([]byte("0123456789abcdef"), 4<<10)}
	k.tcp = serve(b, internet, publicAddr+":0", echo)
	k.udp = echoUDP(b, internet, publicAddr+":0")
	records := make(map[string][]string)
	for n := range 16 {
		records[fmt.Sprintf("n%d.example", n)] = []string{publicAddr}
	}
	z := newZone(b, records)
	var processes atomic.Pointer[[]int]
	processes.Store(new([]int))
	k.sandbox = newSandbox(b, Options{
		Log: k.note, resolver: z.resolver(), Processes: func() []int { return *processes.Load() },
		Judge: func(ctx context.Context, a Attempt) Verdict {
			if a.Name == "held.example" {
				<-ctx.Done()
			}
			return Verdict{Allow: a.Name != "bad.example", Rule: "test"}
		}})
	// The first is of the sandbox's namespace, as they are all, and this one has the sockets.
	stay := k.program("stay")
	defer stay.Wait()
	defer stay.Process.Kill()
	processes.Store(&[]int{stay.Process.Pid, os.Getpid()})
	for name := range records {
		k.names = append(k.names, k.resolve(name))
	}
	k.bad, k.held = k.resolve("bad.example"), k.resolve("held.example")

	before, most := k.load(), 0
	made := make([]int, len(flows))
	round := func() {
		var all sync.WaitGroup
		l := k.load()
		most = max(most, l.goroutines)
		for i, f := range flows {
			for range 8 {
				if !f.room(l) {
					continue
				}
				made[i]++
				n := made[i]
				all.Go(func() {
					if err := f.run(k, n); !errors.Is(err, f.want) {
						b.Errorf("%s: %v, want %v", f.what, err, f.want)
					}
				})
			}
		}
		all.Wait()
	}
	for range 20 { // so that what is kept for later is there
		round()
	}
	k.settled(before)
	heap, started := heapKiB(), time.Now()
	clear(made)
	for b.Loop() {
		round()
	}
	took := time.Since(started)
	after := k.settled(before)
	z.mu.Lock()
	z.asked = nil // the test's own, which grows
	z.mu.Unlock()
	total := 0
	for i, f := range flows {
		total += made[i]
		b.Logf("%d times %s", made[i], f.what)
	}
	b.ReportMetric(float64(total), "flows")
	b.ReportMetric(float64(total)/took.Seconds(), "flows/s")
	b.ReportMetric(float64(before.goroutines), "goroutines-before")
	b.ReportMetric(float64(most), "goroutines-between-rounds")
	b.ReportMetric(float64(after.goroutines), "goroutines-after")
	b.ReportMetric(float64(before.sockets), "sockets-before")
	b.ReportMetric(float64(after.sockets), "sockets-after")
	b.ReportMetric(heap, "heap-KiB-before")
	b.ReportMetric(heapKiB(), "heap-KiB-after")
	b.ReportMetric(0, "ns/op")
}

// heapKiB is what is reachable, and no more.
func heapKiB() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc >> 10)
}
