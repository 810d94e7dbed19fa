package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

// outlet is a way out of a namespace; open gives nil where it isn't to be had.
type outlet struct {
	name string
	open func(b *testing.B) *sandbox
}

// ways to compare: ours, with a rule that decides, and those of others with the same MTU.
var ways = []outlet{
	{"gateway", func(b *testing.B) *sandbox {
		o := searching
		o.Log = complain(b)
		o.Known = func(Attempt) (Verdict, bool) { return Verdict{Allow: true}, true }
		return newSandbox(b, o)
	}},
	{"slirp4netns", newSlirp},
	{"pasta", newPasta},
}

// complain logs attempts that failed: in benchmarks all are meant to work.
func complain(b *testing.B) func(Attempt) {
	return func(a Attempt) {
		if a.Failure != "" && a.Failure != errClosing.Error() {
			b.Logf("the gateway: %s (%s)", a.Failure, a.Address)
		}
	}
}

// searching are options with which the program is looked for before the verdict, among
// the programs that benchmarks started.
var searching = Options{Log: func(Attempt) {}, Judge: allow, Processes: func() []int {
	programs.Lock()
	defer programs.Unlock()
	return append(slices.Clone(programs.pids), os.Getpid())
}}

var programs struct {
	sync.Mutex
	pids []int // guarded by Mutex
}

// newSlirp is a namespace whose way out is slirp4netns.
func newSlirp(b *testing.B) *sandbox {
	b.Helper()
	ready, tell, err := os.Pipe()
	must.OK(b, err)
	defer ready.Close()
	s := newOther(b, tell, func(pid string) []string {
		return []string{"slirp4netns", "--configure", "--mtu=65520", "--ready-fd=3", pid, "tap0"}
	})
	tell.Close()
	if s == nil {
		return nil
	}
	ready.SetReadDeadline(time.Now().Add(patience))
	if n, _ := ready.Read(make([]byte, 1)); n != 1 {
		b.Log("slirp4netns doesn't start here: it isn't compared with")
		return nil
	}
	return s
}

// newPasta is a namespace whose way out is pasta. It is ready when its interface is.
func newPasta(b *testing.B) *sandbox {
	b.Helper()
	// It has no right to look into our processes: it gets the namespace as a file.
	s := newOther(b, nil, func(string) []string {
		return []string{"pasta", "-q", "-f", "--config-net", "-m", "65520", "-I", "tap0", "-t", "none", "-u", "none", "-T", "none", "-U", "none", "--netns", "/proc/self/fd/3", "--netns-only", "--runas", "0"}
	})
	if s == nil {
		return nil
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		var routes []netlink.Route
		s.do(func() { routes, _ = netlink.RouteList(nil, netlink.FAMILY_V4) })
		if slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.Gw != nil }) {
			return s
		}
	}
	b.Log("pasta doesn't start here: it isn't compared with")
	return nil
}

// newOther is a namespace that another tool gets the process of, for as long as the
// benchmark runs; its third descriptor is the file, or the namespace.
func newOther(b *testing.B, file *os.File, args func(pid string) []string) *sandbox {
	b.Helper()
	sp, err := newSpace()
	must.OK(b, err)
	s := &sandbox{space: sp, t: b, more: make(chan struct{}, 1)}
	stay := s.program("stay")
	line := args(strconv.Itoa(stay.Process.Pid))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	if file == nil {
		sp.do(func() { file, err = os.Open("/proc/thread-self/ns/net") })
		must.OK(b, err)
		defer file.Close()
	}
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Start()
	b.Cleanup(func() {
		cancel()
		if err == nil {
			cmd.Wait()
		}
		stay.Process.Kill()
		stay.Wait()
		sp.close()
	})
	if err != nil {
		b.Logf("%s isn't installed: it isn't compared with", line[0])
		return nil
	}
	s.helper = cmd.Process.Pid
	return s
}

// cpu is what this process and the way's own have used.
func (s *sandbox) cpu() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	total := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if s.helper != 0 {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(s.helper) + "/schedstat")
		if f := strings.Fields(string(b)); len(f) > 0 {
			n, _ := strconv.ParseInt(f[0], 10, 64)
			total += time.Duration(n)
		}
	}
	return total
}

// metered runs f on the namespace's thread and reports the processor time of
// an operation, which other load on the machine disturbs less than the clock.
func (s *sandbox) metered(b *testing.B, f func()) {
	s.do(func() {
		before := s.cpu()
		f()
		b.StopTimer()
		b.ReportMetric(float64(s.cpu()-before)/float64(b.N)/1000, "cpu-µs/op")
	})
}

func eachWay(b *testing.B, run func(b *testing.B, s *sandbox)) {
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			s := w.open(b)
			if s == nil {
				b.Skip("there is nothing to compare with")
			}
			run(b, s)
		})
	}
}

// compare runs the ways in turns.
func compare(b *testing.B, list []outlet, run func(s *sandbox) time.Duration) {
	var runs []pairstest.Way
	for _, w := range list {
		if s := w.open(b); s != nil {
			runs = append(runs, pairstest.Way{Name: w.name, Run: func() time.Duration {
				if took := run(s); took > 0 {
					return took
				}
				b.Fatalf("%s failed", w.name)
				return 0
			}})
		}
	}
	pairstest.Compare(b, runs...)
}

// BenchmarkConnect is connect(2) by a program, to a server that is another one: of each
// round the median of a hundred, one after the other.
func BenchmarkConnect(b *testing.B) {
	far := &sandbox{space: internet, t: b}
	_, at := far.converse("hangup")
	address, err := at()
	must.OK(b, err)
	list := append(slices.Clone(ways), outlet{"searching", func(b *testing.B) *sandbox { return newSandbox(b, searching) }})
	turns := make(map[*sandbox]func() (string, error))
	compare(b, list, func(s *sandbox) time.Duration {
		ask, ok := turns[s]
		if !ok {
			in, out := s.converse("connect " + address)
			ask = func() (string, error) {
				fmt.Fprintln(in)
				return out()
			}
			turns[s] = ask
		}
		line, err := ask()
		median, bad := strconv.ParseInt(line, 10, 64)
		must.OK(b, errors.Join(err, bad))
		return time.Duration(median)
	})
}

// converse starts a program that is talked to by lines, until the benchmark ends.
func (s *sandbox) converse(role string) (in io.Writer, line func() (string, error)) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"=client "+role)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err == nil && err2 == nil {
		s.do(func() { err = cmd.Start() })
	}
	must.OK(s.t, errors.Join(err, err2))
	programs.Lock()
	programs.pids = append(programs.pids, cmd.Process.Pid)
	programs.Unlock()
	s.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewReader(out)
	return in, func() (string, error) {
		text, err := lines.ReadString('\n')
		return strings.TrimSpace(text), err
	}
}

// BenchmarkMany is a thousand connections by sixteen threads, each closed by its server.
func BenchmarkMany(b *testing.B) {
	at := serve(b, internet, publicAddr+":0", func(net.Conn) {})
	compare(b, ways, func(s *sandbox) time.Duration {
		const n, threads = 1000, 16
		sockets := make(chan int, n)
		s.do(func() { // a socket belongs to the namespace it was made in
			for range n {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					b.Error(err)
					break
				}
				sockets <- fd
			}
		})
		close(sockets)
		start := time.Now()
		var wg sync.WaitGroup
		for range threads {
			wg.Go(func() {
				buf := make([]byte, 1)
				for fd := range sockets {
					if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}); err != nil {
						b.Error(err)
					}
					unix.Read(fd, buf)
					unix.Close(fd)
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	})
}

// BenchmarkThroughput is 256 MiB, out of the sandbox and into it.
func BenchmarkThroughput(b *testing.B) {
	const size = 256 << 20
	arrived := make(chan int64, 1)
	up := serve(b, internet, publicAddr+":0", func(c net.Conn) {
		n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, chunk))
		arrived <- n
	})
	down := serve(b, internet, publicAddr+":0", func(c net.Conn) {
		buf := make([]byte, chunk)
		for range size / chunk {
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	})
	transfer := func(s *sandbox, at netip.AddrPort, carry func(fd int, buf []byte) (int, error)) (took time.Duration) {
		s.do(func() {
			buf := make([]byte, chunk)
			fd, err := connectBlocking(at)
			if err != nil {
				b.Error(err)
				return
			}
			start := time.Now()
			for left := size; left > 0; {
				n, err := carry(fd, buf[:min(left, chunk)])
				if n <= 0 {
					b.Error("it ended early:", err)
					break
				}
				left -= n
			}
			unix.Close(fd)
			if at == up {
				<-arrived
			}
			took = time.Since(start)
		})
		return took
	}
	b.Run("out", func(b *testing.B) {
		compare(b, ways, func(s *sandbox) time.Duration { return transfer(s, up, unix.Write) })
	})
	b.Run("in", func(b *testing.B) {
		compare(b, ways, func(s *sandbox) time.Duration { return transfer(s, down, unix.Read) })
	})
}

// BenchmarkMemory is what a thousand open connections take: of ours what this process
// needs more, less the servers' part, which is what it needs more by another's way.
func BenchmarkMemory(b *testing.B) {
	const n = 1000
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			s := w.open(b)
			if s == nil {
				b.Skip("there is nothing to compare with")
			}
			at := serve(b, internet, publicAddr+":0", func(c net.Conn) {
				c.Write([]byte("x"))
				c.Read(make([]byte, 1))
			})
			for b.Loop() { // it is measured once
			}
			here, there := ownMemory(), residentKB(s.helper)
			var fds []int
			s.do(func() {
				buf := make([]byte, 1)
				for range n {
					fd, err := connectBlocking(at)
					if err != nil {
						b.Error(err)
						return
					}
					unix.Read(fd, buf)
					fds = append(fds, fd)
				}
			})
			b.ReportMetric(float64(ownMemory()-here)/n/1024, "this-KiB/conn")
			b.ReportMetric(float64(residentKB(s.helper)-there)/n, "its-KiB/conn")
			b.ReportMetric(0, "ns/op")
			for _, fd := range fds {
				unix.Close(fd)
			}
		})
	}
}

// ownMemory is what this process has in use, in bytes.
func ownMemory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// residentKB is what a process has in memory, in KiB; 0 for none.
func residentKB(pid int) (kb int64) {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ = strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return kb
}

// BenchmarkRoundTrip is one byte there and back on an open connection.
func BenchmarkRoundTrip(b *testing.B) {
	at := serve(b, internet, publicAddr+":0", echo)
	eachWay(b, func(b *testing.B, s *sandbox) {
		s.metered(b, func() {
			fd, err := connectBlocking(at)
			if err != nil {
				b.Error(err)
				return
			}
			defer unix.Close(fd)
			buf := []byte{1}
			b.ResetTimer()
			for range b.N {
				unix.Write(fd, buf)
				if n, err := unix.Read(fd, buf); n != 1 {
					b.Error(n, err)
					return
				}
			}
		})
	})
}

const chunk = 1 << 20

func BenchmarkUp(b *testing.B) {
	done := make(chan int64, 1)
	at := serve(b, internet, publicAddr+":0", func(c net.Conn) {
		n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, chunk))
		done <- n
	})
	eachWay(b, func(b *testing.B, s *sandbox) {
		b.SetBytes(chunk)
		buf := make([]byte, chunk)
		s.metered(b, func() {
			fd, err := connectBlocking(at)
			if err != nil {
				b.Error(err)
				return
			}
			b.ResetTimer()
			for range b.N {
				for rest := buf; len(rest) > 0; {
					n, err := unix.Write(fd, rest)
					if err != nil {
						b.Error(err)
						return
					}
					rest = rest[n:]
				}
			}
			unix.Close(fd)
			if n := <-done; n != int64(b.N)*chunk {
				b.Errorf("%d bytes arrived", n)
			}
		})
	})
}

func BenchmarkDown(b *testing.B) {
	at := serve(b, internet, publicAddr+":0", func(c net.Conn) {
		size := make([]byte, 8)
		if _, err := io.ReadFull(c, size); err != nil {
			return
		}
		n := 0
		for _, d := range size {
			n = n<<8 | int(d)
		}
		buf := make([]byte, chunk)
		for range n {
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	})
	eachWay(b, func(b *testing.B, s *sandbox) {
		b.SetBytes(chunk)
		buf := make([]byte, chunk)
		s.metered(b, func() {
			fd, err := connectBlocking(at)
			if err != nil {
				b.Error(err)
				return
			}
			defer unix.Close(fd)
			b.ResetTimer()
			var size [8]byte
			for i := range size {
				size[i] = byte(b.N >> (56 - 8*i))
			}
			unix.Write(fd, size[:])
			for left := b.N * chunk; left > 0; {
				n, err := unix.Read(fd, buf)
				if n <= 0 {
					b.Error("it ended early:", err)
					return
				}
				left -= n
			}
		})
	})
}

// BenchmarkLookup is a name's address over the link.
func BenchmarkLookup(b *testing.B) {
	s := ways[0].open(b)
	q := question("example.com.", 1)
	s.do(func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			b.Error(err)
			return
		}
		defer unix.Close(fd)
		unix.Connect(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(Nameserver).As4(), Port: 53})
		buf := make([]byte, 512)
		b.ResetTimer()
		for range b.N {
			unix.Write(fd, q)
			if n, err := unix.Read(fd, buf); n <= 0 {
				b.Error(err)
				return
			}
		}
		b.StopTimer()
	})
}

// connectBlocking connects from the calling thread's namespace.
func connectBlocking(at netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}); err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}
