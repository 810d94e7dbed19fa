package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/pairs"
)

// ways out of a namespace, to compare: ours, with the program looked up for
// each connection and without, and slirp4netns with the same MTU.
var ways = []struct {
	name string
	open func(b *testing.B) *sandbox
}{
	{"gateway", func(b *testing.B) *sandbox {
		return newSandbox(b, Options{
			Log: func(Attempt) {}, Judge: allow, Processes: func() []int { return []int{os.Getpid()} },
		})
	}},
	{"slirp4netns", newSlirp},
}

// newSlirp is a namespace whose way out is slirp4netns.
func newSlirp(b *testing.B) *sandbox {
	b.Helper()
	path, err := exec.LookPath("slirp4netns")
	if err != nil {
		b.Skip("slirp4netns isn't installed: nothing to compare with")
	}
	sp, err := newSpace()
	if err != nil {
		b.Fatal(err)
	}
	s := &sandbox{space: sp, t: b, more: make(chan struct{}, 1)}
	stay := s.program("stay")
	ready, tell, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "--configure", "--mtu=65520", "--ready-fd=3", strconv.Itoa(stay.Process.Pid), "tap0")
	cmd.ExtraFiles = []*os.File{tell}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	tell.Close()
	b.Cleanup(func() {
		cancel()
		cmd.Wait()
		stay.Process.Kill()
		stay.Wait()
		sp.close()
	})
	s.helper = cmd.Process.Pid
	ready.SetReadDeadline(time.Now().Add(patience))
	if n, _ := ready.Read(make([]byte, 1)); n != 1 {
		b.Skip("slirp4netns doesn't start here: nothing to compare with")
	}
	ready.Close()
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
		b.Run(w.name, func(b *testing.B) { run(b, w.open(b)) })
	}
}

// BenchmarkConnect is connect(2): of each round the median of a hundred, one
// after the other.
func BenchmarkConnect(b *testing.B) {
	at := serve(b, internet, publicAddr+":0", func(net.Conn) {})
	var list []pairs.Way
	for _, w := range ways {
		s := w.open(b)
		list = append(list, pairs.Way{Name: w.name, Run: func() (median time.Duration) {
			s.do(func() {
				took := make([]time.Duration, 100)
				buf := make([]byte, 1)
				for i := range took {
					start := time.Now()
					fd, err := connectBlocking(at)
					took[i] = time.Since(start)
					if err != nil {
						b.Error(err)
						return
					}
					unix.Read(fd, buf) // the server closes
					unix.Close(fd)
				}
				slices.Sort(took)
				median = took[len(took)/2]
			})
			return median
		}})
	}
	pairs.Compare(b, list...)
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
