package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Nameserver is what a sandbox's resolv.conf should name. Any other address
// answers DNS as well.
const Nameserver = "192.0.0.1"

// LinkMTU is the largest IP packet on the link, in bytes. The TCP of both
// sides ends on this machine, so no path is harmed by it, and it is worth
// about six times the throughput of 1500.
const LinkMTU = 65520

// The link's addresses are from the block that IANA keeps for transition
// mechanisms (RFC 7335) and from a random unique local prefix: an allowed
// private network can't be hidden behind them.
var (
	gateway4 = netip.MustParseAddr(Nameserver)
	sandbox4 = netip.MustParseAddr("192.0.0.2")
	gateway6 = netip.MustParseAddr("fd5b:9e1c:7a40::1")
	sandbox6 = netip.MustParseAddr("fd5b:9e1c:7a40::2")

	gatewayMAC = net.HardwareAddr{0x02, 0x5b, 0, 0, 0, 1}
	sandboxMAC = net.HardwareAddr{0x02, 0x5b, 0, 0, 0, 2}
)

const (
	sandboxInterface = "eth0"
	gatewayInterface = "gw0"
)

// Kinds of Link.
const (
	linkVeth = "veth"
	linkTUN  = "tun"
)

// Link is the only way out of a sandbox, seen from the supervisor's end. All
// but its files can be sent as JSON; the files travel beside it, in the order
// of Files.
type Link struct {
	// Packet carries the sandbox's frames (veth) or IP packets (tun). It is
	// a socket in a network namespace that the agent is never in.
	Packet *os.File `json:"-"`
	// Diag is a NETLINK_SOCK_DIAG socket of the sandbox's namespace; it
	// tells which socket an attempt comes from.
	Diag *os.File `json:"-"`

	Kind       string `json:"kind"`                  // veth or tun
	MTU        int    `json:"mtu"`                   // bytes
	VnetHeader bool   `json:"vnet_header,omitempty"` // frames have a virtio header

	Sandbox4 netip.Addr `json:"sandbox4"`
	Gateway4 netip.Addr `json:"gateway4"`
	Sandbox6 netip.Addr `json:"sandbox6,omitzero"` // not valid: the kernel has no IPv6
	Gateway6 netip.Addr `json:"gateway6,omitzero"`
	// Warnings are settings that could not be made, in words. The link works
	// without them.
	Warnings []string `json:"warnings,omitempty"`
}

// Files are the link's descriptors in the order that SetFiles takes them.
func (l *Link) Files() []*os.File { return []*os.File{l.Packet, l.Diag} }

// SetFiles gives a link that came as JSON its descriptors; the link owns them
// from then on.
func (l *Link) SetFiles(files []*os.File) error {
	if len(files) != 2 {
		return fmt.Errorf("cannot use network link: it has 2 files, got %d", len(files))
	}
	l.Packet, l.Diag = files[0], files[1]
	return nil
}

// Close closes the link's files, which cuts the sandbox off.
func (l *Link) Close() error {
	var errs []error
	for _, f := range l.Files() {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// MakeLink gives this process's network namespace its one interface and returns
// the other end. It is for the holder, which is in the sandbox's namespaces and
// has CAP_SYS_ADMIN and CAP_NET_ADMIN over them (network_namespaces(7)).
//
// One thread is in the other namespace for a while. It is never the process's
// first one: by that thread /proc/PID/ns/net tells others, like the sandbox that
// is made meanwhile, which namespace to join.
//
// The interface is one end of a veth pair whose other end lives in a second
// namespace, made here, which nothing but the returned packet socket keeps
// alive: closing the socket takes the interface away. Where the kernel has no
// veth a TUN device is used instead.
func MakeLink() (link *Link, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() == unix.Getpid() {
		done := make(chan struct{})
		go func() { // on another thread, as this one is locked
			defer close(done)
			link, err = MakeLink()
		}()
		<-done
		return link, err
	}
	l := &Link{Kind: linkVeth, MTU: LinkMTU, Sandbox4: sandbox4, Gateway4: gateway4}
	if _, err := os.Stat("/proc/sys/net/ipv6"); err == nil {
		l.Sandbox6, l.Gateway6 = sandbox6, gateway6
	}
	err = l.makeVeth()
	if errors.Is(err, unix.EOPNOTSUPP) {
		l.Kind, l.VnetHeader = linkTUN, false
		_ = l.Close()
		err = l.makeTUN()
	}
	return l.finish(err)
}

// finish sets up an interface that was made, or undoes what was.
func (l *Link) finish(err error) (*Link, error) {
	if err == nil {
		err = l.configure()
	}
	if err == nil {
		err = l.openDiag()
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// makeVeth makes the pair and binds the packet socket to its far end.
func (l *Link) makeVeth() (err error) {
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("cannot open the network namespace: %w", err)
	}
	defer here.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("cannot make the gateway's network namespace: %w", err)
	}
	there, handle, err := l.openFar()
	if back := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); back != nil {
		// Not even the rest of the process may use this thread.
		runtime.LockOSThread()
		return fmt.Errorf("cannot return to the sandbox's network namespace: %w", back)
	}
	if err != nil {
		return err
	}
	defer there.Close()
	defer handle.Close()

	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = sandboxInterface, l.MTU, sandboxMAC
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerHardwareAddr = gatewayInterface, gatewayMAC
	pair.PeerMTU, pair.PeerNamespace = uint32(l.MTU), netlink.NsFd(there.Fd())
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("cannot make a veth pair: %w", err)
	}
	far, err := handle.LinkByName(gatewayInterface)
	if err != nil {
		return fmt.Errorf("cannot find the gateway's interface: %w", err)
	}
	if err := handle.LinkSetUp(far); err != nil {
		return fmt.Errorf("cannot bring the gateway's interface up: %w", err)
	}
	if err := unix.Bind(int(l.Packet.Fd()), &unix.SockaddrLinklayer{
		Protocol: networkOrder(unix.ETH_P_ALL),
		Ifindex:  far.Attrs().Index,
	}); err != nil {
		return fmt.Errorf("cannot listen on the gateway's interface: %w", err)
	}
	return nil
}

// openFar opens, in the far namespace that the thread has just entered, the
// packet socket, the namespace itself and a netlink handle.
func (l *Link) openFar() (*os.File, *netlink.Handle, error) {
	// A packet socket receives nothing before it is bound (packet(7)).
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a packet socket: %w", err)
	}
	l.Packet = os.NewFile(uintptr(fd), "packet socket")
	// With a virtio header before each frame the gateway needn't compute
	// checksums that nobody looks at.
	l.VnetHeader = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1) == nil
	// The kernel activates the interface's queue some time after its other end
	// is up, and drops what is sent before. Without the queue there is
	// nothing to wait for (packet(7); kernel: net/core/link_watch.c).
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return nil, nil, fmt.Errorf("cannot set up the packet socket: %w", err)
	}
	// The far end is a wire, not a host: it must say nothing by itself.
	for _, name := range []string{"all", "default"} {
		_ = writeSysctl("net/ipv6/conf/"+name+"/disable_ipv6", "1")
	}
	there, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open the gateway's network namespace: %w", err)
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		there.Close()
		return nil, nil, fmt.Errorf("cannot open netlink: %w", err)
	}
	return there, handle, nil
}

// openDiag opens the socket that answers questions about the sandbox's
// sockets. It belongs to the namespace it was made in, wherever it is sent.
func (l *Link) openDiag() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return fmt.Errorf("cannot open sock_diag: %w", err)
	}
	l.Diag = os.NewFile(uintptr(fd), "sock_diag")
	return nil
}

func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }
