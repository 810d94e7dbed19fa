package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Classes of addresses that the dial guard keeps a sandbox from. Class gives
// them.
const (
	ClassPublic      = ""
	ClassLoopback    = "loopback"
	ClassPrivate     = "private network"
	ClassLinkLocal   = "link-local"
	ClassMetadata    = "cloud metadata"
	ClassShared      = "carrier-grade NAT"
	ClassEmbedded    = "embeds an IPv4 address"
	ClassUnspecified = "unspecified"
	ClassMulticast   = "multicast"
	ClassReserved    = "reserved"
	ClassOwn         = "this host's own address"
)

// classes is looked through in order. Sources: the IANA special-purpose
// address registries for IPv4 and IPv6 (RFC 6890 and its updates).
// Documentation blocks aren't in it: nothing answers there.
var classes = []struct {
	class string
	nets  []netip.Prefix
}{
	{ClassUnspecified, prefixes("0.0.0.0/8", "::/128")},
	{ClassLoopback, prefixes("127.0.0.0/8", "::1/128")},
	// Amazon, Azure, Google, Oracle; Alibaba; Azure's wire server; Amazon by IPv6.
	{ClassMetadata, prefixes("169.254.169.254/32", "169.254.170.2/32", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::/32", "fd20:ce::254/128")},
	{ClassLinkLocal, prefixes("169.254.0.0/16", "fe80::/10")},
	{ClassPrivate, prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")},
	{ClassShared, prefixes("100.64.0.0/10")},
	// NAT64, 6to4 and its relays, Teredo, IPv4-compatible, IPv4-translated.
	{ClassEmbedded, prefixes("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "192.88.99.0/24", "2001::/32", "::/96", "::ffff:0:0:0/96")},
	{ClassMulticast, prefixes("224.0.0.0/4", "ff00::/8")},
	{ClassReserved, prefixes("192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "100::/64", "5f00::/16")},
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Class says what kind of special address addr is, ClassPublic for none. It
// doesn't know which addresses are this host's own.
func Class(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return ClassUnspecified
	}
	for _, c := range classes {
		if slices.ContainsFunc(c.nets, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			return c.class
		}
	}
	return ClassPublic
}

// GuardError is why the dial guard refused an address.
type GuardError struct {
	Addr  netip.Addr
	Class string
}

func (e *GuardError) Error() string {
	how := "; a rule for the address itself opens it"
	switch e.Class {
	case ClassLoopback:
		how = "; a rule for " + HostName + " and a port opens that of this host"
	case ClassUnspecified, ClassMulticast:
		how = ""
	}
	return fmt.Sprintf("the dial guard refused %s: %s%s", e.Addr, e.Class, how)
}

// deniedError is why an address isn't dialled that a name leads to, or that is denied
// since the verdict.
type deniedError struct {
	addr netip.Addr
	rule string
}

func (e *deniedError) Error() string { return fmt.Sprintf("it leads to %s: %s", e.addr, e.rule) }

// destination is what may be dialled for one attempt.
type destination struct {
	name    string     // resolved when dialling; empty for an address
	addr    netip.Addr // for an attempt at an address
	port    uint16
	private bool                                    // Verdict.Private
	denied  func(netip.Addr) (rule string, is bool) // nil: nothing is
}

func (d destination) String() string {
	if d.name != "" {
		return net.JoinHostPort(d.name, fmt.Sprint(d.port))
	}
	return netip.AddrPortFrom(d.addr, d.port).String()
}

// guard decides at connect time which addresses may be dialled.
type guard struct {
	routes *netlinkConn // in the supervisor's own network namespace
}

func newGuard() (*guard, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("cannot open rtnetlink: %w", err)
	}
	return &guard{routes: &netlinkConn{file: os.NewFile(uintptr(fd), "rtnetlink")}}, nil
}

func (g *guard) close() error { return g.routes.file.Close() }

// check says whether a socket for d may connect to addr.
//
// Without Private nothing special is reached. With it, an attempt at an
// address reaches that address, HostName reaches 127.0.0.1, and another name
// reaches private networks, but neither this host nor link-local or metadata
// addresses: what a name resolves to is somebody else's choice.
//
// What rules deny isn't reached, whatever the verdict: they may deny the address that a
// name leads to, or be newer.
func (g *guard) check(addr netip.Addr, d destination) error {
	addr = addr.Unmap().WithZone("")
	if err := g.checkClass(addr, d); err != nil || d.denied == nil {
		return err
	}
	if rule, is := d.denied(addr); is {
		return &deniedError{addr, rule}
	}
	return nil
}

func (g *guard) checkClass(addr netip.Addr, d destination) error {
	class := Class(addr)
	if class == ClassPublic || class == ClassPrivate || class == ClassShared {
		own, err := g.own(addr)
		if err != nil {
			return err
		}
		if own {
			class = ClassOwn
		}
	}
	switch {
	case class == ClassPublic:
		return nil
	case !d.private, class == ClassUnspecified, class == ClassMulticast:
	case d.name == HostName:
		if addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
			return nil
		}
	case d.name == "":
		if addr == d.addr.Unmap() {
			return nil
		}
	case class == ClassPrivate, class == ClassShared:
		return nil
	}
	return &GuardError{addr, class}
}

// control is net.Dialer.ControlContext: it sees the address that is about to
// be connected to, whoever resolved it.
func (g *guard) control(d destination) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("cannot judge address %q: %w", address, err)
		}
		return g.check(at.Addr(), d)
	}
}

// own says whether packets to addr would stay on this host, or go to more
// than one: the answer of the kernel's own routing table, which also knows
// addresses that are on no interface (rtnetlink(7), RTM_GETROUTE).
func (g *guard) own(addr netip.Addr) (bool, error) {
	const sizeofRtMsg = 12
	req := make([]byte, sizeofRtMsg, sizeofRtMsg+20)
	req[0], req[1] = unix.AF_INET, byte(addr.BitLen())
	if addr.Is6() {
		req[0] = unix.AF_INET6
	}
	raw := addr.AsSlice()
	req = binary.NativeEndian.AppendUint16(req, uint16(4+len(raw)))
	req = binary.NativeEndian.AppendUint16(req, unix.RTA_DST)
	req = append(req, raw...)
	own := true
	err := g.routes.ask(unix.RTM_GETROUTE, req, func(kind uint16, b []byte) {
		if kind == unix.RTM_NEWROUTE && len(b) >= sizeofRtMsg {
			switch b[7] { // rtm_type
			case unix.RTN_LOCAL, unix.RTN_BROADCAST, unix.RTN_ANYCAST, unix.RTN_MULTICAST:
			default:
				own = false
			}
		}
	})
	switch {
	case err == nil:
		return own, nil
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES):
		return false, nil // connect will say the same
	}
	return false, fmt.Errorf("cannot tell whether %s is this host: %w", addr, err)
}
