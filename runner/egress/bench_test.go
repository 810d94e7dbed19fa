package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	{"gateway-quick", func(b *testing.B) *sandbox {
		return newSandbox(b, Options{
			Log: func(Attempt) {}, Judge: allow, Processes: func() []int { return []int{os.Getpid()} },
			Quick: func(Attempt) (Verdict, bool) { return Verdict{Allow: true}, true },
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
	ready.SetReadDeadline(time.Now().Add(patience))
	if n, _ := ready.Read(make([]byte, 1)); n != 1 {
		b.Skip("slirp4netns doesn't start here: nothing to compare with")
	}
	ready.Close()
	return s
}

func eachWay(b *testing.B, run func(b *testing.B, s *sandbox)) {
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) { run(b, w.open(b)) })
	}
}

func BenchmarkConnect(b *testing.B) {
	at := serve(b, internet, publicAddr+":0", func(net.Conn) {})
	eachWay(b, func(b *testing.B, s *sandbox) {
		s.do(func() {
			b.ResetTimer()
			for range b.N {
				fd, err := connectBlocking(at)
				if err != nil {
					b.Error(err)
					return
				}
				unix.Close(fd)
			}
			b.StopTimer()
		})
	})
}

// BenchmarkRoundTrip is one byte there and back on an open connection.
func BenchmarkRoundTrip(b *testing.B) {
	at := serve(b, internet, publicAddr+":0", echo)
	eachWay(b, func(b *testing.B, s *sandbox) {
		s.do(func() {
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
			b.StopTimer()
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
		s.do(func() {
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
			b.StopTimer()
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
		s.do(func() {
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
			b.StopTimer()
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
