package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// sysctls are set in the sandbox's network namespace. Those that a kernel
// doesn't have are skipped without a word when optional.
var sysctls = []struct {
	path, value string
	optional    bool
}{
	// A held connection is a SYN without an answer. The kernel's defaults
	// give up after 135 s; these go on for hours, and for the first minutes
	// at one a second (ip-sysctl.rst; linear since 6.5).
	{path: "net/ipv4/tcp_syn_retries", value: "100"},
	{path: "net/ipv4/tcp_syn_linear_timeouts", value: "100", optional: true},
	// There is no capability inside to bind low ports with, and nobody else
	// to take them from.
	{path: "net/ipv4/ip_unprivileged_port_start", value: "0", optional: true},
	// So that a ping shows up as an attempt instead of failing unseen.
	{path: "net/ipv4/ping_group_range", value: "0 0", optional: true},
	// No kernel chatter on the link.
	{path: "net/ipv6/conf/all/disable_ipv6", value: "0", optional: true},
	{path: "net/ipv6/conf/default/disable_ipv6", value: "0", optional: true},
	{path: "net/ipv6/conf/lo/disable_ipv6", value: "0", optional: true},
	{path: "net/ipv6/conf/" + sandboxInterface + "/disable_ipv6", value: "0", optional: true},
	{path: "net/ipv6/conf/" + sandboxInterface + "/addr_gen_mode", value: "1", optional: true},
	{path: "net/ipv6/conf/" + sandboxInterface + "/accept_ra", value: "0", optional: true},
	{path: "net/ipv6/conf/" + sandboxInterface + "/router_solicitations", value: "0", optional: true},
	{path: "net/ipv6/conf/" + sandboxInterface + "/accept_dad", value: "0", optional: true},
}

// writeSysctl sets a value below /proc/sys; the files under net are those of
// the calling thread's network namespace.
func writeSysctl(path, value string) error {
	return os.WriteFile("/proc/sys/"+path, []byte(value), 0)
}

// configure gives both of the sandbox's interfaces what they need: addresses,
// permanent neighbours (so that nothing is ever asked by ARP or NDP), default
// routes and sysctls.
func (l *Link) configure() error {
	for _, s := range sysctls {
		err := writeSysctl(s.path, s.value)
		if err != nil && !(s.optional && errors.Is(err, os.ErrNotExist)) {
			l.Warnings = append(l.Warnings, fmt.Sprintf("cannot set %s to %s: %v", s.path, s.value, err))
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("cannot find the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("cannot bring the loopback interface up: %w", err)
	}
	eth, err := netlink.LinkByName(sandboxInterface)
	if err != nil {
		return fmt.Errorf("cannot find the sandbox's interface: %w", err)
	}
	if err := netlink.LinkSetUp(eth); err != nil {
		return fmt.Errorf("cannot bring the sandbox's interface up: %w", err)
	}
	if err := l.addFamily(eth, l.Sandbox4, l.Gateway4); err != nil {
		return err
	}
	if !l.Sandbox6.IsValid() {
		return nil
	}
	if err := l.addFamily(eth, l.Sandbox6, l.Gateway6); err != nil {
		// A host with IPv6 switched off still has the folder in /proc/sys.
		l.Warnings = append(l.Warnings, fmt.Sprintf("no IPv6 in the sandbox: %v", err))
		l.Sandbox6, l.Gateway6 = netip.Addr{}, netip.Addr{}
	}
	if err := awaitLocal(l.Sandbox6); err != nil {
		l.Warnings = append(l.Warnings, err.Error())
	}
	return nil
}

// awaitLocal waits until packets to an IPv6 address of this namespace are
// taken in: the kernel adds its local route from a work queue, also without
// duplicate address detection (net/ipv6/addrconf.c, addrconf_dad_work), and
// drops what arrives before.
func awaitLocal(addr netip.Addr) error {
	const patience = 5 * time.Second // a busy machine gets round to it late
	for start := time.Now(); ; time.Sleep(200 * time.Microsecond) {
		routes, err := netlink.RouteGet(addr.AsSlice())
		if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
			return nil
		}
		if time.Since(start) > patience {
			return fmt.Errorf("cannot see %s become local in %v: its first packets may be lost", addr, patience)
		}
	}
}

// addFamily adds one address and the default route of its family.
func (l *Link) addFamily(eth netlink.Link, own, gateway netip.Addr) error {
	family := netlink.FAMILY_V4
	all := &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	if own.Is6() {
		family = netlink.FAMILY_V6
		all = &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
	}
	addr := &netlink.Addr{
		IPNet: &net.IPNet{IP: own.AsSlice(), Mask: net.CIDRMask(own.BitLen(), own.BitLen())},
		Scope: unix.RT_SCOPE_UNIVERSE,
	}
	if own.Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrAdd(eth, addr); err != nil {
		return fmt.Errorf("cannot add address %s: %w", own, err)
	}
	route := &netlink.Route{LinkIndex: eth.Attrs().Index, Dst: all, Src: own.AsSlice()}
	if l.Kind == linkVeth {
		if err := netlink.NeighSet(&netlink.Neigh{
			LinkIndex:    eth.Attrs().Index,
			Family:       family,
			State:        netlink.NUD_PERMANENT,
			IP:           gateway.AsSlice(),
			HardwareAddr: gatewayMAC,
		}); err != nil {
			return fmt.Errorf("cannot add neighbour %s: %w", gateway, err)
		}
		route.Gw = gateway.AsSlice()
		route.Flags = int(netlink.FLAG_ONLINK)
	} else {
		route.Scope = netlink.SCOPE_LINK
	}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("cannot add the default route by %s: %w", gateway, err)
	}
	return nil
}

// makeTUN is the way for kernels without veth. It needs /dev/net/tun to be
// open to the user.
func (l *Link) makeTUN() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("cannot open /dev/net/tun (and the kernel has no veth): %w", err)
	}
	ifr, err := unix.NewIfreq(sandboxInterface)
	if err == nil {
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("cannot make a TUN device: %w", err)
	}
	l.Packet = os.NewFile(uintptr(fd), "tun")
	eth, err := netlink.LinkByName(sandboxInterface)
	if err != nil {
		return fmt.Errorf("cannot find the TUN device: %w", err)
	}
	if err := netlink.LinkSetMTU(eth, l.MTU); err != nil {
		return fmt.Errorf("cannot set the MTU of the TUN device: %w", err)
	}
	return nil
}
