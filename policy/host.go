package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// HostService is the name under which a session reaches services on the host's
// own loopback, each port by a rule of its own.
const HostService = "host.stepbox.internal"

// Protocol is what a connection speaks below its ports.
type Protocol string

const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	ICMP Protocol = "icmp" // echo, as ping sends it; it has no ports
	Any  Protocol = "any"  // in rules only
)

// Destination is where a program wants to connect.
type Destination struct {
	// Name is the host name that was asked for; "" for an address without one.
	Name string
	// Addr is the address that was connected to, where there is no name.
	Addr     netip.Addr
	Port     int // 0 for ICMP
	Protocol Protocol
}

// String is the destination as a rule for exactly it is written.
func (d Destination) String() string {
	h := HostRule{Name: d.Name, First: d.Port, Last: d.Port, Protocol: d.Protocol}
	if d.Name == "" {
		h.Net = single(d.Addr)
	}
	return h.String()
}

// HostRule names destinations: a name or addresses, ports, a protocol.
type HostRule struct {
	// Name is a name in lower case and punycode without a trailing dot, such a
	// name after "*." (every name below it, not itself), or "*" (every name,
	// but HostService). It is "" where Net is set. No name is an address.
	Name string
	// Net is an address, as a network of one, or a network.
	Net         netip.Prefix
	First, Last int      // ports; 0: all
	Protocol    Protocol // Any: all three
}

// ParseHost reads HOST[:PORT[-PORT]][/PROTOCOL]. HOST is a host name, "*." and a host
// name, "*", an IP address or a network as ADDRESS/BITS; an IPv6 one with a port needs
// brackets. Names may be international. HostService needs a port. PROTOCOL is tcp,
// which it is where nothing is said, udp, icmp (without a port) or any.
func ParseHost(s string) (HostRule, error) {
	h, err := parseHost(s)
	if err != nil {
		return HostRule{}, fmt.Errorf("cannot use host %q: %w", s, err)
	}
	return h, nil
}

func parseHost(s string) (h HostRule, err error) {
	h.Protocol = TCP
	if strings.Contains(s, "://") {
		return h, errors.New("it is an address of the web: name the host alone, with its port, as example.org:443")
	}
	if i := strings.LastIndexByte(s, '/'); i >= 0 && strings.Trim(s[i+1:], "0123456789:-]") != "" {
		switch h.Protocol = Protocol(s[i+1:]); h.Protocol {
		case TCP, UDP, ICMP, Any:
		default:
			return h, errors.New("what follows the slash is the size of a network in bits, or tcp, udp, icmp or any")
		}
		s = s[:i]
	}
	name, first, last, err := splitPort(s)
	if err != nil {
		return h, err
	}
	if h.First, h.Last = first, last; first != 0 && h.Protocol == ICMP {
		return h, errors.New("icmp has no ports")
	}
	if h.Net, err = network(name); err != nil || h.Net.IsValid() {
		return h, err
	}
	h.Name, err = ruleName(name, first)
	return h, err
}

func single(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	return netip.PrefixFrom(a, a.BitLen())
}

// network reads an address or a network; the zero Prefix is for what is neither.
func network(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		if addr.Zone() != "" {
			return netip.Prefix{}, errors.New("an address can't have a zone")
		}
		return single(addr), nil
	}
	if !strings.Contains(s, "/") {
		return netip.Prefix{}, nil
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return netip.Prefix{}, errors.New("a network is an address, a slash and how many of its bits count")
	case p.Addr().Is4In6():
		return netip.Prefix{}, errors.New("a network of IPv4 is written as one, as in 192.0.2.0/24")
	case p != p.Masked():
		return netip.Prefix{}, fmt.Errorf("bits beyond the network are set: it is %s", p.Masked())
	}
	return p, nil
}

// ruleName is what a rule says of names in the form that HostRule has it.
func ruleName(name string, port int) (string, error) {
	if name == "*" {
		return name, nil
	}
	if strings.ContainsAny(name, "[]") {
		return "", errors.New("brackets are for IPv6 addresses")
	}
	rest, wild := strings.CutPrefix(name, "*.")
	if strings.Contains(rest, "*") {
		return "", errors.New(`"*" can only be the whole first label, as in *.example.com`)
	}
	rest, err := normalName(rest)
	switch {
	case err != nil:
		return "", err
	case rest == HostService && (wild || port == 0):
		return "", errors.New("it stands for this machine: name the port, as in " + HostService + ":8080")
	case !wild:
		return rest, nil
	case strings.HasSuffix(HostService, "."+rest) || !strings.Contains(rest, "."):
		return "", errors.New("a wildcard needs at least two labels after it")
	}
	return "*." + rest, nil
}

// splitPort takes ports off the end of s, and brackets off an address.
func splitPort(s string) (name string, first, last int, err error) {
	name, rest, cut := strings.Cut(s, ":")
	if strings.HasPrefix(s, "[") {
		inner, after, ok := strings.Cut(s[1:], "]")
		if !ok {
			return "", 0, 0, errors.New("a bracket isn't closed")
		}
		if addr, _, _ := strings.Cut(inner, "/"); !is6(addr) {
			return "", 0, 0, errors.New("brackets are for IPv6 addresses")
		}
		name = inner
		if rest, cut = strings.CutPrefix(after, ":"); after != "" && !cut {
			return "", 0, 0, errors.New("only a port can follow the brackets")
		}
	} else if strings.Count(s, ":") > 1 {
		if addr, _, _ := strings.Cut(s, "/"); !is6(addr) {
			return "", 0, 0, errors.New("an IPv6 address with a port needs brackets")
		}
		return s, 0, 0, nil
	}
	if !cut {
		return name, 0, 0, nil
	}
	from, to, several := strings.Cut(rest, "-")
	first = parsePort(from)
	if last = first; several {
		last = parsePort(to)
	}
	if first == 0 || last < first {
		return "", 0, 0, errors.New("a port is a number from 1 to 65535, or two with a hyphen between them")
	}
	return name, first, last, nil
}

func is6(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil && strings.Contains(s, ":")
}

// parsePort is 0 for what isn't plainly a port.
func parsePort(s string) int {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || s[0] == '0' {
		return 0
	}
	return int(n)
}

// normalName is a host name as rules hold it, or why it is none (RFC 1035 for
// lengths; underscores are allowed, as names of services have them).
func normalName(s string) (string, error) {
	if len(s) > 1024 { // well above 253 in any spelling; longer ones take long
		return "", errors.New("a name has at most 253 characters")
	}
	s = strings.TrimSuffix(s, ".")
	for _, r := range s {
		if r == utf8.RuneError || !seen(r) || r == ' ' {
			return "", errors.New("a host name can't have spaces or invisible characters")
		}
	}
	a, err := idna.Lookup.ToASCII(s)
	if err != nil {
		// The profile refuses underscores, which are in use; nothing else
		// may pass that isn't a letter, digit or hyphen.
		if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) || strings.HasPrefix(strings.ToLower(s), "xn--") || strings.Contains(strings.ToLower(s), ".xn--") {
			return "", errors.New("not a valid international name")
		}
		a = strings.ToLower(s)
	}
	if a == "" {
		return "", errors.New("a name is missing")
	}
	if len(a) > 253 {
		return "", errors.New("a name has at most 253 characters")
	}
	labels := strings.Split(a, ".")
	for _, l := range labels {
		switch {
		case l == "":
			return "", errors.New("a label is empty")
		case len(l) > 63:
			return "", errors.New("a label has at most 63 characters")
		case l[0] == '-' || l[len(l)-1] == '-':
			return "", errors.New("a label can't begin or end with a hyphen")
		case strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			return "", errors.New("a name has letters, digits, hyphens and dots")
		}
	}
	// "1.2.3" or "0x7f.1" are addresses to many resolvers, though not to ours.
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", errors.New("an address is written in full, as in 192.0.2.1")
	}
	return a, nil
}

// Match says whether the rule covers a destination. Whatever isn't a proper name or
// address matches nothing: a NUL, a space or an empty label can't slip a name past a
// suffix. A name never matches a rule for addresses, nor an address one for names.
func (r HostRule) Match(d Destination) bool { return r.match(d.proper()) }

// proper is a destination with its name as rules hold names; that of an improper one is
// no rule's, see improper.
func (d Destination) proper() Destination {
	if d.Name != "" {
		name, err := normalName(d.Name)
		if err != nil {
			name = improper
		}
		d.Name = name
	}
	return d
}

// improper stands for every name that no rule can be about: resolvers may take it for
// another than it looks like, so that Policy.Connect denies it whatever the rules say.
const improper = "\x00"

func (r *HostRule) match(d Destination) bool {
	if r.Protocol != d.Protocol && r.Protocol != Any {
		return false
	}
	if d.Protocol == ICMP && (d.Port != 0 || r.First != 0) || d.Protocol != ICMP && (d.Port < 1 || d.Port > 65535) {
		return false
	}
	if r.First != 0 && (d.Port < r.First || d.Port > r.Last) {
		return false
	}
	if r.Net.IsValid() || d.Name == "" {
		return d.Name == "" && d.Addr.Zone() == "" && r.Net.Contains(d.Addr.Unmap())
	}
	if r.Name == "" || d.Name == improper {
		return false
	}
	if below, wild := strings.CutPrefix(r.Name, "*"); wild {
		return len(d.Name) > len(below) && strings.HasSuffix(d.Name, below) && d.Name != HostService
	}
	return d.Name == r.Name
}

// inside are networks that aren't the internet (RFC 6890).
var inside = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"),
}

// Special says whether the rule names a place that only its own rule opens: an address,
// one of the networks that aren't the internet or a part of it, or a port of this host.
// Who allows 0.0.0.0/0 means the internet, and not what is at home.
func (r HostRule) Special() bool {
	return r.Name == HostService || r.Net.IsValid() && (r.Net.IsSingleIP() || slices.ContainsFunc(inside, func(n netip.Prefix) bool {
		return n.Bits() <= r.Net.Bits() && n.Contains(r.Net.Addr())
	}))
}

// String is the rule as ParseHost reads it.
func (r HostRule) String() string {
	s := r.Name
	if r.Net.IsValid() {
		s = r.Net.String()
		if r.Net.IsSingleIP() {
			s = r.Net.Addr().String()
		}
	}
	if r.First != 0 {
		if r.Net.IsValid() && r.Net.Addr().Is6() {
			s = "[" + s + "]"
		}
		s += ":" + strconv.Itoa(r.First)
		if r.Last != r.First {
			s += "-" + strconv.Itoa(r.Last)
		}
	}
	if r.Protocol != TCP {
		s += "/" + string(r.Protocol)
	}
	return s
}
