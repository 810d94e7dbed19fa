package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// The tests run in a network namespace of their own, which plays the host. It
// is joined by a veth pair to another that plays the internet, with services
// at the addresses below. Nothing here can reach a real network.
const (
	roleVar   = "STEPBOX_EGRESS_TEST_ROLE"
	roleHost  = "host"
	roleUser  = "unprivileged"
	roleLink  = "link"
	otherUser = 12345

	publicAddr   = "203.0.113.10" // a web server of the internet
	publicAddr2  = "203.0.113.11"
	publicAddr6  = "2001:db8::10"
	lanAddr      = "192.168.77.10"
	metadataAddr = "169.254.169.254"
	sharedAddr   = "100.64.0.10"
	nat64Addr    = "64:ff9b::7f00:1"
	ownPublic    = "203.0.113.99" // the host's
	ownLAN       = "10.77.0.10"
)

// byUser are the tests of what needs rights of the kernel: links, raw sockets, looking up whose a connection is. They
// run as an ordinary user too; a pattern on the command line stands over it.
const byUser = "^Test(Attribution|OwnerIsFoundOnABusyMachine|AProgramThat.*|Ping.*|RealPing|TUN|Tools|GuardAttacks|GuardKnowsLocalRoutes|UDPEcho|UDPFlow.*|TCPAllowAndDeny|Held|Swallowed|Link.*|Dig|FloodOfSYNs|CloseEndsEverything)$"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); {
	case fuzzing():
		os.Exit(m.Run())
	case role == roleHost:
		os.Exit(asHost(m))
	case role == roleLink:
		os.Exit(asLinked())
	case strings.HasPrefix(role, "client "):
		os.Exit(asClient(strings.Fields(role)[1:]))
	case os.Getuid() == 0 && role != roleUser:
		if code := reexec(roleHost, nil, os.Args[1:]); code != 0 {
			os.Exit(code)
		}
		if strings.Contains(strings.Join(os.Args, " "), "-test.bench") {
			os.Exit(0)
		}
		fmt.Printf("again as uid %d:\n", otherUser)
		os.Exit(reexec(roleUser, &syscall.Credential{Uid: otherUser, Gid: otherUser}, append([]string{"-test.run=" + byUser}, quietFlags()...)))
	default:
		os.Exit(reexec(roleHost, nil, os.Args[1:]))
	}
}

func fuzzing() bool {
	return strings.Contains(strings.Join(os.Args, " "), "-test.fuzz=")
}

// quietFlags are the test's flags without those that name files.
func quietFlags() []string {
	var out []string
	for _, a := range os.Args[1:] {
		if !strings.Contains(a, "file") && !strings.Contains(a, "gocoverdir") && !strings.Contains(a, "outputdir") {
			out = append(out, a)
		}
	}
	return out
}

// reexec runs this binary again: as another user, or as root of a new user
// and network namespace.
func reexec(role string, as *syscall.Credential, args []string) int {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGKILL}
	if as == nil {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	} else {
		dir, err := os.MkdirTemp("", "stepbox-egress-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		for _, name := range []string{"HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"} {
			cmd.Env = append(cmd.Env, name+"="+dir)
		}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	}
	fmt.Fprintf(os.Stderr, "cannot make a user namespace for the tests (unprivileged user namespaces must be allowed): %v\n", err)
	return 1
}

// space is a network namespace with a thread in it.
type space struct {
	work chan func()
	done chan struct{}
}

func newSpace() (*space, error) {
	s := &space{work: make(chan func()), done: make(chan struct{})}
	started := make(chan error)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// MakeLink leaves a process's first thread, here for one that is in
			// the host's namespace, and this one can't end.
			go run()
			<-s.done
			runtime.UnlockOSThread()
			return
		}
		defer close(s.done) // never unlocked: the thread ends with its goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		started <- err
		for f := range s.work {
			f()
		}
	}
	go run()
	return s, <-started
}

// do runs f on the namespace's thread.
func (s *space) do(f func()) {
	finished := make(chan struct{})
	s.work <- func() { defer close(finished); f() }
	<-finished
}

func (s *space) close() {
	close(s.work)
	<-s.done
}

// internet is what the host can reach.
var internet *space

func asHost(m *testing.M) int {
	var err error
	if internet, err = newSpace(); err == nil {
		err = joinInternet()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot make the tests' networks: %v\n", err)
		return 1
	}
	code := m.Run()
	internet.close()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintf(os.Stderr, "goroutines are left: %v\n", err)
			return 1
		}
	}
	return code
}

// joinInternet makes the wire between the two and gives them addresses.
func joinInternet() error {
	var there *os.File
	var err error
	internet.do(func() { there, err = os.Open("/proc/thread-self/ns/net") })
	if err != nil {
		return err
	}
	defer there.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "wire", 65520
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerNamespace, pair.PeerMTU = "wire", netlink.NsFd(there.Fd()), 65520
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	setUp := func(gateway string, addrs ...string) error {
		for _, name := range []string{"lo", "wire"} {
			link, err := netlink.LinkByName(name)
			if err == nil {
				err = netlink.LinkSetUp(link)
			}
			if err != nil {
				return err
			}
		}
		link, err := netlink.LinkByName("wire")
		if err != nil {
			return err
		}
		for _, s := range addrs {
			addr, err := netlink.ParseAddr(s)
			if err != nil {
				return err
			}
			addr.Flags = unix.IFA_F_NODAD
			if err := netlink.AddrAdd(link, addr); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		for _, gw := range strings.Fields(gateway) {
			all := &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
			if strings.Contains(gw, ":") {
				all = &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
			}
			if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: all, Gw: net.ParseIP(gw)}); err != nil {
				return fmt.Errorf("route by %s: %w", gw, err)
			}
		}
		return nil
	}
	if err := setUp("10.77.0.1 fd77::1", ownLAN+"/24", ownPublic+"/32", "fd77::2/64"); err != nil {
		return err
	}
	internet.do(func() {
		err = setUp("", "10.77.0.1/24", "fd77::1/64", publicAddr+"/32", publicAddr2+"/32", publicAddr6+"/128",
			lanAddr+"/32", metadataAddr+"/32", sharedAddr+"/32", nat64Addr+"/128")
		if err == nil {
			err = route("wire", ownPublic+"/32")
		}
	})
	return err
}

func route(dev, dst string) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return err
	}
	_, to, err := net.ParseCIDR(dst)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Scope: netlink.SCOPE_LINK})
}

// serve accepts connections at addr, in a namespace or on the host (nil), and
// gives each to handle. It returns where it listens.
func serve(t testing.TB, where *space, addr string, handle func(net.Conn)) netip.AddrPort {
	t.Helper()
	var l net.Listener
	var err error
	listen := func() { l, err = net.Listen("tcp", addr) }
	if where != nil {
		where.do(listen)
	} else {
		listen()
	}
	must.OK(t, err)
	var wg sync.WaitGroup
	var mu sync.Mutex
	conns := make(map[net.Conn]bool)
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer func() {
					mu.Lock()
					delete(conns, c)
					mu.Unlock()
					c.Close()
				}()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return netip.MustParseAddrPort(l.Addr().String())
}

func hello(c net.Conn) { io.WriteString(c, "hello") }

func echo(c net.Conn) { io.Copy(c, c) }

// zone is an upstream DNS server on the host, with a count of its questions.
type zone struct {
	mu      sync.Mutex
	records map[string][]netip.Addr
	asked   []string
	conn    net.PacketConn
}

func newZone(t testing.TB, records map[string][]string) *zone {
	t.Helper()
	z := &zone{records: make(map[string][]netip.Addr)}
	for name, addrs := range records {
		for _, a := range addrs {
			z.records[name] = append(z.records[name], netip.MustParseAddr(a))
		}
	}
	var err error
	if z.conn, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(z.run)
	t.Cleanup(func() { z.conn.Close(); wg.Wait() })
	return z
}

func (z *zone) run() {
	buf := make([]byte, 4096)
	for {
		n, from, err := z.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
		z.mu.Lock()
		z.asked = append(z.asked, name)
		addrs, known := z.records[name]
		z.mu.Unlock()
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if !known {
			m.RCode = dnsmessage.RCodeNameError
		}
		for _, a := range addrs {
			h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}
			switch {
			case q.Type == dnsmessage.TypeA && a.Is4():
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
			case q.Type == dnsmessage.TypeAAAA && a.Is6():
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
		if out, err := m.Pack(); err == nil {
			z.conn.WriteTo(out, from)
		}
	}
}

func (z *zone) questions() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return append([]string(nil), z.asked...)
}

func (z *zone) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "udp", z.conn.LocalAddr().String())
	}}
}
